/// Lower bounds on the makespan of a pipeline with a flush.
#pragma once

#include "policy/pipeline/bounds/task_network.hpp"

namespace plimsoll {

/// No orders of these tasks have a shorter makespan. The greatest of
///   - one microbatch's tasks one after the other, with their messages;
///   - for each device and any of its classes: the least time before the first of their tasks can
///     begin, the time of all of them, and the least time after the last of them (the classes of at
///     least some time before and at least some time after, for all such pairs: Jackson's bound of
///     one machine);
///   - for each device what it has to wait for within its limit (`limits` by device, bytes;
///     INT64_MAX where there is none): memory_bound.hpp.
/// Schedules with two copies of the parameters are not covered, nor, where there are limits, those
/// that move what they keep from device to device or overlap tasks. O(slots + devices chunks^3).
[[nodiscard]] Time makespan_bound(const TaskNetwork& network,
                                  const std::vector<std::int64_t>& limits);

/// The same for schedules that run some of the microbatches in the other direction, with a second
/// copy of the parameters: all work and, before it, the least time of each device, shared equally.
/// `network` is of one slot a device. O(devices).
[[nodiscard]] Time two_way_bound(const TaskNetwork& network);

}  // namespace plimsoll
