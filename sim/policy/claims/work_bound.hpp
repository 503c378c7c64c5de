/// The lower bound on the makespan of every plan: the work of its busiest processor.
#pragma once

#include "policy/interface/policy.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

/// What a plan has to do on a processor: each operator once.
struct ProcessorWork {
  Time total;
  std::int64_t streams = 0;  ///< that share it; 0 where there is none
};

/// By processor. O(steps).
[[nodiscard]] std::vector<ProcessorWork> work_by_processor(const Plan& plan,
                                                           const Problem& problem);

/// Of the processor with most to do on each of its streams.
[[nodiscard]] Time work_bound(const std::vector<ProcessorWork>& work);

/// No plan that runs the same operators on the same processors is shorter: each operator once, one
/// after the other on each stream of its processor, and the processor with most to do;
/// recomputation does not count. Overlapped pairs stay pairs, of the times that they have.
/// O(steps).
[[nodiscard]] Time work_bound(const Plan& plan, const Problem& problem);

}  // namespace plimsoll
