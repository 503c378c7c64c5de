/// The memory that an online policy fills: bytes that are counted, or an arena of pieces in the
/// order of their addresses.
///
/// An arena takes the smallest free piece that is large enough (of equal ones that at the lowest
/// address), cuts it exactly and merges what becomes free at once: the rules of an arena with best
/// fit (memory/allocator.hpp), so that where the platform has one, both place alike. It may be parted
/// into groups (tensor_groups.hpp), and have a strip of slots of one size for small tensors at its
/// end, which is in no piece. Then the plan says where everything lies.
#pragma once

#include "base/quantity.hpp"
#include "memory/pieces.hpp"
#include "policy/online/run/tensor_groups.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace plimsoll {

/// How an arena is divided.
struct PoolLayout {
  std::int64_t groups = 1;  ///< 1: by best fit
  bool has_strip = false;   ///< kStripSlots slots of kSmallTensor, or of as many whole units
  [[nodiscard]] bool has_offsets() const { return groups > 1 || has_strip; }
};

inline constexpr Bytes kSmallTensor{10 * 1024};
inline constexpr std::int64_t kStripSlots = 1024;

/// The bytes of a strip in units of `alignment`.
[[nodiscard]] Bytes strip_bytes(Bytes alignment);

class OnlinePool {
 public:
  /// Owners of pieces that are no storage.
  static constexpr std::uint32_t kFree = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kFixed = kFree - 1;  ///< parameters, inputs, workspace

  /// What was taken, to be given back.
  struct Taken {
    std::int64_t bytes = 0;  ///< rounded up
    std::uint32_t piece = kNoPiece;
    std::int64_t offset = 0;  ///< where there are addresses
    bool is_in_strip = false;
  };

  /// An arena of whole units of `alignment`; with 0 B a counter of bytes, which has no layout.
  OnlinePool(Bytes capacity, Bytes alignment, const PoolLayout& layout = {});

  /// Nothing where it does not fit. 0 B always fit and take no piece.
  [[nodiscard]] std::optional<Taken> take(Bytes bytes, std::uint32_t owner,
                                          TensorCost cost = TensorCost::cheap);
  void give_back(const Taken& taken);
  /// Of what was taken.
  void set_owner(const Taken& taken, std::uint32_t owner) {
    if (taken.piece != kNoPiece) owners_[taken.piece] = owner;
  }

  [[nodiscard]] bool has_addresses() const { return alignment_ > 0; }
  [[nodiscard]] Bytes capacity() const { return Bytes{capacity_}; }
  [[nodiscard]] Bytes free_bytes() const { return Bytes{capacity_ - used_}; }
  /// What is taken for so many.
  [[nodiscard]] Bytes rounded(Bytes bytes) const;

  /// Pieces by address, from the first (kNoPiece where there is none) to kNoPiece.
  [[nodiscard]] std::uint32_t first_piece() const { return first_; }
  [[nodiscard]] std::uint32_t next_piece(std::uint32_t piece) const { return pieces_[piece].next; }
  [[nodiscard]] std::uint32_t previous_piece(std::uint32_t piece) const {
    return pieces_[piece].previous;
  }
  [[nodiscard]] Bytes bytes_of(std::uint32_t piece) const { return Bytes{pieces_[piece].size}; }
  /// The storage in it, kFixed or kFree.
  [[nodiscard]] std::uint32_t owner_of(std::uint32_t piece) const {
    return pieces_[piece].state == Piece::State::free ? kFree : owners_[piece];
  }

 private:
  [[nodiscard]] std::optional<Taken> take_slot(std::int64_t size);
  [[nodiscard]] std::optional<GroupPlace> find(std::int64_t size, TensorCost cost);

  std::int64_t capacity_ = 0, used_ = 0;
  std::int64_t alignment_ = 0;  ///< 0: bytes are counted
  Pieces pieces_;
  std::uint32_t first_ = kNoPiece;
  std::vector<std::uint32_t> owners_;  ///< by piece
  std::int64_t strip_begin_ = 0;       ///< what pieces have ends here
  std::int64_t slot_ = 0;              ///< bytes
  std::vector<std::uint32_t> free_slots_;
  std::optional<TensorGroups> groups_;
  // For one search, all free pieces that are large enough:
  std::vector<FreeRange> free_;
  std::vector<std::uint32_t> free_ids_;
};

}  // namespace plimsoll
