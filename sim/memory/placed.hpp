/// A memory in which every block lies where a placement said before the run.
///
/// Requests are granted as `ideal` grants them, by what is requested of the capacity, and the k-th
/// block of more than 0 bytes gets the k-th address of the placement. That is sound where the run
/// asks in the same order as the one whose lifetimes were placed.
///
/// Reserved is the highest end of the placement, from the start.
///
/// Worked example, alignment 8, placed 10 B at 0 and 20 B at 16: of two requests the first gets [0,
/// 16), the second [16, 40). Requested 30, allocated 40, reserved 40.
#pragma once

#include "memory/block.hpp"
#include "memory/layout.hpp"

#include <map>
#include <optional>
#include <span>
#include <vector>

namespace plimsoll {

/// A block of a placement: what is requested, and its address.
struct PlacedBlock {
  Bytes requested;
  Bytes offset;
};

/// O(log blocks in use) where not said.
class PlacedAllocator final {
 public:
  /// `blocks` in the order in which they are asked for. Those in use at a time share no byte of
  /// what they are rounded up to. `alignment` is a positive count.
  PlacedAllocator(Bytes capacity, Bytes alignment, std::vector<PlacedBlock> blocks);

  /// Precondition, here and below: as many blocks are asked for as were placed, of their sizes.
  [[nodiscard]] std::optional<MemoryBlock> allocate(Bytes bytes);
  [[nodiscard]] bool allocate_all(std::span<MemoryBlock> blocks);
  void free(const MemoryBlock& block);

  [[nodiscard]] Bytes capacity() const { return capacity_; }
  [[nodiscard]] Bytes free_bytes() const;
  [[nodiscard]] Bytes largest_free_block() const { return free_bytes(); }
  [[nodiscard]] MemoryUse now() const;
  [[nodiscard]] MemoryUse peak() const { return peak_; }
  [[nodiscard]] AllocatorCounters counters() const;
  [[nodiscard]] Bytes rounded(Bytes bytes) const;
  /// One segment up to the end of the placement. O(blocks in use).
  [[nodiscard]] std::vector<MemoryPiece> pieces() const;
  [[nodiscard]] MemoryPiece piece_of(const MemoryBlock& block) const;

 private:
  [[nodiscard]] MemoryBlock take(Bytes bytes);
  [[nodiscard]] bool is_free(Bytes offset, Bytes size) const;

  Bytes capacity_, alignment_;
  std::vector<PlacedBlock> blocks_;
  std::size_t next_ = 0;                   ///< of `blocks_`
  std::map<Bytes, std::uint32_t> in_use_;  ///< by offset: which of `blocks_`
  Bytes end_, requested_, allocated_;
  MemoryUse peak_;
};

}  // namespace plimsoll
