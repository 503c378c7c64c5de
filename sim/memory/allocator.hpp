/// Allocators of a simulated memory: sizes and addresses only.
///
/// Three numbers are kept apart, as frameworks report them:
///   requested   what the callers asked for
///   allocated   what the blocks take: `requested` rounded up to the alignment
///   reserved    what the allocator holds of the memory: of an arena the bytes ever granted, of a
///               cache its segments
///
/// `ideal` counts: no addresses, no fragmentation, all three equal. `best_fit` and `first_fit` are
/// arenas (arena.hpp), `caching` (caching.hpp, with a pool for each stream; the others know no
/// streams) and `bfc` (bfc.hpp) are those of frameworks. `placed` (placed.hpp) follows a placement that
/// was made before the run; without one it counts as `ideal` does.
///
/// Worked example, arena of 100 B with best fit, alignment 8: allocate 10 -> [0, 16), 20 -> [16, 40), 8 -> [40,
/// 48). Requested 38, allocated 48, reserved 48. Free the middle one: free are [16, 40) and [48,
/// 96), as the arena is cut to whole units of alignment. Now 9 takes 16 of the smaller: [16, 32).
///
/// An allocation of 0 bytes always succeeds and takes nothing. A capacity may be unlimited.
#pragma once

#include "base/quantity.hpp"
#include "memory/allocator_settings.hpp"
#include "memory/arena.hpp"
#include "memory/bfc.hpp"
#include "memory/block.hpp"
#include "memory/caching.hpp"
#include "memory/layout.hpp"
#include "memory/placed.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace plimsoll {

/// Exact accounting: a counter and its peak. All operations O(1), inline, no allocation.
class IdealAllocator final {
 public:
  explicit IdealAllocator(Bytes capacity) : capacity_(capacity) { assert(capacity >= Bytes{}); }

  /// Takes `bytes` if they are free. Precondition: bytes >= 0.
  [[nodiscard]] bool take(Bytes bytes) {
    assert(bytes >= Bytes{});
    if (bytes > free_bytes()) return false;
    used_ += bytes;
    peak_ = std::max(peak_, used_);
    return true;
  }
  /// Gives back any part of what was taken: a block as a whole, or byte by byte as a copy leaves.
  void give_back(Bytes bytes) {
    assert(Bytes{} <= bytes && bytes <= used_);
    used_ -= bytes;
  }

  [[nodiscard]] std::optional<MemoryBlock> allocate(Bytes bytes) {
    if (!take(bytes)) return std::nullopt;
    return MemoryBlock{bytes, Bytes{}, 0};
  }
  [[nodiscard]] bool allocate_all(std::span<MemoryBlock> blocks) {
    Bytes sum;
    for (const MemoryBlock& block : blocks) sum += block.requested;
    if (!take(sum)) return false;
    for (MemoryBlock& block : blocks) block = {block.requested, Bytes{}, 0};
    return true;
  }
  void free(const MemoryBlock& block) { give_back(block.requested); }

  [[nodiscard]] Bytes capacity() const { return capacity_; }
  [[nodiscard]] Bytes free_bytes() const {
    return capacity_.is_unlimited() ? capacity_ : capacity_ - used_;
  }
  [[nodiscard]] Bytes largest_free_block() const { return free_bytes(); }
  [[nodiscard]] MemoryUse now() const { return {used_, used_, used_}; }
  [[nodiscard]] MemoryUse peak() const { return {peak_, peak_, peak_}; }
  [[nodiscard]] AllocatorCounters counters() const {
    return {.now = {used_, used_, used_, used_}, .peak = {peak_, peak_, peak_, peak_}};
  }

 private:
  Bytes capacity_;
  Bytes used_;
  Bytes peak_;
};

/// Any of them, as a value. Movable, not copyable.
///
/// Contract of all: allocate() gives a block or nothing, and then changes nothing; free() takes a
/// block back that allocate() gave and that was not freed since. A request of more than
/// largest_free_block() fails, one of no more succeeds. allocate_all() gives a block for each
/// `requested`, in that order, or none, and then changes nothing: what was tried on the way counts
/// in no number and no peak. `caching` differs in two points: a refusal gives back what it had
/// cached, and a request may fail below largest_free_block(), as it is rounded up to segments.
/// capacity() is what was given to the constructor. Peaks are the greatest values of each of the
/// three numbers, each for itself. Precondition: bytes >= 0.
class Allocator {
 public:
  [[nodiscard]] static Allocator ideal(Bytes capacity) {
    return Allocator(IdealAllocator(capacity));
  }
  [[nodiscard]] static Allocator best_fit(Bytes capacity, Bytes alignment = Bytes{1}) {
    return Allocator(ArenaAllocator(capacity, alignment, ArenaRule::best_fit));
  }
  [[nodiscard]] static Allocator first_fit(Bytes capacity, Bytes alignment = Bytes{1}) {
    return Allocator(ArenaAllocator(capacity, alignment, ArenaRule::first_fit));
  }
  [[nodiscard]] static Allocator caching(Bytes capacity, const CachingSettings& settings = {}) {
    return Allocator(CachingAllocator(capacity, settings));
  }
  [[nodiscard]] static Allocator bfc(Bytes capacity, const BfcSettings& settings = {}) {
    return Allocator(BfcAllocator(capacity, settings));
  }
  [[nodiscard]] static Allocator placed(Bytes capacity, Bytes alignment,
                                        std::vector<PlacedBlock> blocks) {
    return Allocator(PlacedAllocator(capacity, alignment, std::move(blocks)));
  }
  /// Of kind `placed` an ideal one, as no placement is known.
  [[nodiscard]] static Allocator of(Bytes capacity, const AllocatorSettings& settings);

