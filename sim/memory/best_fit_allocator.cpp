#include "memory/allocator.hpp"

#include <compare>
#include <memory_resource>
#include <set>
#include <vector>

namespace plimsoll {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

/// A piece of the arena, free or in use, between its neighbours in the order of addresses.
struct Piece {
  std::int64_t offset = 0;
  std::int64_t size = 0;
  std::uint32_t previous = kNone;
  std::uint32_t next = kNone;
  bool free = true;
};

/// A free piece in the order in which best fit looks at it.
struct FreePiece {
  std::int64_t size = 0;
  std::int64_t offset = 0;
  std::uint32_t piece = kNone;
  auto operator<=>(const FreePiece&) const = default;
};

}  // namespace

class BestFitAllocator::Arena {
 public:
  Arena(Bytes capacity, Bytes alignment)
      : capacity_(capacity), alignment_(alignment.count()), free_(&nodes_) {
    assert(capacity >= Bytes{} && alignment_ > 0);
    size_ = capacity.count() - capacity.count() % alignment_;
    if (size_ > 0) put_free(new_piece({0, size_, kNone, kNone, true}));
  }

  std::optional<MemoryBlock> allocate(Bytes bytes);
  bool allocate_all(std::span<MemoryBlock> blocks);
  void free(const MemoryBlock& block);

  [[nodiscard]] Bytes capacity() const { return capacity_; }
  [[nodiscard]] Bytes free_bytes() const {
    return capacity_.is_unlimited() ? capacity_ : Bytes{size_} - now_.allocated;
  }
  [[nodiscard]] Bytes largest_free_block() const {
    if (capacity_.is_unlimited()) return capacity_;
    return free_.empty() ? Bytes{} : Bytes{free_.rbegin()->size};
  }
  [[nodiscard]] const MemoryUse& now() const { return now_; }
  [[nodiscard]] const MemoryUse& peak() const { return peak_; }

 private:
  std::uint32_t new_piece(const Piece& piece);
  void put_free(std::uint32_t index);
  void take_free(std::uint32_t index);
  void split(std::uint32_t index, std::int64_t size);
  void swallow_next(std::uint32_t index);
  void count(Bytes requested, std::int64_t allocated, std::int64_t end);

  Bytes capacity_;
  std::int64_t alignment_;
  std::int64_t size_ = 0;
  std::vector<Piece> pieces_;
  std::vector<std::uint32_t> unused_;  ///< entries of pieces_ to be used again
  /// Keeps the nodes of free_ for reuse: the host's heap is not asked once warm.
  std::pmr::unsynchronized_pool_resource nodes_;
  std::pmr::set<FreePiece> free_;
  MemoryUse now_;
  MemoryUse peak_;
};

std::optional<MemoryBlock> BestFitAllocator::Arena::allocate(Bytes bytes) {
  assert(bytes >= Bytes{});
  if (bytes == Bytes{}) return MemoryBlock{bytes, Bytes{}, kNone};
  if (bytes.count() > size_) return std::nullopt;
  // size_ is a whole number of units, so rounding up cannot leave it.
  const std::int64_t units = (bytes.count() - 1) / alignment_ + 1;
  const std::int64_t size = units * alignment_;
  const auto fit = free_.lower_bound(FreePiece{size, 0, 0});
  if (fit == free_.end()) return std::nullopt;
  const std::uint32_t index = fit->piece;
  free_.erase(fit);
  pieces_[index].free = false;
  if (pieces_[index].size > size) split(index, size);
  const std::int64_t offset = pieces_[index].offset;
  count(bytes, size, offset + size);
  return MemoryBlock{bytes, Bytes{offset}, index};
}

bool BestFitAllocator::Arena::allocate_all(std::span<MemoryBlock> blocks) {
  const MemoryUse now = now_, peak = peak_;
  std::size_t given = 0;
  for (; given < blocks.size(); ++given) {
    const auto block = allocate(blocks[given].requested);
    if (!block) break;
    blocks[given] = *block;
  }
  if (given == blocks.size()) return true;
  while (given > 0) free(blocks[--given]);
  now_ = now;
  peak_ = peak;
  return false;
}

