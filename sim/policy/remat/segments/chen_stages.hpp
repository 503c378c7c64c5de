/// Segments by size on a chain: remat/chen-greedy with stages as candidates.
///
/// Chen, Xu, Zhang, Guestrin 2016, "Training Deep Nets with Sublinear Memory Cost",
/// arXiv:1604.06174.
#pragma once

#include "policy/budget/budget.hpp"

namespace plimsoll {

/// With a budget the cheapest plan that fits, of a sweep over the thresholds; without, the plan of
/// the least peak of those with 1/2 to 2 times sqrt(x y), x the bytes of the checkpoints and y those
/// of the largest segment. O(stages) a threshold; stages + 1 of them, at most 1,024.
[[nodiscard]] Planned plan_chen_stages(const Problem& problem, const BudgetParameters& parameters);

}  // namespace plimsoll
