#include "policy/remat/graph/gap_bound.hpp"

#include "engine/wide.hpp"
#include "policy/solver/solver_work.hpp"

#include <OsiClpSolverInterface.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace plimsoll {

namespace {

/// Entries of the linear program, beyond which fewer rows are taken: those above the room most.
constexpr std::size_t kMostEntries = 1'000'000;
/// Prices are whole numbers of 2^-24 ps a byte.
constexpr double kPriceUnits = 0x1p24;
constexpr std::int64_t kPriceUnitsWhole = 1 << 24;

using Wide = Signed128;

/// A value may be absent at the first runs of the nodes from one up to another: of those between two
/// uses, and what only the form `keep` leaves also at that of its maker, which may be bare.
struct Gap {
  std::uint32_t first = 0, before = 0;
  std::int64_t bytes = 0, time = 0;
};

/// A node whose first run needs more than the room.
struct Row {
  std::uint32_t node = 0;
  std::int64_t above = 0;
};

class GapProgram {
 public:
  GapProgram(const OperatorGraph& graph, const RerunGroups& groups, std::int64_t room)
      : graph_(graph), groups_(groups), made_(graph.nodes.size(), 0) {
    for (const OperatorGraph::Value& value : graph.values) made_[value.maker] += size(value);
    find_gaps();
    find_rows(room);
  }

  [[nodiscard]] bool is_needless() const { return rows_.empty(); }

  /// Whether some row cannot be met.
  [[nodiscard]] bool is_impossible() const {
    return std::ranges::any_of(rows_, [&](const Row& row) {
      std::int64_t most = 0;
      for (const Gap& gap : gaps_)
        if (is_around(gap, row)) most += gap.bytes;
      return most < row.above;
    });
  }

  [[nodiscard]] std::int64_t solve(const Work& work) const {
    const std::scoped_lock lock(one_solver());
    OsiClpSolverInterface program;
    program.messageHandler()->setLogLevel(0);
    load(program);
    SolverWork its{work, static_cast<std::int64_t>(program.getNumElements())};
    const CountedIterations counted(its);
    program.getModelPtr()->passInEventHandler(&counted);
    program.initialSolve();
    if (its.thrown) std::rethrow_exception(its.thrown);
    return bound_of(program.getRowPrice());
  }

 private:
  /// A part of another value counts nothing, as it needs nothing where that is kept; nor does what
  /// only a form leaves that nothing needs.
  static std::int64_t size(const OperatorGraph::Value& value) {
    const bool is_needless = value.is_kept_only && value.readers.empty();
    return value.inside == OperatorGraph::kNone && !is_needless ? value.bytes.count() : 0;
  }
  static bool is_around(const Gap& gap, const Row& row) {
    return gap.first <= row.node && row.node < gap.before;
  }
  [[nodiscard]] std::uint32_t end_of(const OperatorGraph::Value& value) const {
    if (value.stays) return static_cast<std::uint32_t>(graph_.nodes.size());
    return value.readers.empty() ? value.maker : value.readers.back();
  }

  void find_gaps() {
    for (const OperatorGraph::Value& value : graph_.values) {
      if (size(value) == 0 || groups_.groups[groups_.of_node[value.maker]].runs_once) continue;
      const auto time = static_cast<std::int64_t>(Wide{graph_.nodes[value.maker].time.count()} *
                                                  size(value) / made_[value.maker]);
      std::uint32_t last = value.maker;
      const auto add = [&](std::uint32_t use) {
        const std::uint32_t first = last + (value.is_kept_only && last == value.maker ? 0 : 1);
        if (use > first) gaps_.push_back({first, use, size(value), time});
        last = use;
      };
      for (const std::uint32_t reader : value.readers) add(reader);
      if (value.stays) add(end_of(value));
    }
  }

