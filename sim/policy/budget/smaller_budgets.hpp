/// Planners with a budget that say how much they need at least, and that can be asked not to be
/// slower with more of it.
///
/// A heuristic that is told of more memory may find a slower plan, although what it finds for less
/// still fits. Whoever wants the faster one says `improve`: then the planner is asked for smaller
/// budgets as well, fixed parts of a budget that limits nothing, and a plan is never slower than
/// those for the parts below its budget. Where that is few bytes there is a part for every budget.
///
/// In an arena, whose space breaks up, a plan may not even run although it keeps to its budget in
/// bytes. There smaller budgets are asked for without `improve`, too, where the plan for the budget
/// does not run: the fastest of those that run is taken.
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
  Bytes most;              ///< limits nothing, where space does not break up
  std::int64_t parts = 1;  ///< of `most`: the smaller budgets
  /// Whether some plan runs, where that is known for less than plan() costs.
  std::function<bool(const Problem& problem, Bytes budget)> has_plan = {};
  std::optional<MemoryId> storage = {};  ///< where tensors leave to
  bool improves = false;                 ///< smaller budgets are asked for where the plan runs, too
};

enum class PlanningTime : std::uint8_t { linear, quadratic };  ///< in the number of stages

/// As many parts as such a planner can be asked for: 64 up to 64 stages, or 16 where its time is
/// quadratic; of longer chains fewer, so that all of them take no longer, but at least 2.
[[nodiscard]] std::int64_t budget_parts_for(const Problem& problem, PlanningTime time);

/// The largest part that is less than `budget`, the last aside; 0 B where none is.
[[nodiscard]] Bytes part_below(const BudgetPlanner& planner, Bytes budget);

/// The fastest, by what they claim, of the plan for `budget` and those for the parts below it, with
/// the bounds and the model's time of the first. Parts are asked from the largest down, until the
/// bound says that less memory cannot be faster, or a planner that it cannot do; nobody is asked
/// where the first is optimal, or claims no makespan.
[[nodiscard]] Planned fastest_of_smaller_budgets(const Problem& problem, Bytes budget,
                                                 const BudgetPlanner& planner);

/// The plan for `budget`; where `planner.improves`, fastest_of_smaller_budgets(). Where the plan for `budget`
/// does not run, or in an arena or cache none of the parts below it does either, least_budget()
/// decides: the fastest of what runs within that and of the parts takes its place, or, if it is
/// more, it is stated as the smallest budget. Where no budget helps, because the storage never holds
/// what the user makes leave, the least capacity of the storage is stated with which there is a
/// plan: one for `budget`, or else for any.
[[nodiscard]] Planned plan_for_budget(const Problem& problem, ProcessorId processor, Bytes budget,
                                      const BudgetPlanner& planner);

/// The least budget tried, from `from` up, within which the planner has a plan that runs, if the
/// processor's memory had as much: `from` itself, or else between the first part (or, beyond the
/// last, multiple by a power of two) where one runs and the one below it, found by halving, at most
/// as often as there are parts (and 32 times). Nothing where none runs with unlimited memory.
[[nodiscard]] std::optional<Bytes> least_budget(const Problem& problem, ProcessorId processor,
                                                Bytes from, const BudgetPlanner& planner);

}  // namespace plimsoll
