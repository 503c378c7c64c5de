/// The planners that search for reruns: what `remat/search` and `remat/moccasin` have in common.
#pragma once

#include "policy/budget/budget.hpp"
#include "policy/remat/graph/search/exact_search.hpp"
#include "policy/remat/graph/search/rerun_search.hpp"

#include <vector>

namespace plimsoll {

struct GraphSearchParameters : BudgetParameters {
  std::optional<std::int64_t> computations;  ///< most runs of an operator
  std::optional<std::int64_t> iterations;
  std::int64_t seed = 1;
  std::optional<FirstRuns> order;   ///< of first runs: else in order. `free` is for compute graphs
  Time useful = Time::unlimited();  ///< of who asks: plans that take as long are of no use
};

/// Adds budget, iterations and seed to a record of them.
void add_search_parameters(Record<GraphSearchParameters>& record);

/// A staged plan within the budget, and the gap bound; what none is found for names a budget for
/// which one is. Never slower than one that the planners of chains have for the same budget, but
/// for the reruns of an operator beyond `computations`.
[[nodiscard]] Planned plan_by_search(const Problem& problem,
                                     const GraphSearchParameters& parameters);

/// The same in bytes alone: whether it runs in an arena or a cache is not asked.
[[nodiscard]] Planned searched_plan(const Problem& problem,
                                    const GraphSearchParameters& parameters);

inline constexpr const char* kRotor = "remat/rotor";
inline constexpr const char* kBlocks = "remat/blocks";

/// The plans that these policies have, that of remat/blocks whatever the budget.
[[nodiscard]] std::vector<Plan> plans_of(std::initializer_list<const char*> policies,
                                         const Problem& problem, ProcessorId processor,
                                         Bytes budget);

/// The reruns of the plans that the planners of chains have for a network: none for a compute
/// graph.
[[nodiscard]] std::vector<std::vector<Rerun>> chain_starts(const Problem& problem,
                                                           ProcessorId processor, Bytes budget,
                                                           const RerunGroups& groups);

/// The staged plan that runs the same as a sequence of computations: each rerun in the stage of the
/// first run that follows it. O(computations log computations).
[[nodiscard]] std::vector<Rerun> reruns_of(std::span<const std::uint32_t> computations,
                                           const RerunGroups& groups);

}  // namespace plimsoll
