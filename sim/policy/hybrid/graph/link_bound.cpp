#include "policy/hybrid/graph/link_bound.hpp"

#include "engine/wide.hpp"
#include "policy/graph/gaps.hpp"
#include "policy/solver/row_matrix.hpp"
#include "policy/solver/row_prices.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace plimsoll {

namespace {

/// First runs that are looked at.
constexpr std::size_t kMostRuns = 16;
/// Prices and weights are whole numbers of 2^-24.
constexpr double kUnits = 0x1p24;
constexpr std::int64_t kUnitsWhole = 1 << 24;

using LinkWide = Signed128;

/// The one that lacks most and others in even distances; all where they are few.
std::vector<TightRun> spread(const std::vector<TightRun>& runs) {
  if (runs.size() <= kMostRuns) return runs;
  std::vector<TightRun> some;
  for (std::size_t i = 0; i + 1 < kMostRuns; ++i)
    some.push_back(runs[i * runs.size() / (kMostRuns - 1)]);
  some.push_back(*std::ranges::max_element(runs, {}, &TightRun::above));
  std::ranges::sort(some, {}, &TightRun::node);
  const auto repeated = std::ranges::unique(some, {}, &TightRun::node);
  some.erase(repeated.begin(), repeated.end());
  return some;
}

class LinkProgram {
 public:
  LinkProgram(const Problem& problem, const OffloadMemories& memories, const OperatorGraph& graph,
              const RerunGroups& groups, std::int64_t room, RunsAgain again)
      : found_(gaps_of(graph, groups, room, true, again)),
        runs_(spread(found_.runs)),
        time_(graph.time().count()),
        byte_unit_(static_cast<double>(found_.most_bytes())),
        starts_{0} {
    const Route& out = *problem.topology.route(memories.home, memories.storage);
    const Route& back = *problem.topology.route(memories.storage, memories.home);
    for (const Gap& gap : found_.gaps) {
      out_.push_back(transfer_time(Bytes{gap.bytes}, out.bandwidth).count());
      back_.push_back(transfer_time(Bytes{gap.bytes}, back.bandwidth).count());
    }
    for (const OperatorGraph::Node& node : graph.nodes)
      starts_.push_back(starts_.back() + node.time.count());
    for (std::size_t run = 0; run < runs_.size(); ++run)
      for (std::size_t g = 0; g < gaps(); ++g)
        if (is_within(found_.gaps[g], runs_[run])) absences_.push_back({run, g});
  }

  [[nodiscard]] bool is_needless() const { return runs_.empty(); }

  [[nodiscard]] std::int64_t solve(const Work& work) const {
    return bound_of(row_prices([this](OsiClpSolverInterface& program) { load(program); }, work));
  }

 private:
  /// A gap around a run.
  struct Absence {
    std::size_t run = 0, gap = 0;
  };
  using Row = std::vector<std::pair<std::size_t, double>>;  ///< columns and what they count

  // Columns: reruns, by gap; copies, by absence; the makespan. Times are in parts of the time of all
  // operators, bytes in those of the largest gap.
  [[nodiscard]] std::size_t gaps() const { return found_.gaps.size(); }
  [[nodiscard]] std::size_t columns() const { return gaps() + absences_.size() + 1; }
  [[nodiscard]] double in_time(std::int64_t time) const {
    return static_cast<double>(time) / static_cast<double>(std::max<std::int64_t>(time_, 1));
  }

  void load(OsiClpSolverInterface& program) const {
    RowMatrix matrix;
    std::vector<double> least, most;
    const auto add = [&](const Row& row, double low, double high) {
      for (const auto& [column, value] : row) matrix.add(column, value);
      matrix.end_row();
      least.push_back(low);
      most.push_back(high);
    };
    const double infinity = program.getInfinity();
    for (std::size_t run = 0; run < runs_.size(); ++run)
      add(cover(run), static_cast<double>(runs_[run].above) / byte_unit_, infinity);
    add(rerun_row(), in_time(time_), infinity);
    for (std::size_t run = 0; run < runs_.size(); ++run) {
      const std::int64_t start = starts_[runs_[run].node];
      add(copy_row(run, out_), in_time(time_ - start), infinity);
      add(copy_row(run, back_), in_time(start), infinity);
    }
    for (std::size_t a = 0; a < absences_.size(); ++a)
      add({{absences_[a].gap, 1}, {gaps() + a, 1}}, -infinity, 1);
    std::vector<double> low(columns(), 0), high(columns(), 1), costs(columns(), 0);
    for (std::size_t g = 0; g < gaps(); ++g) high[g] = found_.gaps[g].reruns ? 1 : 0;
    high.back() = infinity;
    costs.back() = 1;
    program.loadProblem(matrix.packed(columns()), low.data(), high.data(), costs.data(),
                        least.data(), most.data());
  }

