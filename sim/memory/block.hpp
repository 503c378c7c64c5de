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

/// An offset at which nothing finds a place.
inline constexpr Bytes kNowhere = Bytes::unlimited();

struct MemoryUse {
  Bytes requested;
  Bytes allocated;
  Bytes reserved;

  friend bool operator==(const MemoryUse&, const MemoryUse&) = default;
};

/// allocated <= active <= reserved, requested <= active.
struct AllocatorUse {
  Bytes requested, allocated;
  Bytes active;    ///< allocated, and freed but awaited by another stream
  Bytes reserved;  ///< all segments

  friend bool operator==(const AllocatorUse&, const AllocatorUse&) = default;
};

/// All that frameworks report. What an allocator does not know stays 0.
struct AllocatorCounters {
  AllocatorUse now, peak;
  Bytes inactive_split;  ///< free blocks of segments that are cut; not of expandable ones
  std::size_t segments = 0;
  std::int64_t retries = 0;  ///< times that everything free was given back to ask once more
  std::int64_t ooms = 0;     ///< requests refused
  std::int64_t device_allocations = 0, device_frees = 0;  ///< of segments; of ranges of pages
};

}  // namespace plimsoll
