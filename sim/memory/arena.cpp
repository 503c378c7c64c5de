#include "memory/arena.hpp"

#include "memory/pieces.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace plimsoll {

class ArenaAllocator::Arena {
 public:
  Arena(Bytes capacity, Bytes alignment, ArenaRule rule)
      : capacity_(capacity), alignment_(alignment.count()), rule_(rule) {
    assert(capacity >= Bytes{} && alignment_ > 0);
    // Of an unlimited one as much as sums of sizes may reach.
    size_ = std::min(capacity.count(), std::int64_t{1} << 62);
    size_ -= size_ % alignment_;
    if (size_ > 0) pieces_.put_free(pieces_.add({.size = size_}));
  }

  std::optional<MemoryBlock> allocate(Bytes bytes);
  bool allocate_all(std::span<MemoryBlock> blocks);
  bool place_all(std::span<MemoryBlock> blocks);
  void free(const MemoryBlock& block);

  [[nodiscard]] Bytes capacity() const { return capacity_; }
  [[nodiscard]] Bytes free_bytes() const {
    return capacity_.is_unlimited() ? capacity_ : Bytes{size_} - now_.allocated;
  }
  [[nodiscard]] Bytes largest_free_block() const {
    if (capacity_.is_unlimited()) return capacity_;
    const PieceIndex& free = pieces_.free_pieces();
    return free.empty() ? Bytes{} : Bytes{std::prev(free.end())->size};
  }
  [[nodiscard]] const MemoryUse& now() const { return now_; }
  [[nodiscard]] const MemoryUse& peak() const { return peak_; }
  [[nodiscard]] AllocatorCounters counters() const;
  [[nodiscard]] Bytes rounded(Bytes bytes) const;
  [[nodiscard]] std::vector<MemoryPiece> pieces() const { return pieces_.in_address_order(); }
  [[nodiscard]] MemoryPiece piece_of(const MemoryBlock& block) const {
    return pieces_.seen(block.handle);
  }

 private:
  std::optional<MemoryBlock> place(Bytes bytes, Bytes offset);
  /// Blocks that `take` gives for each, or none.
  template <class Take>
  bool take_all(std::span<MemoryBlock> blocks, const Take& take);
  void count(Bytes requested, std::int64_t allocated, std::int64_t end);

  Bytes capacity_;
  std::int64_t alignment_;
  ArenaRule rule_;
  std::int64_t ooms_ = 0;
  std::int64_t size_ = 0;
  Pieces pieces_;
  MemoryUse now_;
  MemoryUse peak_;
};

std::optional<MemoryBlock> ArenaAllocator::Arena::allocate(Bytes bytes) {
  assert(bytes >= Bytes{});
  if (bytes == Bytes{}) return MemoryBlock{bytes, Bytes{}, kNoPiece};
  std::uint32_t index = kNoPiece;
  std::int64_t size = 0;
  if (bytes.count() <= size_) {
    size = rounded(bytes).count();
    index = rule_ == ArenaRule::best_fit ? pieces_.best_fit(0, size) : pieces_.first_fit(0, size);
  }
  if (index == kNoPiece) {
    ++ooms_;
    return std::nullopt;
  }
  pieces_.take_free(index);
  if (pieces_[index].size > size) pieces_.put_free(pieces_.split(index, size));
  const std::int64_t offset = pieces_[index].offset;
  count(bytes, size, offset + size);
  return MemoryBlock{bytes, Bytes{offset}, index};
}

std::optional<MemoryBlock> ArenaAllocator::Arena::place(Bytes bytes, Bytes offset) {
  assert(bytes >= Bytes{} && offset >= Bytes{});
  assert(offset == kNowhere || offset.count() % alignment_ == 0);
  if (bytes == Bytes{}) return MemoryBlock{bytes, Bytes{}, kNoPiece};
  std::uint32_t index = kNoPiece;
  if (bytes.count() <= size_)
    index = pieces_.free_piece_at(0, offset.count(), rounded(bytes).count());
  if (index == kNoPiece) {
    ++ooms_;
    return std::nullopt;
  }
  const std::int64_t size = rounded(bytes).count();
  index = pieces_.take_range(index, offset.count(), size);
  count(bytes, size, offset.count() + size);
  return MemoryBlock{bytes, offset, index};
}

