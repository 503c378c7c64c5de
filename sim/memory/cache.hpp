/// The state of a caching allocator. Internal to this floor: caching.cpp hands blocks out,
/// caching_device.cpp deals with the device.
#pragma once

#include "memory/caching.hpp"
#include "memory/pieces.hpp"

namespace plimsoll {

class CachingAllocator::Cache {
 public:
  Cache(Bytes capacity, const CachingSettings& settings);

  // --- blocks
  std::optional<MemoryBlock> allocate(Bytes bytes, std::uint32_t stream);
  bool allocate_all(std::span<MemoryBlock> blocks, std::uint32_t stream);
  void free(const MemoryBlock& block);
  void used_on(const MemoryBlock& block, std::uint32_t stream);
  void events_complete();
  void complete(const MemoryBlock& block);

  // --- the device
  void release_cached();

  // --- what there is
  [[nodiscard]] Bytes capacity() const { return capacity_; }
  [[nodiscard]] const CachingSettings& settings() const { return settings_; }
  [[nodiscard]] Bytes free_bytes() const;
  [[nodiscard]] Bytes largest_free_block() const;
  [[nodiscard]] Bytes largest_cached_block() const;
  [[nodiscard]] AllocatorCounters counters() const;
  [[nodiscard]] std::vector<MemoryPiece> pieces() const;
  [[nodiscard]] std::vector<MemorySegment> segments() const;
  [[nodiscard]] MemoryPiece seen(std::uint32_t piece) const { return pieces_.seen(piece); }
  [[nodiscard]] SegmentLog& log() { return log_; }
  [[nodiscard]] const Piece& piece_of(const MemoryBlock& block) const {
    return pieces_[block.handle];
  }

 private:
  /// What a request looks for: `size` is rounded.
  struct Request {
    std::uint32_t pool = 0;
    std::int64_t size = 0;
  };
  static bool is_small(std::uint32_t pool) { return pool % 2 == 0; }
  [[nodiscard]] Request request_of(Bytes bytes, std::uint32_t stream) const;

  /// Each gives a piece that is in use now and large enough, or kNoPiece.
  std::uint32_t find(const Request& request);
  std::uint32_t find_expandable(const Request& request);
  std::uint32_t obtain(const Request& request);
  std::uint32_t ask(const Request& request);
  std::uint32_t grow(const Request& request);

  [[nodiscard]] bool is_cut(const Request& request, std::int64_t block) const;
  void count(Bytes requested, std::int64_t allocated);
  void put_back(const MemoryBlock& block);

  void collect();
  bool release_oversize(const Request& request);
  void release_all();
  void note(std::uint32_t piece, bool is_taken, std::int64_t offset, std::int64_t size);
  void release_segment(std::uint32_t piece);
  void forget_segment(std::uint32_t piece);
  void release_pages(std::uint32_t piece);
  [[nodiscard]] Bytes whole_pages(std::uint32_t piece) const;

  // --- addresses without memory
  [[nodiscard]] static std::int64_t page_of(std::uint32_t pool);
  [[nodiscard]] std::int64_t space_of(std::uint32_t pool) const;
  [[nodiscard]] PieceKey address_of(std::uint32_t piece) const;
  std::uint32_t range_with_room(const Request& request);
  void put_unmapped(std::uint32_t piece);
  void take_unmapped(std::uint32_t piece);

  Bytes capacity_;
  CachingSettings settings_;
  std::int64_t collect_above_ = 0;  ///< reserved bytes; without a threshold it is never looked at
  Pieces pieces_;
  PieceIndex unmapped_;                  ///< by (pool, address): sizes are 0
  std::vector<bool> used_elsewhere_;     ///< by piece
  std::vector<MemoryBlock> awaited_;     ///< freed, but not by all streams
  std::vector<std::int64_t> cached_at_;  ///< by piece: lookups_ when it became free
  std::vector<std::uint32_t> gathered_;  ///< scratch
  std::uint64_t next_segment_ = 0;
  std::int64_t lookups_ = 0;  ///< of the large pool
  AllocatorCounters counters_;
  SegmentLog log_;
};

}  // namespace plimsoll
