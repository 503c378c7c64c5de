#include "policy/online/piece_selection.hpp"

#include "engine/wide.hpp"
#include "policy/online/score.hpp"

#include <compare>

namespace plimsoll {

namespace {

using PieceKind = ScoredPiece::Kind;

/// A sum of h, in which infinite ones are counted.
struct WindowCost {
  std::int64_t infinite = 0;
  Unsigned128 finite = 0;  ///< multiples of 2^-32

  void add(const ScoredPiece& piece, bool comes) {
    if (piece.kind == PieceKind::free) return;
    if (piece.staleness == 0) {
      infinite += comes ? 1 : -1;
      return;
    }
    const Unsigned128 h = (Unsigned128{piece.cost} << 32) / piece.staleness;
    finite = comes ? finite + h : finite - h;
  }
  auto operator<=>(const WindowCost&) const = default;
};

/// Two ends that move from the low addresses to the high ones.
class WindowSearch {
 public:
  WindowSearch(std::span<const ScoredPiece> pieces, std::int64_t need, WindowScan scan)
      : pieces_(pieces), need_(need), scan_(scan) {}

  std::optional<PieceWindow> run() {
    while (true) {
      if (scan_ == WindowScan::as_shipped && now_.end == pieces_.size()) break;
      if (bytes_ >= need_) {
        note();
        drop_first();
      } else if (now_.end < pieces_.size()) {
        take_next();
      } else {
        break;
      }
    }
    return best_;
  }

 private:
  void note() {
    if (best_ && cost_ > best_cost_) return;
    const auto pieces = [](const PieceWindow& window) { return window.end - window.begin; };
    const bool is_tie = best_ && cost_ == best_cost_;
    if (is_tie && (scan_ == WindowScan::as_shipped || pieces(now_) >= pieces(*best_))) return;
    best_ = now_;
    best_cost_ = cost_;
  }

  void drop_first() {
    const ScoredPiece& piece = pieces_[now_.begin++];
    bytes_ -= piece.bytes;
    cost_.add(piece, false);
  }

  void take_next() {
    const ScoredPiece& piece = pieces_[now_.end++];
    if (piece.kind == PieceKind::fixed) {
      now_.begin = now_.end;
      bytes_ = 0;
      cost_ = {};
      return;
    }
    bytes_ += piece.bytes;
    cost_.add(piece, true);
  }

  const std::span<const ScoredPiece> pieces_;
  const std::int64_t need_;
  const WindowScan scan_;
  PieceWindow now_;
  std::int64_t bytes_ = 0;
  WindowCost cost_, best_cost_;
  std::optional<PieceWindow> best_;
};

std::int64_t free_bytes_at(std::span<const ScoredPiece> pieces, std::size_t at) {
  return at < pieces.size() && pieces[at].kind == PieceKind::free ? pieces[at].bytes : 0;
}

}  // namespace

std::optional<PieceWindow> least_window(std::span<const ScoredPiece> pieces, std::int64_t need,
                                        WindowScan scan) {
  return WindowSearch(pieces, need, scan).run();
}

std::optional<std::size_t> least_piece(std::span<const ScoredPiece> pieces, bool with_free) {
  std::optional<std::size_t> best;
  Score least;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].kind != PieceKind::evictable) continue;
    std::int64_t bytes = pieces[i].bytes;
    // Before the first piece there is none: the index wraps around beyond the last.
    if (with_free) bytes += free_bytes_at(pieces, i - 1) + free_bytes_at(pieces, i + 1);
    const Score score{pieces[i].cost, pieces[i].staleness, static_cast<std::uint64_t>(bytes)};
    if (best && score >= least) continue;
    best = i;
    least = score;
  }
  return best;
}

}  // namespace plimsoll