template <class Take>
bool ArenaAllocator::Arena::take_all(std::span<MemoryBlock> blocks, const Take& take) {
  const MemoryUse now = now_, peak = peak_;
  std::size_t given = 0;
  for (; given < blocks.size(); ++given) {
    const auto block = take(blocks[given]);
    if (!block) break;
    blocks[given] = *block;
  }
  if (given == blocks.size()) return true;
  while (given > 0) free(blocks[--given]);
  now_ = now;
  peak_ = peak;
  return false;
}

bool ArenaAllocator::Arena::allocate_all(std::span<MemoryBlock> blocks) {
  return take_all(blocks, [this](const MemoryBlock& it) { return allocate(it.requested); });
}

bool ArenaAllocator::Arena::place_all(std::span<MemoryBlock> blocks) {
  return take_all(blocks, [this](const MemoryBlock& it) { return place(it.requested, it.offset); });
}

void ArenaAllocator::Arena::free(const MemoryBlock& block) {
  if (block.handle == kNoPiece) return;
  const std::uint32_t index = block.handle;
  assert(index < pieces_.size() && pieces_[index].state == Piece::State::in_use);
  assert(pieces_[index].offset == block.offset.count());
  now_.requested -= block.requested;
  now_.allocated -= Bytes{pieces_[index].size};
  pieces_.free(index);
}

/// Of no more than size_, a whole number of units, so that rounding up cannot leave it.
Bytes ArenaAllocator::Arena::rounded(Bytes bytes) const {
  return Bytes{((bytes.count() - 1) / alignment_ + 1) * alignment_};
}

AllocatorCounters ArenaAllocator::Arena::counters() const {
  AllocatorCounters counters;
  counters.now = {now_.requested, now_.allocated, now_.allocated, now_.reserved};
  counters.peak = {peak_.requested, peak_.allocated, peak_.allocated, peak_.reserved};
  if (now_.allocated > Bytes{}) counters.inactive_split = now_.reserved - now_.allocated;
  counters.segments = size_ > 0 ? 1 : 0;
  counters.ooms = ooms_;
  return counters;
}

void ArenaAllocator::Arena::count(Bytes requested, std::int64_t allocated, std::int64_t end) {
  now_.requested += requested;
  now_.allocated += Bytes{allocated};
  now_.reserved = std::max(now_.reserved, Bytes{end});
  peak_.requested = std::max(peak_.requested, now_.requested);
  peak_.allocated = std::max(peak_.allocated, now_.allocated);
  peak_.reserved = now_.reserved;
}

ArenaAllocator::ArenaAllocator(Bytes capacity, Bytes alignment, ArenaRule rule)
    : arena_(std::make_unique<Arena>(capacity, alignment, rule)) {}
ArenaAllocator::ArenaAllocator(ArenaAllocator&&) noexcept = default;
ArenaAllocator& ArenaAllocator::operator=(ArenaAllocator&&) noexcept = default;
ArenaAllocator::~ArenaAllocator() = default;

std::optional<MemoryBlock> ArenaAllocator::allocate(Bytes bytes) {
  return arena_->allocate(bytes);
}
bool ArenaAllocator::allocate_all(std::span<MemoryBlock> blocks) {
  return arena_->allocate_all(blocks);
}
bool ArenaAllocator::place_all(std::span<MemoryBlock> blocks) {
  return arena_->place_all(blocks);
}
void ArenaAllocator::free(const MemoryBlock& block) {
  arena_->free(block);
}
Bytes ArenaAllocator::capacity() const {
  return arena_->capacity();
}
Bytes ArenaAllocator::free_bytes() const {
  return arena_->free_bytes();
}
Bytes ArenaAllocator::largest_free_block() const {
  return arena_->largest_free_block();
}
MemoryUse ArenaAllocator::now() const {
  return arena_->now();
}
MemoryUse ArenaAllocator::peak() const {
  return arena_->peak();
}

AllocatorCounters ArenaAllocator::counters() const {
  return arena_->counters();
}
Bytes ArenaAllocator::rounded(Bytes bytes) const {
  return arena_->rounded(bytes);
}
MemoryPiece ArenaAllocator::piece_of(const MemoryBlock& block) const {
  return arena_->piece_of(block);
}
std::vector<MemoryPiece> ArenaAllocator::pieces() const {
  return arena_->pieces();
}

}  // namespace plimsoll
