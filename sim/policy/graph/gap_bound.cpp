#include "policy/graph/gap_bound.hpp"

#include "engine/wide.hpp"
#include "policy/graph/whole_gaps.hpp"
#include "policy/solver/row_matrix.hpp"
#include "policy/solver/row_prices.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace plimsoll {

namespace {

using Wide = Signed128;

class GapProgram {
 public:
  GapProgram(const OperatorGraph& graph, const RerunGroups& groups, std::int64_t room,
             RunsAgain again = RunsAgain::maker)
      : found_(gaps_of(graph, groups, room, false, again)),
        gaps_(found_.gaps),
        rows_(found_.runs),
        byte_unit_(static_cast<double>(found_.most_bytes())),
        time_unit_(static_cast<double>(longest(gaps_))) {}

  [[nodiscard]] bool is_needless() const { return rows_.empty(); }
  [[nodiscard]] bool is_impossible() const { return found_.is_impossible(); }

  /// By run; any of them give a bound, by weak duality.
  [[nodiscard]] std::vector<std::int64_t> prices(const Work& work) const {
    return whole(row_prices([this](OsiClpSolverInterface& program) { load(program); }, work));
  }

  [[nodiscard]] std::int64_t bound_of(const std::vector<std::int64_t>& whole) const {
    Wide bound = 0;
    for (std::size_t row = 0; row < rows_.size(); ++row)
      bound += Wide{whole[row]} * rows_[row].above;
    // The price of a gap is that of the rows between its ends.
    std::vector<Wide> before{0};
    for (const std::int64_t price : whole) before.push_back(before.back() + price);
    const auto rows_until = [&](std::uint32_t node) {
      return static_cast<std::size_t>(std::ranges::lower_bound(rows_, node, {}, &TightRun::node) -
                                      rows_.begin());
    };
    for (const Gap& gap : gaps_) {
      const Wide price = before[rows_until(gap.before)] - before[rows_until(gap.first)];
      bound += std::min<Wide>(0, Wide{gap.time} * kPriceUnits - price * gap.bytes);
    }
    if (bound <= 0) return 0;
    return static_cast<std::int64_t>((bound + kPriceUnits - 1) / kPriceUnits);
  }

  [[nodiscard]] const Gaps& gaps() const { return found_; }

 private:
  void load(OsiClpSolverInterface& program) const {
    RowMatrix matrix;
    std::vector<double> least, most, costs;
    for (const TightRun& row : rows_) {
      for (std::size_t gap = 0; gap < gaps_.size(); ++gap)
        if (is_around(gaps_[gap], row))
          matrix.add(gap, static_cast<double>(gaps_[gap].bytes) / byte_unit_);
      matrix.end_row();
      least.push_back(static_cast<double>(row.above) / byte_unit_);
      most.push_back(program.getInfinity());
    }
    for (const Gap& gap : gaps_) costs.push_back(static_cast<double>(gap.time) / time_unit_);
    const std::vector<double> low(gaps_.size(), 0), high(gaps_.size(), 1);
    program.loadProblem(matrix.packed(gaps_.size()), low.data(), high.data(), costs.data(),
                        least.data(), most.data());
  }

  static std::int64_t longest(const std::vector<Gap>& gaps) {
    std::int64_t most = 1;
    for (const Gap& gap : gaps) most = std::max(most, gap.time);
    return most;
  }

  [[nodiscard]] std::vector<std::int64_t> whole(const std::vector<double>& prices) const {
    std::vector<std::int64_t> whole;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      const double price = prices[row] * time_unit_ / byte_unit_ * static_cast<double>(kPriceUnits);
      whole.push_back(price > 0 && price < 0x1p62 ? std::llround(price) : 0);
    }
    return whole;
  }

  const Gaps found_;
  const std::vector<Gap>& gaps_;
  const std::vector<TightRun>& rows_;
  const double byte_unit_, time_unit_;  ///< scale the program
};

}  // namespace

std::optional<std::int64_t> gap_bound(const OperatorGraph& graph, const RerunGroups& groups,
                                      std::int64_t room, const Work& work, RunsAgain again) {
  const GapProgram program(graph, groups, room, again);
  if (program.is_needless()) return 0;
  if (program.is_impossible()) return std::nullopt;
  return program.bound_of(program.prices(work));
}

std::optional<std::int64_t> best_gap_bound(const OperatorGraph& graph, const RerunGroups& groups,
                                           std::int64_t room, const Work& work) {
  const GapProgram program(graph, groups, room);
  if (program.is_needless()) return 0;
  if (program.is_impossible()) return std::nullopt;
  return whole_gap_bound(program.gaps(), program.prices(work), work);
}

std::int64_t largest_step(const OperatorGraph& graph) {
  std::int64_t largest = 0;
  for (const OperatorGraph::Node& node : graph.nodes) {
    std::int64_t bytes = node.workspace.count();
    for (const std::uint32_t value : node.reads)
      if (graph.values[value].inside == OperatorGraph::kNone)
        bytes += graph.values[value].bytes.count();
    for (const std::uint32_t value : node.makes)
      if (!graph.values[value].is_kept_only && graph.values[value].inside == OperatorGraph::kNone)
        bytes += graph.values[value].bytes.count();
    largest = std::max(largest, bytes);
  }
  return largest;
}

}  // namespace plimsoll
