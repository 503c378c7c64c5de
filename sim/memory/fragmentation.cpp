#include "memory/fragmentation.hpp"

#include <algorithm>
#include <tuple>

namespace plimsoll {

MemoryGaps gaps_of(const Allocator& memory, std::span<const MemoryBlock> held) {
  MemoryGaps gaps;
  const AllocatorUse now = memory.counters().now;
  gaps.holes = now.reserved - now.active;
  if (memory.is_ideal()) return gaps;
  for (const MemoryBlock& block : held) {
    if (block.requested == Bytes{}) continue;
    const Bytes rounded = memory.rounded(block.requested);
    gaps.rounding += rounded - block.requested;
    gaps.tails += memory.piece_of(block).size - rounded;
  }
  return gaps;
}

namespace {

bool is_free_beside(std::span<const MemoryPiece> pieces, std::size_t p, std::size_t other) {
  return other < pieces.size() && pieces[other].segment == pieces[p].segment &&
         pieces[other].state == MemoryPiece::State::free;
}

}  // namespace

std::vector<CutSegment> cut_segments(const Allocator& memory) {
  const std::vector<MemoryPiece> pieces = memory.pieces();
  std::vector<CutSegment> cut;
  std::size_t p = 0;
  for (const MemorySegment& segment : memory.segments()) {
    std::vector<std::pair<int, MemoryPiece>> keepers;
    for (; p < pieces.size() && pieces[p].segment == segment.number; ++p) {
      if (pieces[p].state == MemoryPiece::State::free) continue;
      const int sides = (p > 0 && is_free_beside(pieces, p, p - 1) ? 1 : 0) +
                        (is_free_beside(pieces, p, p + 1) ? 1 : 0);
      keepers.emplace_back(sides, pieces[p]);
    }
    if (!segment.is_cut()) continue;
    std::ranges::stable_sort(keepers, [](const auto& a, const auto& b) {
      return std::tuple(a.first, a.second.size) > std::tuple(b.first, b.second.size);
    });
    CutSegment& it = cut.emplace_back(CutSegment{segment, {}});
    for (const auto& [sides, piece] : keepers) it.keepers.push_back(piece);
  }
  std::ranges::stable_sort(cut, std::ranges::greater{},
                           [](const CutSegment& it) { return it.segment.free; });
  return cut;
}

}  // namespace plimsoll
