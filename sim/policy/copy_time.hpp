/// How long one copy takes when nothing is in its way.
#pragma once

#include "policy/policy.hpp"

namespace plimsoll {

/// Time of one copy of `size` bytes, whole blocks and erasures of the memories included; zero
/// within one memory. Precondition: the memories are linked.
[[nodiscard]] Time copy_time(const Problem& problem, MemoryId from, MemoryId to, Bytes size);

}  // namespace plimsoll
