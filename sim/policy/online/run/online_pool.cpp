#include "policy/online/run/online_pool.hpp"

namespace plimsoll {

OnlinePool::OnlinePool(Bytes capacity, Bytes alignment)
    : capacity_(capacity.count()), alignment_(alignment.count()) {
  if (has_addresses()) capacity_ -= capacity_ % alignment_;
  if (!has_addresses() || capacity_ == 0) return;
  first_ = pieces_.add({.size = capacity_});
  pieces_.put_free(first_);
}

Bytes OnlinePool::rounded(Bytes bytes) const {
  if (!has_addresses() || bytes == Bytes{}) return bytes;
  return Bytes{alignment_} * ((bytes.count() - 1) / alignment_ + 1);
}

std::optional<OnlinePool::Taken> OnlinePool::take(Bytes bytes, std::uint32_t owner) {
  if (bytes > free_bytes()) return std::nullopt;
  const std::int64_t size = rounded(bytes).count();
  Taken taken{size, kNoPiece};
  if (has_addresses() && size > 0) {
    taken.piece = pieces_.best_fit(0, size);
    if (taken.piece == kNoPiece) return std::nullopt;
    pieces_.take_free(taken.piece);
    if (pieces_[taken.piece].size > size) pieces_.put_free(pieces_.split(taken.piece, size));
    owners_.resize(pieces_.size(), kFixed);
    owners_[taken.piece] = owner;
  }
  used_ += size;
  return taken;
}

void OnlinePool::give_back(const Taken& taken) {
  used_ -= taken.bytes;
  if (taken.piece != kNoPiece) pieces_.free(taken.piece);
}

}  // namespace plimsoll
