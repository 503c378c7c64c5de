/// Where an allocator's memory is that nobody asked for: gaps by their cause, and who keeps segments
/// cut.
///
///   reserved = requested + rounding + tails + holes
///
/// where `requested` counts what other streams still use after it was freed, too.
///
/// Worked example, caching: 11 MiB - 100 B take a segment of 12 MiB whole. Rounding to 512 B costs
/// 100 B; the tail of 1 MiB is not cut off, as it is not more than 1 MiB; there is no hole.
#pragma once

#include "memory/allocator.hpp"

#include <span>
#include <vector>

namespace plimsoll {

struct MemoryGaps {
  Bytes rounding;  ///< sizes that requests are rounded up to
  Bytes tails;     ///< what blocks have beyond that, because they were not split
  Bytes holes;     ///< free pieces

  friend bool operator==(const MemoryGaps&, const MemoryGaps&) = default;
};

/// `held` are all blocks that are in use or awaited; none of an ideal memory. O(held).
[[nodiscard]] MemoryGaps gaps_of(const Allocator& memory, std::span<const MemoryBlock> held);

/// A segment of which part is free, and the blocks in use that keep it: first those with free pieces
/// on both sides, then those with one on one side, each largest first.
struct CutSegment {
  MemorySegment segment;
  std::vector<MemoryPiece> keepers;
};

/// Those with the most free bytes first. Of an arena what is free behind the last block is no hole,
/// but counts as free here. O(pieces log pieces).
[[nodiscard]] std::vector<CutSegment> cut_segments(const Allocator& memory);

}  // namespace plimsoll
