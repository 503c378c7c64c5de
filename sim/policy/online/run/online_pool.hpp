/// The memory that an online policy fills: bytes that are counted, or an arena of pieces in the
/// order of their addresses.
///
/// An arena takes the smallest free piece that is large enough (of equal ones that at the lowest
/// address), cuts it exactly and merges what becomes free at once: the rules of an arena with best
/// fit (memory/allocator.hpp), so that where the platform has one, both place alike.
#pragma once

#include "base/quantity.hpp"
#include "memory/pieces.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace plimsoll {

class OnlinePool {
 public:
  /// Owners of pieces that are no storage.
  static constexpr std::uint32_t kFree = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kFixed = kFree - 1;  ///< parameters, inputs, workspace

  /// What was taken, to be given back.
  struct Taken {
    std::int64_t bytes = 0;  ///< rounded up
    std::uint32_t piece = kNoPiece;
  };

  /// An arena of whole units of `alignment`; with 0 B a counter of bytes.
  OnlinePool(Bytes capacity, Bytes alignment);

  /// Nothing where it does not fit. 0 B always fit and take no piece.
  [[nodiscard]] std::optional<Taken> take(Bytes bytes, std::uint32_t owner);
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
  std::int64_t capacity_ = 0, used_ = 0;
  std::int64_t alignment_ = 0;  ///< 0: bytes are counted
  Pieces pieces_;
  std::uint32_t first_ = kNoPiece;
  std::vector<std::uint32_t> owners_;  ///< by piece
};

}  // namespace plimsoll
