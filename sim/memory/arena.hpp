/// One contiguous stretch of addresses that all blocks are cut from.
///
/// A request takes a hole and cuts exactly what it needs off its low end; what is left over stays
/// free, a freed block is merged with free neighbours at once. Which hole: the smallest that is
/// large enough, of equal ones that at the lowest address (best fit), or that at the lowest address
/// (first fit). Sizes are rounded up to the alignment first.
///
/// Each rule wins somewhere. Arena of 100 with holes [0, 30) and [40, 60): first fit puts 18 into
/// the first and then has no place for 28; best fit takes the second, and 28 go into the first.
///
/// Blocks ever granted count as reserved: up to the highest address that was in use.
#pragma once

#include "memory/block.hpp"
#include "memory/layout.hpp"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace plimsoll {

enum class ArenaRule : std::uint8_t { best_fit, first_fit };

/// allocate and free O(log free blocks), but with first fit allocate O(free blocks that are large
/// enough); all else O(1) where not said. No allocation from the host's heap once warm.
class ArenaAllocator final {
 public:
  /// The arena is `capacity` rounded down to whole units of `alignment`, a positive count.
  ArenaAllocator(Bytes capacity, Bytes alignment, ArenaRule rule);
  ArenaAllocator(ArenaAllocator&&) noexcept;
  ArenaAllocator& operator=(ArenaAllocator&&) noexcept;
  ~ArenaAllocator();

  [[nodiscard]] std::optional<MemoryBlock> allocate(Bytes bytes);
  [[nodiscard]] bool allocate_all(std::span<MemoryBlock> blocks);
  /// Takes `requested` of every block at its `offset`, a multiple of the alignment or kNowhere: all
  /// or none.
  /// O(blocks * free blocks that are large enough).
  [[nodiscard]] bool place_all(std::span<MemoryBlock> blocks);
  void free(const MemoryBlock& block);

  [[nodiscard]] Bytes capacity() const;
  [[nodiscard]] Bytes free_bytes() const;
  [[nodiscard]] Bytes largest_free_block() const;
  [[nodiscard]] MemoryUse now() const;
  [[nodiscard]] MemoryUse peak() const;
  /// The arena is one segment. `inactive_split`: what is reserved and free, while blocks are in use.
  [[nodiscard]] AllocatorCounters counters() const;
  /// What a request takes.
  [[nodiscard]] Bytes rounded(Bytes bytes) const;
  /// In the order of addresses. O(pieces).
  [[nodiscard]] std::vector<MemoryPiece> pieces() const;
  /// That of a block of more than 0 bytes.
  [[nodiscard]] MemoryPiece piece_of(const MemoryBlock& block) const;

 private:
  class Arena;
  std::unique_ptr<Arena> arena_;
};

}  // namespace plimsoll
