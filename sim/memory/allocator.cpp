#include "memory/allocator.hpp"

#include <cassert>

namespace plimsoll {

Allocator Allocator::of(Bytes capacity, const AllocatorSettings& settings) {
  switch (settings.kind) {
    case AllocatorKind::ideal:
    case AllocatorKind::placed:
      break;
    case AllocatorKind::best_fit:
      return best_fit(capacity, settings.alignment);
    case AllocatorKind::first_fit:
      return first_fit(capacity, settings.alignment);
    case AllocatorKind::caching:
      return caching(capacity, settings.caching);
    case AllocatorKind::bfc:
      return bfc(capacity, settings.bfc);
  }
  return ideal(capacity);
}

std::vector<MemoryPiece> Allocator::pieces() const {
  if (is_ideal()) return {};
  if (const auto* arena = std::get_if<ArenaAllocator>(&kind_)) return arena->pieces();
  if (const auto* regions = std::get_if<BfcAllocator>(&kind_)) return regions->pieces();
  if (const auto* placed = std::get_if<PlacedAllocator>(&kind_)) return placed->pieces();
  return std::get<CachingAllocator>(kind_).pieces();
}

MemoryPiece Allocator::piece_of(const MemoryBlock& block) const {
  assert(block.requested > Bytes{});
  if (const auto* arena = std::get_if<ArenaAllocator>(&kind_)) return arena->piece_of(block);
  if (const auto* regions = std::get_if<BfcAllocator>(&kind_)) return regions->piece_of(block);
  if (const auto* placed = std::get_if<PlacedAllocator>(&kind_)) return placed->piece_of(block);
  return std::get<CachingAllocator>(kind_).piece_of(block);
}

void Allocator::note_segments() {
  if (auto* regions = std::get_if<BfcAllocator>(&kind_)) regions->log().start();
  if (CachingAllocator* cache = as_caching()) cache->log().start();
}

std::vector<SegmentEvent> Allocator::take_segment_events() {
  if (auto* regions = std::get_if<BfcAllocator>(&kind_)) return regions->log().take();
  if (CachingAllocator* cache = as_caching()) return cache->log().take();
  return {};
}

std::vector<MemorySegment> Allocator::segments() const {
  if (const CachingAllocator* cache = as_caching()) return cache->segments();
  return segments_of(pieces());
}

Bytes Allocator::rounded(Bytes bytes) const {
  if (bytes == Bytes{}) return bytes;
  if (const auto* arena = std::get_if<ArenaAllocator>(&kind_)) return arena->rounded(bytes);
  if (std::holds_alternative<BfcAllocator>(kind_)) return BfcAllocator::rounded(bytes);
  if (const auto* placed = std::get_if<PlacedAllocator>(&kind_)) return placed->rounded(bytes);
  if (const CachingAllocator* cache = as_caching()) return cache->rounded(bytes);
  return bytes;
}

}  // namespace plimsoll
