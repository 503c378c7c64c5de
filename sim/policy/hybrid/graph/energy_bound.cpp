#include "policy/hybrid/graph/energy_bound.hpp"

#include "engine/wide.hpp"
#include "policy/graph/gaps.hpp"
#include "policy/hybrid/graph/energy_costs.hpp"
#include "policy/solver/row_matrix.hpp"
#include "policy/solver/row_prices.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace plimsoll {

namespace {

/// Prices are whole numbers of 2^-24 pJ a byte.
constexpr double kEnergyUnits = 0x1p24;
constexpr std::int64_t kEnergyUnitsWhole = 1 << 24;

using EnergyWide = Signed128;

class EnergyProgram {
 public:
  EnergyProgram(const Problem& problem, const OffloadMemories& memories, const OperatorGraph& graph,
                const RerunGroups& groups, std::int64_t room)
      : found_(gaps_of(with_energies(problem, memories, graph), groups, room, true)),
        gaps_(found_.gaps),
        rows_(found_.runs) {
    std::vector<std::int64_t> gaps_of_value(graph.values.size(), 0);
    for (const Gap& gap : gaps_) ++gaps_of_value[gap.value];
    const CopyEnergy copies(problem, memories);
    for (const Gap& gap : gaps_) {
      const Bytes bytes{gap.bytes};
      copies_.push_back(in_pj(copies.least_back(bytes)) +
                        in_pj(copies.least_out(bytes)) / gaps_of_value[gap.value]);
    }
  }

  [[nodiscard]] bool is_needless() const { return rows_.empty(); }

  /// pJ.
  [[nodiscard]] std::int64_t solve(const Work& work) const {
    return bound_of(row_prices([this](OsiClpSolverInterface& program) { load(program); }, work));
  }

 private:
  /// The same, whose times are pJ of a run.
  static OperatorGraph with_energies(const Problem& problem, const OffloadMemories& memories,
                                     OperatorGraph graph) {
    const std::vector<Energy> energies = run_energies(problem, memories.processor, graph);
    for (std::size_t node = 0; node < graph.nodes.size(); ++node)
      graph.nodes[node].time = Time{in_pj(energies[node])};
    return graph;
  }

  // Columns: reruns, then copies, by gap. Each covers what it frees; that nobody takes both is left
  // to bound_of().
  void load(OsiClpSolverInterface& program) const {
    RowMatrix matrix;
    std::vector<double> least, most;
    for (const TightRun& row : rows_) {
      const auto add = [&](std::size_t column, std::size_t gap) {
        matrix.add(column, static_cast<double>(gaps_[gap].bytes) / byte_unit());
      };
      for (std::size_t gap = 0; gap < gaps_.size(); ++gap) {
        if (gaps_[gap].reruns && is_around(gaps_[gap], row)) add(gap, gap);
        if (is_within(gaps_[gap], row)) add(gaps_.size() + gap, gap);
      }
      matrix.end_row();
      least.push_back(static_cast<double>(row.above) / byte_unit());
      most.push_back(program.getInfinity());
    }
    std::vector<double> costs;
    for (const Gap& gap : gaps_) costs.push_back(static_cast<double>(gap.time) / energy_unit());
    for (const std::int64_t copy : copies_)
      costs.push_back(static_cast<double>(copy) / energy_unit());
    const std::vector<double> low(2 * gaps_.size(), 0), high(2 * gaps_.size(), 1);
    program.loadProblem(matrix.packed(2 * gaps_.size()), low.data(), high.data(), costs.data(),
                        least.data(), most.data());
  }

  [[nodiscard]] double byte_unit() const {
    std::int64_t most = 1;
    for (const Gap& gap : gaps_) most = std::max(most, gap.bytes);
    return static_cast<double>(most);
  }
  [[nodiscard]] double energy_unit() const {
    std::int64_t most = 1;
    for (const Gap& gap : gaps_) most = std::max(most, gap.time);
    for (const std::int64_t copy : copies_) most = std::max(most, copy);
    return static_cast<double>(most);
  }

  /// By weak duality any prices give a bound.
  [[nodiscard]] std::int64_t bound_of(const std::vector<double>& prices) const {
    std::vector<std::int64_t> whole;
    EnergyWide bound = 0;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      const double price = prices[row] * energy_unit() / byte_unit() * kEnergyUnits;
      whole.push_back(price > 0 && price < 0x1p62 ? std::llround(price) : 0);
      bound += EnergyWide{whole.back()} * rows_[row].above;
    }
    std::vector<EnergyWide> before{0};
    for (const std::int64_t price : whole) before.push_back(before.back() + price);
    const auto rows_until = [&](std::uint32_t node) {
      return static_cast<std::size_t>(std::ranges::lower_bound(rows_, node, {}, &TightRun::node) -
                                      rows_.begin());
    };
    for (std::size_t g = 0; g < gaps_.size(); ++g) {
      const Gap& gap = gaps_[g];
      const EnergyWide until = before[rows_until(gap.before)];
      const EnergyWide around = until - before[rows_until(gap.first)],
                       within = until - before[rows_until(gap.after + 1)];
      EnergyWide least =
          std::min<EnergyWide>(0, EnergyWide{copies_[g]} * kEnergyUnitsWhole - within * gap.bytes);
      if (gap.reruns)
        least = std::min(least, EnergyWide{gap.time} * kEnergyUnitsWhole - around * gap.bytes);
      bound += least;
    }
    if (bound <= 0) return 0;
    return static_cast<std::int64_t>((bound + kEnergyUnitsWhole - 1) / kEnergyUnitsWhole);
  }

  const Gaps found_;  ///< whose times are pJ
  const std::vector<Gap>& gaps_;
  const std::vector<TightRun>& rows_;
  std::vector<std::int64_t> copies_;  ///< pJ, by gap
};

Energy of_runs(const Problem& problem, ProcessorId processor, const OperatorGraph& graph) {
  Energy sum;
  for (const Energy& energy : run_energies(problem, processor, graph)) sum += energy;
  return sum;
}

}  // namespace

Energy energy_of_operators(const Problem& problem, ProcessorId processor,
                           const OperatorGraph& graph) {
  return of_pj(in_pj(at_source(problem.platform, of_runs(problem, processor, graph))));
}

Energy energy_bound(const Problem& problem, const OffloadMemories& memories,
                    const OperatorGraph& graph, const RerunGroups& groups, std::int64_t room) {
  Energy load = of_runs(problem, memories.processor, graph);
  const EnergyProgram program(problem, memories, graph, groups, room);
  if (!program.is_needless()) load += of_pj(program.solve(problem.work));
  return of_pj(in_pj(at_source(problem.platform, load)));
}

}  // namespace plimsoll
