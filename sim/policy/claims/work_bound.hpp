/// The lower bound on the makespan of every plan: the work of its busiest processor.
#pragma once

#include "policy/interface/policy.hpp"

namespace plimsoll {

/// No plan that runs the same operators on the same processors is shorter: each operator once, one
/// after the other on each stream of its processor, and the processor with most to do;
/// recomputation does not count. Overlapped pairs stay pairs, of the times that they have.
/// O(steps).
[[nodiscard]] Time work_bound(const Plan& plan, const Problem& problem);

}  // namespace plimsoll