  [[nodiscard]] Row cover(std::size_t run) const {
    Row row;
    const auto bytes = [&](std::size_t g) {
      return static_cast<double>(found_.gaps[g].bytes) / byte_unit_;
    };
    for (std::size_t g = 0; g < gaps(); ++g)
      if (is_around(found_.gaps[g], runs_[run])) row.emplace_back(g, bytes(g));
    for (std::size_t a = 0; a < absences_.size(); ++a)
      if (absences_[a].run == run) row.emplace_back(gaps() + a, bytes(absences_[a].gap));
    return row;
  }

  [[nodiscard]] Row rerun_row() const {
    Row row{{columns() - 1, 1}};
    for (std::size_t g = 0; g < gaps(); ++g) row.emplace_back(g, -in_time(found_.gaps[g].time));
    return row;
  }

  [[nodiscard]] Row copy_row(std::size_t run, const std::vector<std::int64_t>& times) const {
    Row row{{columns() - 1, 1}};
    for (std::size_t a = 0; a < absences_.size(); ++a)
      if (absences_[a].run == run) row.emplace_back(gaps() + a, -in_time(times[absences_[a].gap]));
    return row;
  }

  /// The weights of the rows of the makespan, whole and together kUnitsWhole: what rounding leaves
  /// over goes to the first.
  [[nodiscard]] std::vector<std::int64_t> weights(const std::vector<double>& prices) const {
    std::vector<std::int64_t> whole{0};
    std::int64_t left = kUnitsWhole;
    for (std::size_t row = 1; row <= 2 * runs_.size(); ++row) {
      const double weight = std::clamp(prices[runs_.size() + row] * kUnits, 0.0, kUnits);
      whole.push_back(std::min(static_cast<std::int64_t>(weight), left));
      left -= whole.back();
    }
    whole[0] = left;
    return whole;
  }

  /// By weak duality any prices and weights give a bound.
  [[nodiscard]] std::int64_t bound_of(const std::vector<double>& prices) const {
    const std::vector<std::int64_t> weight = weights(prices);
    LinkWide bound = LinkWide{time_} * weight[0];
    std::vector<std::int64_t> price;
    for (std::size_t run = 0; run < runs_.size(); ++run) {
      const std::int64_t start = starts_[runs_[run].node];
      bound +=
          LinkWide{time_ - start} * weight[1 + 2 * run] + LinkWide{start} * weight[2 + 2 * run];
      const double exact = prices[run] * (static_cast<double>(time_) / byte_unit_) * kUnits;
      price.push_back(exact > 0 && exact < 0x1p62 ? std::llround(exact) : 0);
      bound += LinkWide{price.back()} * runs_[run].above;
    }
    for (std::size_t g = 0; g < gaps(); ++g) bound += least_of(g, weight, price);
    if (bound <= 0) return 0;
    return static_cast<std::int64_t>((bound + kUnitsWhole - 1) / kUnitsWhole);
  }

  /// What the gap adds at least: made again, or copied for each of the runs that it pays for.
  [[nodiscard]] LinkWide least_of(std::size_t g, const std::vector<std::int64_t>& weight,
                                  const std::vector<std::int64_t>& price) const {
    const Gap& gap = found_.gaps[g];
    LinkWide rerun = LinkWide{gap.time} * weight[0], copies = 0;
    for (std::size_t run = 0; run < runs_.size(); ++run) {
      const LinkWide gain = LinkWide{price[run]} * gap.bytes;
      if (is_around(gap, runs_[run])) rerun -= gain;
      if (!is_within(gap, runs_[run])) continue;
      const LinkWide copy =
          LinkWide{out_[g]} * weight[1 + 2 * run] + LinkWide{back_[g]} * weight[2 + 2 * run];
      copies += std::min<LinkWide>(0, copy - gain);
    }
    return gap.reruns ? std::min(rerun, copies) : copies;
  }

  const Gaps found_;
  const std::vector<TightRun> runs_;
  const std::int64_t time_;               ///< of all operators, ps
  const double byte_unit_;                ///< scales the program
  std::vector<std::int64_t> starts_;      ///< by node, when all run once
  std::vector<std::int64_t> out_, back_;  ///< ps, by gap
  std::vector<Absence> absences_;
};

}  // namespace

Time link_bound(const Problem& problem, const OffloadMemories& memories, const OperatorGraph& graph,
                const RerunGroups& groups, std::int64_t room, RunsAgain again) {
  const LinkProgram program(problem, memories, graph, groups, room, again);
  if (program.is_needless()) return graph.time();
  return std::max(graph.time(), Time{program.solve(problem.work)});
}

}  // namespace plimsoll
