/// Runs in memories that are placed ahead of time, for tests.
#pragma once

#include "execution/observer.hpp"
#include "execution/program.hpp"
#include "memory/placement/buffers.hpp"
#include "support/played.hpp"

#include <map>
#include <utility>
#include <vector>

namespace plimsoll::test {

/// The platform with `allocator: {static: ...}` in the memory of every processor.
inline Platform placed_ahead(Platform platform, PlacedSettings settings = {}) {
  for (const Processor& processor : platform.processors) {
    Memory& memory = platform.memories[index(processor.memory)];
    memory.allocator = AllocatorKind::placed;
    memory.placed = settings;
  }
  return platform;
}

/// Requires of every block that it shares no byte with another in use, and notes the lifetimes as
/// the observer is told of them.
class PlacedBlocks final : public Observer {
 public:
  void block_taken(MemoryId memory, std::optional<BufferId> /*buffer*/, StepId /*of*/,
                   const MemoryBlock& block, const MemoryPiece& piece, Time /*now*/) override {
    auto& in_use = in_use_[memory];
    REQUIRE(piece.offset == block.offset);
    const auto above = in_use.lower_bound(piece.offset);
    if (above != in_use.end()) REQUIRE(piece.offset + piece.size <= above->first);
    if (above != in_use.begin()) {
      const auto& [offset, size] = *std::prev(above);
      REQUIRE(offset + size <= piece.offset);
    }
    in_use.emplace(piece.offset, piece.size);
    Bytes& end = end_[memory];
    end = std::max(end, piece.offset + piece.size);
    open_[memory][piece.offset] = lifetimes_[memory].size();
    lifetimes_[memory].push_back({clock_++, INT64_MAX, piece.size});
  }
  void block_given_back(MemoryId memory, const MemoryBlock& block, Time /*now*/) override {
    REQUIRE(in_use_[memory].erase(block.offset) == 1);
    lifetimes_[memory][open_[memory].at(block.offset)].upper = clock_++;
  }

  [[nodiscard]] Bytes end_of(MemoryId memory) { return end_[memory]; }
  [[nodiscard]] const std::vector<TimedBuffer>& lifetimes(MemoryId memory) {
    return lifetimes_[memory];
  }

 private:
  std::map<MemoryId, std::map<Bytes, Bytes>> in_use_;      ///< sizes by offset
  std::map<MemoryId, std::map<Bytes, std::size_t>> open_;  ///< lifetimes by offset
  std::map<MemoryId, std::vector<TimedBuffer>> lifetimes_;
  std::map<MemoryId, Bytes> end_;
  std::int64_t clock_ = 0;
};

}  // namespace plimsoll::test
