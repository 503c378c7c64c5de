/// MadPipe's outer loop: targets for its dynamic program, schedules for the allocations.
#pragma once

#include "policy/pipeline/periodic/scheduled_allocation.hpp"

#include <variant>

namespace plimsoll {

/// The best of the contiguous optimum (policy/pipeline/periodic/next_fit.hpp, all cuts; where cuts
/// share a link in one direction, of its cuts scheduled as every other allocation) and of the
/// allocations that MadPipe's program (policy/pipeline/periodic/madpipe.hpp) finds for targets
/// between a bound of all allocations and the best period so far; or the least limit on all devices
/// with which it found any. As reconstructed; the stopping rule is a choice: the targets are those
/// of a bisection over whether an allocation is found or a schedule known, 16 of them, each tried
/// with and without overlap; each new allocation is scheduled with `setting.nodes`. `bound` of the
/// answer is that of all allocations.
///
/// Throws InputError where devices are not alike in time, or for more than some 100,000 devices x
/// stages^2.
/// `where`: of the parameter. Precondition: at most as many devices as stages, and 24 of them.
[[nodiscard]] std::variant<ScheduledAllocation, Bytes> search_allocations(
    const PeriodicSetting& setting, const Location& where);

/// Slots of an allocation, at most: two a device, and 24.
[[nodiscard]] std::size_t most_shared_slots(std::size_t devices, std::size_t stages);

}  // namespace plimsoll
