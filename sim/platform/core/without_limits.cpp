#include "platform/core/without_limits.hpp"

namespace plimsoll {

Platform without_limits(Platform platform) {
  for (Memory& memory : platform.memories) {
    memory.capacity = Bytes::unlimited();
    // Addresses then change nothing, and are not worth a placement.
    if (memory.allocator == AllocatorKind::placed) memory.allocator = AllocatorKind::ideal;
  }
  return platform;
}

}  // namespace plimsoll
