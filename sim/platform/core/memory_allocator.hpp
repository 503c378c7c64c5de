/// Makes the allocator that a platform states for a memory.
#pragma once

#include "memory/allocator.hpp"
#include "platform/core/platform.hpp"

namespace plimsoll {

/// Of a memory of which a plan may use `usable` bytes. That is the size of an ideal memory or an
/// arena. An allocator that takes segments has the whole memory, whatever the plan's limit: a budget
/// counts what is requested, what is held beyond is the device's. One that is placed ahead of time is
/// an ideal one here: the engine places (execution/placements.hpp).
[[nodiscard]] Allocator make_allocator(const Memory& memory, Bytes usable);

}  // namespace plimsoll