  void find_rows(std::int64_t room) {
    std::vector<std::int64_t> change(graph_.nodes.size() + 2, 0);
    for (const OperatorGraph::Value& value : graph_.values) {
      change[value.maker] += size(value);
      change[end_of(value) + 1] -= size(value);
    }
    std::int64_t alive = 0;
    for (std::uint32_t node = 0; node < graph_.nodes.size(); ++node) {
      alive += change[node];
      const std::int64_t needs = alive + graph_.nodes[node].workspace.count();
      if (needs > room) rows_.push_back({node, needs - room});
    }
    const std::size_t most = std::max<std::size_t>(64, kMostEntries / (gaps_.size() + 1));
    if (rows_.size() <= most) return;
    std::ranges::stable_sort(rows_, std::ranges::greater{}, &Row::above);
    rows_.resize(most);
    std::ranges::sort(rows_, {}, &Row::node);
  }

  void load(OsiClpSolverInterface& program) const {
    CoinPackedMatrix matrix(false, 0, 0);
    matrix.setDimensions(0, static_cast<int>(gaps_.size()));
    std::vector<double> least, most, costs;
    for (const Row& row : rows_) {
      std::vector<int> columns;
      std::vector<double> values;
      for (std::size_t gap = 0; gap < gaps_.size(); ++gap) {
        if (!is_around(gaps_[gap], row)) continue;
        columns.push_back(static_cast<int>(gap));
        values.push_back(static_cast<double>(gaps_[gap].bytes) / byte_unit());
      }
      matrix.appendRow(static_cast<int>(columns.size()), columns.data(), values.data());
      least.push_back(static_cast<double>(row.above) / byte_unit());
      most.push_back(program.getInfinity());
    }
    for (const Gap& gap : gaps_) costs.push_back(static_cast<double>(gap.time) / time_unit());
    const std::vector<double> low(gaps_.size(), 0), high(gaps_.size(), 1);
    program.loadProblem(matrix, low.data(), high.data(), costs.data(), least.data(), most.data());
  }

  [[nodiscard]] double byte_unit() const {
    std::int64_t most = 1;
    for (const Gap& gap : gaps_) most = std::max(most, gap.bytes);
    return static_cast<double>(most);
  }
  [[nodiscard]] double time_unit() const {
    std::int64_t most = 1;
    for (const Gap& gap : gaps_) most = std::max(most, gap.time);
    return static_cast<double>(most);
  }

  /// By weak duality any prices give a bound.
  [[nodiscard]] std::int64_t bound_of(const double* prices) const {
    std::vector<std::int64_t> whole;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      const double price = prices[row] * time_unit() / byte_unit() * kPriceUnits;
      whole.push_back(price > 0 && price < 0x1p62 ? std::llround(price) : 0);
    }
    Wide bound = 0;
    for (std::size_t row = 0; row < rows_.size(); ++row)
      bound += Wide{whole[row]} * rows_[row].above;
    // The price of a gap is that of the rows between its ends.
    std::vector<Wide> before{0};
    for (const std::int64_t price : whole) before.push_back(before.back() + price);
    const auto rows_until = [&](std::uint32_t node) {
      return static_cast<std::size_t>(std::ranges::lower_bound(rows_, node, {}, &Row::node) -
                                      rows_.begin());
    };
    for (const Gap& gap : gaps_) {
      const Wide price = before[rows_until(gap.before)] - before[rows_until(gap.first)];
      bound += std::min<Wide>(0, Wide{gap.time} * kPriceUnitsWhole - price * gap.bytes);
    }
    if (bound <= 0) return 0;
    return static_cast<std::int64_t>((bound + kPriceUnitsWhole - 1) / kPriceUnitsWhole);
  }

  const OperatorGraph& graph_;
  const RerunGroups& groups_;
  std::vector<std::int64_t> made_;  ///< bytes of all values, by maker
  std::vector<Gap> gaps_;
  std::vector<Row> rows_;
};

}  // namespace

std::optional<std::int64_t> gap_bound(const OperatorGraph& graph, const RerunGroups& groups,
                                      std::int64_t room, const Work& work) {
  const GapProgram program(graph, groups, room);
  if (program.is_needless()) return 0;
  if (program.is_impossible()) return std::nullopt;
  return program.solve(work);
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
