/// TensorFlow's allocator for devices, "best fit with coalescing".
///
/// Source: tensorflow/core/framework/bfc_allocator.cc (documented there). Memory comes in regions,
/// which are cut into chunks that are handed out.
///
///   round    up to a multiple of 256 B
///   find     the smallest free chunk that is large enough, of equal ones that at the lowest
///            address; pools and streams are not kept apart
///   ask      else for a region: one of the whole memory, or (growth) the first of `first_region`
///            and each of twice the size of the one before, doubled on until the request fits, or
///            what is left where that is less
///   retry    if that fails and `give_back_regions` is set: every region that is one free chunk is
///            given back, and a region is asked for once more
///   cut      only if the chunk is at least twice the rounded request or the rest at least 128 MiB;
///            else the chunk is handed out whole and all of it counts as allocated
///   free     merges at once with free neighbours of the region
///
/// Worked example, 1 MiB: 300,000 B take 300,032 and leave 748,544; 400,000 B take all of that, as
/// it is less than twice 400,128. Requested 700,000, allocated and reserved 1,048,576.
///
/// Reconstructions: regions do not merge with regions beside them; a region that the memory holds is
/// never refused by the device.
///
/// allocate and free O(log free chunks), no host memory once warm; giving back O(free chunks).
#pragma once

#include "memory/bfc_settings.hpp"
#include "memory/block.hpp"
#include "memory/layout.hpp"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace plimsoll {

inline constexpr Bytes kBfcUnit{256};
inline constexpr Bytes kBfcMostWaste{std::int64_t{128} << 20};

class BfcAllocator final {
 public:
  BfcAllocator(Bytes capacity, const BfcSettings& settings);
  BfcAllocator(BfcAllocator&&) noexcept;
  BfcAllocator& operator=(BfcAllocator&&) noexcept;
  ~BfcAllocator();

  [[nodiscard]] std::optional<MemoryBlock> allocate(Bytes bytes);
  [[nodiscard]] bool allocate_all(std::span<MemoryBlock> blocks);
  void free(const MemoryBlock& block);

  [[nodiscard]] Bytes capacity() const;
  [[nodiscard]] Bytes free_bytes() const;
  [[nodiscard]] Bytes largest_free_block() const;  ///< O(free chunks) with `give_back_regions`
  [[nodiscard]] MemoryUse now() const;
  [[nodiscard]] MemoryUse peak() const;
  [[nodiscard]] AllocatorCounters counters() const;
  /// In the order of addresses. O(chunks + regions log regions).
  [[nodiscard]] std::vector<MemoryPiece> pieces() const;
  /// That of a block of more than 0 bytes.
  [[nodiscard]] MemoryPiece piece_of(const MemoryBlock& block) const;
  /// Regions taken and given back, noted from start() on.
  [[nodiscard]] SegmentLog& log();

  /// What a request is rounded up to.
  [[nodiscard]] static Bytes rounded(Bytes bytes);

 private:
  class Regions;
  std::unique_ptr<Regions> regions_;
};

}  // namespace plimsoll
