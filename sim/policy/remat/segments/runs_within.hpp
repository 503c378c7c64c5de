/// Planners of recomputation under a budget in memories whose space breaks up.
///
/// Such a planner counts bytes. What it counts is what an `ideal` memory needs; an arena or a cache
/// may have no block although enough is free, and more often for the plan of more bytes. So there
/// its plans are judged, and smaller budgets decide as policy/budget/smaller_budgets.hpp says.
#pragma once

#include "policy/budget/smaller_budgets.hpp"

namespace plimsoll {

/// The answer of `plan`, whose plans are within the budget in bytes; in an arena or a cache one
/// that runs. `quick`, where given, takes less time: it plans for smaller budgets, and for this one
/// where the plan of `plan` does not run.
[[nodiscard]] Planned plan_that_runs(const Problem& problem, ProcessorId processor, Bytes budget,
                                     const BudgetPlan& plan, const BudgetPlan& quick = {});

}  // namespace plimsoll
