/// Stretches of addresses ("segments") cut into pieces, and an index of the free ones: what the
/// allocators with addresses, and the pools of online policies, are made of.
///
/// Every piece lies between its neighbours of the same segment. The index orders free pieces by
/// (pool, size, segment, offset), so that best fit is one search in it. Dense ids, used again after
/// a piece has gone; nothing is asked of the host's heap once warm.
///
/// add, split, join, remove O(1); put_free, take_free, free, best_fit O(log free pieces).
#pragma once

#include "memory/layout.hpp"
#include "memory/piece_index.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

struct Piece {
  enum class State : std::uint8_t {
    in_use,
    free,     ///< and in the index
    unmapped  ///< addresses without memory behind them
  };
  std::int64_t offset = 0;    ///< in its segment
  std::int64_t size = 0;      ///< 0: gone, its id waits to be used again
  std::uint64_t segment = 0;  ///< segments are numbered as they are made, from low addresses on
  std::uint32_t pool = 0;     ///< of equal use: a piece serves requests of its pool only
  std::uint32_t previous = kNoPiece;
  std::uint32_t next = kNoPiece;
  State state = State::in_use;

  /// All of its segment.
  [[nodiscard]] bool is_whole() const { return previous == kNoPiece && next == kNoPiece; }
};

class Pieces {
 public:
  [[nodiscard]] const Piece& operator[](std::uint32_t piece) const { return pieces_[piece]; }
  /// Ids are below this.
  [[nodiscard]] std::size_t size() const { return pieces_.size(); }
  [[nodiscard]] const PieceIndex& free_pieces() const { return free_; }
  /// Bytes of the free pieces that have a neighbour.
  [[nodiscard]] std::int64_t cut_free() const { return cut_free_; }

  /// A new segment of one piece, `piece.state` as given but not free.
  std::uint32_t add(const Piece& piece);
  /// Forgets a segment of one piece that is not free.
  void remove(std::uint32_t piece);

  /// The smallest free piece of `pool` with at least `size`, of equal ones that at the lowest
  /// address; or kNoPiece.
  [[nodiscard]] std::uint32_t best_fit(std::uint32_t pool, std::int64_t size) const;
  void put_free(std::uint32_t piece);
  void take_free(std::uint32_t piece);  ///< it is in use then

  /// The free piece of `pool` that has all of [offset, offset + size); or kNoPiece. Of pools of one
  /// segment. O(free pieces of at least `size`).
  [[nodiscard]] std::uint32_t free_piece_at(std::uint32_t pool, std::int64_t offset,
                                            std::int64_t size) const;
  /// Takes [offset, offset + size) out of a free piece that has it; what is left over on either side
  /// stays free. Gives the piece, in use; `piece` itself stays the one at the lowest address.
  std::uint32_t take_range(std::uint32_t piece, std::int64_t offset, std::int64_t size);

  /// Cuts a piece that is not free; what is left over, the piece that is returned, is in its state.
  std::uint32_t split(std::uint32_t piece, std::int64_t size);
  /// Merges a piece with the one behind it; neither is free.
  void join_next(std::uint32_t piece);
  /// Frees a piece in use and merges it with free neighbours. Gives the free piece.
  std::uint32_t free(std::uint32_t piece);

  /// The free piece of `pool` with at least `size` at the lowest address; or kNoPiece.
  /// O(free pieces of at least `size`).
  [[nodiscard]] std::uint32_t first_fit(std::uint32_t pool, std::int64_t size) const;

  /// The first piece of every segment, and all pieces that have memory. O(pieces + segments log
  /// segments).
  [[nodiscard]] std::vector<std::uint32_t> heads() const;
  [[nodiscard]] std::vector<MemoryPiece> in_address_order() const;
  /// A piece as others see it.
  [[nodiscard]] MemoryPiece seen(std::uint32_t piece) const;

  void set_state(std::uint32_t piece, Piece::State state) { pieces_[piece].state = state; }

 private:
  [[nodiscard]] PieceKey key_of(std::uint32_t piece) const;

  std::vector<Piece> pieces_;
  std::vector<std::uint32_t> unused_;  ///< entries of pieces_ to be used again
  PieceIndex free_;
  std::int64_t cut_free_ = 0;
};

}  // namespace plimsoll
