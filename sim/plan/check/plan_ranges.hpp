/// Checks that everything that a plan refers to exists. All other code indexes without checking, so
/// a plan from outside is checked here first.
#pragma once

#include "plan/core/plan.hpp"

#include <string>
#include <vector>

namespace plimsoll {

/// One sentence for every kind of id or count that is out of range; empty for a sound plan.
/// O(steps + reads).
[[nodiscard]] std::vector<std::string> check_ranges(const Plan& plan, const Workload& workload,
                                                    const Platform& platform);

}  // namespace plimsoll