  [[nodiscard]] std::optional<MemoryBlock> allocate(Bytes bytes, std::uint32_t stream = 0) {
    if (IdealAllocator* counter = as_ideal()) return counter->allocate(bytes);
    if (auto* arena = std::get_if<ArenaAllocator>(&kind_)) return arena->allocate(bytes);
    if (auto* regions = std::get_if<BfcAllocator>(&kind_)) return regions->allocate(bytes);
    if (auto* placed = std::get_if<PlacedAllocator>(&kind_)) return placed->allocate(bytes);
    return std::get<CachingAllocator>(kind_).allocate(bytes, stream);
  }
  /// Fills in `blocks`, of which only `requested` is read. O(blocks log free blocks).
  [[nodiscard]] bool allocate_all(std::span<MemoryBlock> blocks, std::uint32_t stream = 0) {
    if (IdealAllocator* counter = as_ideal()) return counter->allocate_all(blocks);
    if (auto* arena = std::get_if<ArenaAllocator>(&kind_)) return arena->allocate_all(blocks);
    if (auto* regions = std::get_if<BfcAllocator>(&kind_)) return regions->allocate_all(blocks);
    if (auto* placed = std::get_if<PlacedAllocator>(&kind_)) return placed->allocate_all(blocks);
    return std::get<CachingAllocator>(kind_).allocate_all(blocks, stream);
  }
  /// Of arenas alone: takes `requested` of every block at its `offset`, which is a multiple of the
  /// alignment or kNowhere; all or none. O(blocks * free blocks that are large enough).
  [[nodiscard]] bool place_all(std::span<MemoryBlock> blocks) {
    return std::get<ArenaAllocator>(kind_).place_all(blocks);
  }
  void free(const MemoryBlock& block) {
    std::visit([&](auto& a) { a.free(block); }, kind_);
  }

  [[nodiscard]] Bytes capacity() const {
    return std::visit([](const auto& a) { return a.capacity(); }, kind_);
  }
  /// Free bytes in all, and in one piece; unlimited() of an unlimited memory.
  [[nodiscard]] Bytes free_bytes() const {
    return std::visit([](const auto& a) { return a.free_bytes(); }, kind_);
  }
  [[nodiscard]] Bytes largest_free_block() const {
    return std::visit([](const auto& a) { return a.largest_free_block(); }, kind_);
  }
  [[nodiscard]] MemoryUse now() const {
    return std::visit([](const auto& a) { return a.now(); }, kind_);
  }
  [[nodiscard]] MemoryUse peak() const {
    return std::visit([](const auto& a) { return a.peak(); }, kind_);
  }
  [[nodiscard]] AllocatorCounters counters() const {
    return std::visit([](const auto& a) { return a.counters(); }, kind_);
  }

  /// What lies where, in the order of addresses: pieces, and the segments that they make up. None of
  /// an ideal memory, which has no addresses. O(pieces + segments log segments).
  [[nodiscard]] std::vector<MemoryPiece> pieces() const;
  [[nodiscard]] std::vector<MemorySegment> segments() const;
  /// The piece of a block that is in use, of more than 0 bytes. Not of an ideal memory.
  [[nodiscard]] MemoryPiece piece_of(const MemoryBlock& block) const;
  /// What is taken from the device and given back from here on, for take_segment_events(). Arenas
  /// have all of their memory from the start.
  void note_segments();
  [[nodiscard]] std::vector<SegmentEvent> take_segment_events();
  /// What a request of `bytes` is rounded up to before a piece is looked for.
  [[nodiscard]] Bytes rounded(Bytes bytes) const;

  /// The counter itself where the memory is `ideal`, else nullptr: progressive release needs it.
  [[nodiscard]] IdealAllocator* as_ideal() { return std::get_if<IdealAllocator>(&kind_); }
  [[nodiscard]] bool is_ideal() const { return std::holds_alternative<IdealAllocator>(kind_); }
  /// The cache where the memory has one, else nullptr: why it refuses is told from its segments.
  [[nodiscard]] const CachingAllocator* as_caching() const {
    return std::get_if<CachingAllocator>(&kind_);
  }
  [[nodiscard]] CachingAllocator* as_caching() { return std::get_if<CachingAllocator>(&kind_); }

 private:
  using Kind =
      std::variant<IdealAllocator, ArenaAllocator, CachingAllocator, BfcAllocator, PlacedAllocator>;
  explicit Allocator(Kind kind) : kind_(std::move(kind)) {}
  Kind kind_;
};

}  // namespace plimsoll
