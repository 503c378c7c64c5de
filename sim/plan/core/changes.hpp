/// Which buffers the steps of a plan change in place.
#pragma once

#include "plan/core/plan.hpp"

#include <utility>
#include <vector>

namespace plimsoll {

/// The buffers that each step changes: (buffer, step), sorted.
using Changes = std::vector<std::pair<BufferId, StepId>>;

/// Of operators what they update and the gradients that they add to, of reductions what they move
/// into. O(steps + reads), and the sorting of what is found.
[[nodiscard]] Changes changes_of(const Plan& plan, const Workload& workload,
                                 const Platform& platform);

}  // namespace plimsoll
