#include "policy/online/run/online_pool.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

std::int64_t slot_bytes(std::int64_t alignment) {
  return ((kSmallTensor.count() - 1) / alignment + 1) * alignment;
}

}  // namespace

Bytes strip_bytes(Bytes alignment) {
  return Bytes{slot_bytes(alignment.count())} * kStripSlots;
}

OnlinePool::OnlinePool(Bytes capacity, Bytes alignment, const PoolLayout& layout)
    : capacity_(capacity.count()), alignment_(alignment.count()) {
  if (has_addresses()) capacity_ -= capacity_ % alignment_;
  strip_begin_ = capacity_;
  if (!has_addresses() || capacity_ == 0) return;
  if (layout.has_strip) {
    slot_ = slot_bytes(alignment_);
    const std::int64_t slots = std::min(kStripSlots, capacity_ / slot_);
    strip_begin_ -= slots * slot_;
    // Taken from the back: the lowest address first.
    for (std::int64_t slot = slots; slot-- > 0;)
      free_slots_.push_back(static_cast<std::uint32_t>(slot));
  }
  if (layout.groups > 1) groups_.emplace(layout.groups, strip_begin_, alignment_);
  if (strip_begin_ == 0) return;
  first_ = pieces_.add({.size = strip_begin_});
  pieces_.put_free(first_);
}

Bytes OnlinePool::rounded(Bytes bytes) const {
  if (!has_addresses() || bytes == Bytes{}) return bytes;
  return Bytes{alignment_} * ((bytes.count() - 1) / alignment_ + 1);
}

std::optional<OnlinePool::Taken> OnlinePool::take(Bytes bytes, std::uint32_t owner,
                                                  TensorCost cost) {
  if (bytes > free_bytes()) return std::nullopt;
  const std::int64_t size = rounded(bytes).count();
  Taken taken{.bytes = size};
  if (has_addresses() && size > 0) {
    if (bytes <= kSmallTensor)
      if (const auto slot = take_slot(size)) return slot;
    const auto place = find(size, cost);
    if (!place) return std::nullopt;
    taken.offset = place->offset;
    taken.piece = pieces_.take_range(free_ids_[place->range], place->offset, size);
    owners_.resize(pieces_.size(), kFixed);
    owners_[taken.piece] = owner;
  }
  used_ += size;
  return taken;
}

std::optional<OnlinePool::Taken> OnlinePool::take_slot(std::int64_t size) {
  if (free_slots_.empty()) return std::nullopt;
  const std::int64_t slot = free_slots_.back();
  free_slots_.pop_back();
  used_ += size;
  return Taken{.bytes = size, .offset = strip_begin_ + slot * slot_, .is_in_strip = true};
}

/// With one group the best fit; the range is in free_ids_.
std::optional<GroupPlace> OnlinePool::find(std::int64_t size, TensorCost cost) {
  free_.clear();
  free_ids_.clear();
  const PieceIndex& free = pieces_.free_pieces();
  for (auto it = free.lower_bound(PieceKey::least(0, size)); it != free.end(); ++it) {
    free_.push_back({it->offset, it->offset + it->size});
    free_ids_.push_back(it->piece);
    if (!groups_) return GroupPlace{0, it->offset};
  }
  return groups_ ? groups_->place(free_, size, cost) : std::nullopt;
}

void OnlinePool::give_back(const Taken& taken) {
  used_ -= taken.bytes;
  if (taken.piece != kNoPiece) pieces_.free(taken.piece);
  if (taken.is_in_strip)
    free_slots_.push_back(static_cast<std::uint32_t>((taken.offset - strip_begin_) / slot_));
}

}  // namespace plimsoll
