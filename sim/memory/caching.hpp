/// The caching allocator that PyTorch puts between a program and a CUDA device, rule by rule.
///
/// Source: c10/cuda/CUDACachingAllocator.cpp of PyTorch at commit 001074d2. Device memory is slow
/// to get, so it is taken in segments that are kept, and cut into blocks that are handed out.
///
///   round      n < 512 B to 512 B, else up to a multiple of 512 B (or as
///              `roundup_power2_divisions` says)
///   pool       small: rounded size <= 1 MiB; large: above. Blocks are never shared between pools,
///              nor between streams
///   find       best fit among the free blocks of the pool and stream, of equal ones that at the
///              lowest address. That block serves, or (max_split_size) none
///   ask        else a segment is asked of the device: 2 MiB for the small pool, 20 MiB for less
///              than 10 MiB, else the rounded size up to a multiple of 2 MiB
///   collect    before that, if `garbage_collection_threshold` of the capacity is exceeded: free
///              segments of the large pool at least as old as their mean, again and again
///   retry      if the device refuses: blocks of `max_split_size` and more are given back, just
///              enough of them; if it refuses again: every segment that is one free block
///   cut        if the rest is at least 512 B (small), more than 1 MiB (large); else the block is
///              handed out whole and all of it counts as allocated
///   free       merges at once with free neighbours of the segment
///   streams    a block that other streams use stops counting as allocated when it is freed, but is
///              served again only when they are done with it: until then it is `active`
///
/// Worked example: 11 MiB take a segment of 12 MiB whole, as the rest is not more than 1 MiB;
/// 11 MiB - 512 B take another, and leave 1 MiB + 512 B free in it. Requested 22 MiB - 512 B,
/// allocated 23 MiB - 512 B, reserved 24 MiB.
///
/// With expandable segments each stream and pool has one segment of addresses (9/8 of the
/// capacity, in whole pages), to which memory is mapped in pages of 2 MiB (small) or 20 MiB
/// (large). Rests of 512 B are cut off in both pools. A free block before unmapped addresses counts
/// in best fit with the size that it could reach. Where nothing fits, the lowest unmapped range
/// that, with a free block just before it, has room is mapped as far as needed; and what is given
/// back is the whole pages within free blocks.
///
/// Reconstructions, where the source leaves a choice: the capacity is what garbage collection takes
/// its share of; segments get increasing addresses, which only ties depend on; to an unmapped
/// range only the free block just before it is joined, not one behind; a segment of
/// addresses is forgotten when nothing of it is mapped; events are done all at once, and asking and
/// giving back take no time.
///
/// allocate and free O(log blocks), and no host memory once warm; beyond that, only what is given
/// back costs O(free blocks), and an expandable search O(unmapped ranges).
#pragma once

#include "memory/block.hpp"
#include "memory/caching_settings.hpp"
#include "memory/layout.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace plimsoll {

inline constexpr Bytes kSmallestBlock{512};
inline constexpr Bytes kSmallRequest{1 << 20};
inline constexpr Bytes kSmallSegment{2 << 20};
inline constexpr Bytes kLargeSegment{20 << 20};

class CachingAllocator final {
 public:
  /// Precondition: settings within their limits (see there).
  CachingAllocator(Bytes capacity, const CachingSettings& settings);
  CachingAllocator(CachingAllocator&&) noexcept;
  CachingAllocator& operator=(CachingAllocator&&) noexcept;
  ~CachingAllocator();

  [[nodiscard]] std::optional<MemoryBlock> allocate(Bytes bytes, std::uint32_t stream = 0);
  /// All or none. After none what was free is given back, as after any refusal, and `reserved`
  /// counts nothing that was tried.
  [[nodiscard]] bool allocate_all(std::span<MemoryBlock> blocks, std::uint32_t stream = 0);
  void free(const MemoryBlock& block);

  /// `stream` works on the block, too: once freed, it waits for events_complete().
  void used_on(const MemoryBlock& block, std::uint32_t stream);
  /// All streams have done what they had to do before now.
  void events_complete();
  /// All streams have done what they had to do with a block that was freed.
  void complete(const MemoryBlock& block);
  /// Gives every segment back that is one free block, and whole free pages.
  void release_cached();

  [[nodiscard]] Bytes capacity() const;
  /// What no block takes, reserved or not; unlimited() of an unlimited memory.
  [[nodiscard]] Bytes free_bytes() const;
  /// The greatest free block, or what the device had left if all whole segments were given back.
  /// More cannot be had; less only where segments, pools and streams allow it. O(free blocks).
  [[nodiscard]] Bytes largest_free_block() const;
  /// The greatest free block of those cached. O(free blocks).
  [[nodiscard]] Bytes largest_cached_block() const;
  [[nodiscard]] MemoryUse now() const;
  [[nodiscard]] MemoryUse peak() const;
  [[nodiscard]] AllocatorCounters counters() const;
  /// What a block takes, and the number of its segment.
  [[nodiscard]] Bytes size_of(const MemoryBlock& block) const;
  [[nodiscard]] std::uint64_t segment_of(const MemoryBlock& block) const;
  /// In the order of addresses. O(blocks + segments log segments).
  [[nodiscard]] std::vector<MemoryPiece> pieces() const;
  /// That of a block of more than 0 bytes that was not freed.
  [[nodiscard]] MemoryPiece piece_of(const MemoryBlock& block) const;
  /// Segments and pages taken and given back, noted from start() on.
  [[nodiscard]] SegmentLog& log();
  [[nodiscard]] std::vector<MemorySegment> segments() const;

  [[nodiscard]] Bytes rounded(Bytes bytes) const;

  /// A request rounded up, and the segment that it is asked of the device for.
  [[nodiscard]] static Bytes rounded(Bytes bytes, const CachingSettings& settings);
  [[nodiscard]] static Bytes segment_for(Bytes rounded_bytes);

 private:
  class Cache;
  std::unique_ptr<Cache> cache_;
};

}  // namespace plimsoll
