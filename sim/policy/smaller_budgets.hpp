/// Planners with a budget that are not slower with more of it.
///
/// A heuristic that is told of more memory may find a slower plan, although what it finds for less
/// still fits. So it is asked for smaller budgets as well, fixed parts of a budget that limits
/// nothing ("rungs"): a plan is then never slower than those for the rungs below its budget. Where
/// that is few bytes there is a rung for every budget.
#pragma once

#include "policy/policy.hpp"

#include <cstdint>
#include <functional>

namespace plimsoll {

struct BudgetPlanner {
  std::function<Planned(Bytes budget)> plan;
  /// No plan of this kind within the budget is faster.
  std::function<Time(Bytes budget)> bound;
  Bytes most;  ///< limits nothing
  std::int64_t rungs = 1;
};

enum class PlanningTime : std::uint8_t { linear, quadratic };  ///< in the number of stages

/// As many rungs as such a planner can be asked for: 64 up to 64 stages, or 16 where its time is
/// quadratic; of longer chains fewer, so that all of them take no longer, but at least 2.
[[nodiscard]] std::int64_t rungs_for(const Problem& problem, PlanningTime time);

/// The fastest, by what they claim, of the plan for `budget` and those for the rungs below it, with
/// the bounds and the model's time of the first. Rungs are asked from the largest down, until the
/// bound says that less memory cannot be faster; nobody is asked where the first is optimal.
[[nodiscard]] Planned not_slower_with_more(Bytes budget, const BudgetPlanner& planner);

}  // namespace plimsoll
