/// The time of a single copy on links that nothing else uses.
#pragma once

#include "policy/interface/policy.hpp"

namespace plimsoll {

/// From its start to its end: latencies, the transfer of whole blocks, erasing. Zero within one
/// memory. Precondition: a route joins the memories.
[[nodiscard]] Time copy_time(const Problem& problem, MemoryId from, MemoryId to, Bytes bytes);

/// What moves: the bytes, rounded up to whole blocks of the two memories.
[[nodiscard]] Bytes whole_blocks(const Problem& problem, MemoryId from, MemoryId to, Bytes bytes);

/// The time in which bytes move, of the copy's.
[[nodiscard]] Time moving_time(const Problem& problem, MemoryId from, MemoryId to, Bytes bytes);

}  // namespace plimsoll
