/// Planners with a budget that are not slower with more of it, and say how much they need at least.
///
/// A heuristic that is told of more memory may find a slower plan, although what it finds for less
/// still fits; in an arena, whose space breaks up, one that does not even run. So it is asked for
/// smaller budgets as well, fixed parts of a budget that limits nothing ("rungs"): a plan is then
/// never slower than those for the rungs below its budget. Where that is few bytes there is a rung
/// for every budget.
///
/// Nor does a plan run for less memory only: where space breaks up, the least budget with a plan is
/// looked for in the same way whatever the budget (least_budget()), and what is less is infeasible.
///
/// A plan that claims a makespan runs: the claim is computed, or taken from an execution
/// (policy/claims/judged_claims.hpp). Without a judge, a plan that claims none is taken as it is.
#pragma once

#include "policy/interface/policy.hpp"

#include <cstdint>
#include <functional>
#include <optional>

namespace plimsoll {

/// For the problem that is asked about, or for one that has no end to the processor's memory. An
/// answer that is infeasible names a budget below which no plan of this kind runs.
using BudgetPlan = std::function<Planned(const Problem& problem, Bytes budget)>;

struct BudgetPlanner {
  BudgetPlan plan;
  /// No plan of this kind within the budget is faster.
  std::function<Time(Bytes budget)> bound;
  Bytes most;  ///< limits nothing, where space does not break up
  std::int64_t rungs = 1;
  /// Whether some plan runs, where that is known for less than plan() costs.
  std::function<bool(const Problem& problem, Bytes budget)> has_plan = {};
  std::optional<MemoryId> storage = {};  ///< where tensors leave to
  bool climbs = true;                    ///< smaller budgets are asked for even where the plan runs
};

enum class PlanningTime : std::uint8_t { linear, quadratic };  ///< in the number of stages

/// As many rungs as such a planner can be asked for: 64 up to 64 stages, or 16 where its time is
/// quadratic; of longer chains fewer, so that all of them take no longer, but at least 2.
[[nodiscard]] std::int64_t rungs_for(const Problem& problem, PlanningTime time);

/// The largest rung that is less than `budget`, the last rung aside; 0 B where none is.
[[nodiscard]] Bytes rung_below(const BudgetPlanner& planner, Bytes budget);

/// The fastest, by what they claim, of the plan for `budget` and those for the rungs below it, with
/// the bounds and the model's time of the first. Rungs are asked from the largest down, until the
/// bound says that less memory cannot be faster, or a planner that it cannot do; nobody is asked
/// where the first is optimal, or claims no makespan.
[[nodiscard]] Planned fastest_of_rungs(const Problem& problem, Bytes budget,
                                       const BudgetPlanner& planner);

/// The same. Where the plan for `budget` does not run, or in an arena or cache none of the rungs
/// below it does either, least_budget() decides: what runs within
/// that takes its place, or, if it is more, it is stated as the smallest budget. Where no budget
/// helps, because the storage never holds what the user makes leave, the least capacity of the
/// storage is stated with which there is a plan: one for `budget`, or else for any.
[[nodiscard]] Planned not_slower_with_more(const Problem& problem, ProcessorId processor,
                                           Bytes budget, const BudgetPlanner& planner);

/// The least budget tried, from `from` up, within which the planner has a plan that runs, if the
/// processor's memory had as much: `from` itself, or else between the first rung (or, beyond the
/// last, multiple by a power of two) where one runs and the one below it, found by halving, at most
/// as often as there are rungs (and 32 times). Nothing where none runs with unlimited memory.
[[nodiscard]] std::optional<Bytes> least_budget(const Problem& problem, ProcessorId processor,
                                                Bytes from, const BudgetPlanner& planner);

}  // namespace plimsoll
