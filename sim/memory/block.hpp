/// What allocators hand out, and what they count.
#pragma once

#include "base/quantity.hpp"

#include <cstdint>

namespace plimsoll {

/// What allocate() gives and free() takes back, once. Plain data.
struct MemoryBlock {
  Bytes requested;
  Bytes offset;              ///< address in an arena or a segment; 0 where there are no addresses
  std::uint32_t handle = 0;  ///< the allocator's own
};

struct MemoryUse {
  Bytes requested;
  Bytes allocated;
  Bytes reserved;

  friend bool operator==(const MemoryUse&, const MemoryUse&) = default;
};

}  // namespace plimsoll
