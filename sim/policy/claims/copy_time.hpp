/// The time of a single copy on links that nothing else uses.
#pragma once

#include "policy/interface/policy.hpp"

namespace plimsoll {

/// From its start to its end: latencies, the transfer of whole blocks, erasing. Zero within one
/// memory. Precondition: a route joins the memories.
[[nodiscard]] Time copy_time(const Problem& problem, MemoryId from, MemoryId to, Bytes bytes);

/// Of that, the time in which bytes move.
[[nodiscard]] Time moving_time(const Problem& problem, MemoryId from, MemoryId to, Bytes bytes);

}  // namespace plimsoll
