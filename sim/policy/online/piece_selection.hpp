/// Which pieces of a pool go to make room, by their addresses: the selections of Coop and DTE.
///
/// Zhang et al. 2023, "Coop: Memory is not a Commodity", NeurIPS, arXiv:2311.00591. Coop frees a run
/// of neighbouring pieces at once, the one of least cost that is large enough; DTE one piece after
/// the other, where free pieces beside it count with its bytes. The h of a piece is the cost of
/// making it again for its staleness.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace plimsoll {

/// A piece of a pool; a list of them is in the order of addresses.
struct ScoredPiece {
  enum class Kind : std::uint8_t { free, fixed, evictable };
  std::int64_t bytes = 0;
  Kind kind = Kind::fixed;
  std::uint64_t cost = 0, staleness = 1;  ///< of evictable ones; staleness 0: h is infinite
};

/// How a list is searched for a window.
enum class WindowScan : std::uint8_t {
  corrected,  ///< all windows are looked at
  /// As published: it ends when its right end has passed the last piece, so windows with that piece
  /// are missed.
  as_shipped
};

struct PieceWindow {
  std::size_t begin = 0, end = 0;
  friend bool operator==(const PieceWindow&, const PieceWindow&) = default;
};

/// Neighbouring pieces, none of them fixed, of `need` bytes or more: those of least sum of h, of
/// equal ones (corrected) the fewest pieces, then the lowest address. Free pieces add nothing. h is
/// rounded down to multiples of 2^-32; a sum with fewer infinite ones is less. O(pieces).
[[nodiscard]] std::optional<PieceWindow> least_window(std::span<const ScoredPiece> pieces,
                                                      std::int64_t need, WindowScan scan);

/// The evictable piece of least h for its bytes, of equal ones the first; nothing where there is
/// none. `with_free`: the bytes of free pieces beside it count with its own. O(pieces).
[[nodiscard]] std::optional<std::size_t> least_piece(std::span<const ScoredPiece> pieces,
                                                     bool with_free);

}  // namespace plimsoll
