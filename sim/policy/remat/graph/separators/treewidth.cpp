#include "policy/claims/claims.hpp"
#include "policy/graph/computations.hpp"
#include "policy/interface/entry.hpp"
#include "policy/interface/registry.hpp"
#include "policy/remat/graph/separators/separator_recursion.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// Of a plan: more computations than these are refused.
constexpr std::size_t kMostComputations = 4'000'000;

/// Optimizers change parameters, so they run after all else.
std::vector<std::uint32_t> computations_in(const std::vector<RunUnit>& units,
                                           const std::vector<std::uint32_t>& runs,
                                           std::uint32_t optimizer_begin, std::size_t operators) {
  std::vector<std::uint32_t> computations;
  for (const std::uint32_t unit : runs)
    computations.insert(computations.end(), units[unit].nodes.begin(), units[unit].nodes.end());
  for (std::uint32_t node = optimizer_begin; node < operators; ++node) computations.push_back(node);
  return computations;
}

/// The order of the graph where the recursion needs no less than that, as it may on small graphs.
std::vector<std::uint32_t> leaner(const OperatorGraph& graph,
                                  std::vector<std::uint32_t> recursive) {
  std::vector<std::uint32_t> once = all_once(graph);
  const auto peak = [&](const std::vector<std::uint32_t>& computations) {
    return judge_computations(graph, computations)->peak;
  };
  return peak(recursive) < peak(once) ? std::move(recursive) : std::move(once);
}

Planned plan_treewidth(const Problem& problem, const SingleProcessorParameters& parameters) {
  const ProcessorId processor = processor_for(problem, parameters);
  const OperatorGraph graph = operator_graph(problem, processor);
  const std::uint32_t optimizer_begin = problem.workload.optimizer_begin;
  const std::vector<RunUnit> units =
      run_units(graph, rerun_groups(graph, ChangesByOnce::join), optimizer_begin);
  const TreeDecomposition tree = min_fill_decomposition(undirected(units), problem.work);
  const SeparatorTree separators = separator_tree(tree);
  const auto runs = separator_recursion(units, separators, kMostComputations, problem.work);
  if (!runs)
    refuse(
        parameters.where,
        fmt::format("the recursion runs the {} operators of `{}` more than {} times in all (width "
                    "{}, depth {})",
                    graph.nodes.size(), problem.workload.name, kMostComputations, tree.width(),
                    separators.depth()));
  const std::vector<std::uint32_t> computations =
      leaner(graph, computations_in(units, *runs, optimizer_begin, graph.nodes.size()));
  Plan plan = plan_of_computations(problem, graph, processor, parameters.name, computations);
  plan.claims = claims_of(plan, problem);
  return plan;
}

}  // namespace

PolicyInfo remat_treewidth_policy() {
  return make_policy<SingleProcessorParameters>(
      {.name = "remat/treewidth",
       .summary = "Cuts the graph into halves again and again, and runs each half anew for every "
                  "value that is wanted of it: little memory, much time.",
       .paper =
           "Kumar, Purohit, Svitkina, Vee, Wang 2019, \"Efficient Rematerialization for Deep "
           "Networks\", NeurIPS, as reconstructed: separators are bags of a min-fill "
           "elimination, and values are released after their last reader; where the order of the "
           "graph needs no more, that is taken",
       .assumes = "any workload of one processor, one microbatch. On compute graphs all runs are "
                  "free; of networks, whose backwards run once, only forwards run again",
       .guarantees = "none on time, and no budget; each operator runs at most (k + 2)^log2(n) "
                     "times for a width k, and a recursion of more than 4,000,000 runs is refused",
       .complexity = "O(runs x n) at worst"},
      single_processor_record<SingleProcessorParameters>("remat/treewidth"), plan_treewidth);
}

}  // namespace plimsoll
