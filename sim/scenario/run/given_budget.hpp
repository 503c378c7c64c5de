/// The budget that a policy was given. A planner may plan for less than that, and what its plan
/// keeps to (Plan::limits) is then smaller, too; reports show the given budget.
#pragma once

#include "plan/core/plan.hpp"

#include <utility>
#include <vector>

namespace plimsoll {

struct BoundPolicy;

/// What the parameters of `policy` say of a budget, for each memory of the processors on which its
/// plan runs, but for those that only update; empty where they say nothing. O(steps).
[[nodiscard]] std::vector<std::pair<MemoryId, Bytes>> given_budgets(const BoundPolicy& policy,
                                                                    const Plan& plan,
                                                                    const Workload& workload,
                                                                    const Platform& platform);

}  // namespace plimsoll
