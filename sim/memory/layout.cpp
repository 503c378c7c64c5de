#include "memory/layout.hpp"

#include <algorithm>
#include <cassert>

namespace plimsoll {

std::vector<MemorySegment> segments_of(std::span<const MemoryPiece> pieces) {
  std::vector<MemorySegment> segments;
  for (const MemoryPiece& piece : pieces) {
    if (segments.empty() || segments.back().number != piece.segment) {
      assert(segments.empty() || segments.back().number < piece.segment);
      segments.push_back({.number = piece.segment});
    }
    MemorySegment& segment = segments.back();
    segment.size += piece.size;
    if (piece.state != MemoryPiece::State::free) {
      ++segment.blocks_in_use;
      continue;
    }
    segment.free += piece.size;
    segment.largest_free = std::max(segment.largest_free, piece.size);
  }
  return segments;
}

}  // namespace plimsoll
