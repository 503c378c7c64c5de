#include "platform/core/without_limits.hpp"

namespace plimsoll {

Platform without_limits(Platform platform) {
  for (Memory& memory : platform.memories) memory.capacity = Bytes::unlimited();
  return platform;
}

}  // namespace plimsoll