void BestFitAllocator::Arena::free(const MemoryBlock& block) {
  if (block.handle == kNone) return;
  const std::uint32_t index = block.handle;
  assert(index < pieces_.size() && !pieces_[index].free);
  assert(pieces_[index].offset == block.offset.count());
  now_.requested -= block.requested;
  now_.allocated -= Bytes{pieces_[index].size};
  const std::uint32_t next = pieces_[index].next;
  if (next != kNone && pieces_[next].free) {
    take_free(next);
    swallow_next(index);
  }
  const std::uint32_t previous = pieces_[index].previous;
  if (previous == kNone || !pieces_[previous].free) return put_free(index);
  take_free(previous);
  swallow_next(previous);
  put_free(previous);
}

std::uint32_t BestFitAllocator::Arena::new_piece(const Piece& piece) {
  if (unused_.empty()) {
    pieces_.push_back(piece);
    unused_.reserve(pieces_.capacity());
    return static_cast<std::uint32_t>(pieces_.size() - 1);
  }
  const std::uint32_t index = unused_.back();
  unused_.pop_back();
  pieces_[index] = piece;
  return index;
}

void BestFitAllocator::Arena::put_free(std::uint32_t index) {
  Piece& piece = pieces_[index];
  piece.free = true;
  free_.insert({piece.size, piece.offset, index});
}

void BestFitAllocator::Arena::take_free(std::uint32_t index) {
  const Piece& piece = pieces_[index];
  free_.erase({piece.size, piece.offset, index});
}

/// Cuts a piece to `size`; what is left over becomes a free piece of its own.
void BestFitAllocator::Arena::split(std::uint32_t index, std::int64_t size) {
  const Piece whole = pieces_[index];
  const std::uint32_t rest =
      new_piece({whole.offset + size, whole.size - size, index, whole.next, true});
  if (whole.next != kNone) pieces_[whole.next].previous = rest;
  pieces_[index].size = size;
  pieces_[index].next = rest;
  put_free(rest);
}

void BestFitAllocator::Arena::swallow_next(std::uint32_t index) {
  Piece& piece = pieces_[index];
  const std::uint32_t swallowed = piece.next;
  piece.size += pieces_[swallowed].size;
  piece.next = pieces_[swallowed].next;
  if (piece.next != kNone) pieces_[piece.next].previous = index;
  unused_.push_back(swallowed);
}

void BestFitAllocator::Arena::count(Bytes requested, std::int64_t allocated, std::int64_t end) {
  now_.requested += requested;
  now_.allocated += Bytes{allocated};
  now_.reserved = std::max(now_.reserved, Bytes{end});
  peak_.requested = std::max(peak_.requested, now_.requested);
  peak_.allocated = std::max(peak_.allocated, now_.allocated);
  peak_.reserved = now_.reserved;
}

BestFitAllocator::BestFitAllocator(Bytes capacity, Bytes alignment)
    : arena_(std::make_unique<Arena>(capacity, alignment)) {}
BestFitAllocator::BestFitAllocator(BestFitAllocator&&) noexcept = default;
BestFitAllocator& BestFitAllocator::operator=(BestFitAllocator&&) noexcept = default;
BestFitAllocator::~BestFitAllocator() = default;

std::optional<MemoryBlock> BestFitAllocator::allocate(Bytes bytes) {
  return arena_->allocate(bytes);
}
bool BestFitAllocator::allocate_all(std::span<MemoryBlock> blocks) {
  return arena_->allocate_all(blocks);
}
void BestFitAllocator::free(const MemoryBlock& block) {
  arena_->free(block);
}
Bytes BestFitAllocator::capacity() const {
  return arena_->capacity();
}
Bytes BestFitAllocator::free_bytes() const {
  return arena_->free_bytes();
}
Bytes BestFitAllocator::largest_free_block() const {
  return arena_->largest_free_block();
}
MemoryUse BestFitAllocator::now() const {
  return arena_->now();
}
MemoryUse BestFitAllocator::peak() const {
  return arena_->peak();
}

}  // namespace plimsoll
