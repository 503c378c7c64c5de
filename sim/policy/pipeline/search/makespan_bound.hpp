/// Lower bounds on the makespan of a pipeline with a flush.
#pragma once

#include "policy/pipeline/search/task_network.hpp"

namespace plimsoll {

/// No orders of these tasks have a shorter makespan. The greatest of
///   - one microbatch's tasks one after the other, with their messages;
///   - for each device and any of its classes: the least time before the first of their tasks can
///     begin, the time of all of them, and the least time after the last of them (the classes of at
///     least some time before and at least some time after, for all such pairs: Jackson's bound of
///     one machine);
///   - what all microbatches keep, each for the least time from the start of its forward to the
///     ends of its backward and its weight half, over the sum of `limits` (bytes; INT64_MAX where
///     there is none): no memory of the devices holds more at a time.
/// Schedules that move what they keep from device to device are covered; those with two copies of
/// the parameters are not. O(slots + devices chunks^3).
[[nodiscard]] Time makespan_bound(const TaskNetwork& network,
                                  const std::vector<std::int64_t>& limits);

/// The same for schedules that run some of the microbatches in the other direction, with a second
/// copy of the parameters: all work and, before it, the least time of each device, shared equally.
/// `network` is of one slot a device. O(devices).
[[nodiscard]] Time two_way_bound(const TaskNetwork& network);

}  // namespace plimsoll
