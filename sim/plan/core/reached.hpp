/// What operators read and write in memories that their processor reaches beside its own
/// (Processor::reaches).
///
/// A value that is there crosses once for each operator that uses it, at the memory's own latency and
/// bandwidth, and nothing hides behind that:
///
///   time of the operator += latency + bytes / bandwidth
///
/// for each buffer that it reads or makes; one that it changes in place is read and written.
/// Example: an operator that reads 3 B and makes 2 B in a memory of 1 B/s takes 5 s longer.
#pragma once

#include "plan/core/plan.hpp"

#include <vector>

namespace plimsoll {

/// The time of one such access.
[[nodiscard]] Time time_to_read(const Memory& memory, Bytes bytes);
[[nodiscard]] Time time_to_write(const Memory& memory, Bytes bytes);

/// What one step reads and writes in one memory that its processor reaches.
struct ReachedUse {
  StepId step{};
  MemoryId memory{};
  Bytes read, written;
  Time time;  ///< that the step takes longer
};

/// By step, in issue order. O(steps + reads); nothing at once where no processor reaches another
/// memory. Throws QuantityOverflow.
[[nodiscard]] std::vector<ReachedUse> reached_uses(const Plan& plan, const Workload& workload,
                                                   const Platform& platform);

}  // namespace plimsoll
