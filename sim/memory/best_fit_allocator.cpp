#include "memory/allocator.hpp"
#include "memory/pieces.hpp"

namespace plimsoll {

class BestFitAllocator::Arena {
 public:
  Arena(Bytes capacity, Bytes alignment) : capacity_(capacity), alignment_(alignment.count()) {
    assert(capacity >= Bytes{} && alignment_ > 0);
    size_ = capacity.count() - capacity.count() % alignment_;
    if (size_ > 0) pieces_.put_free(pieces_.add({.size = size_}));
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
    const Pieces::Index& free = pieces_.free_pieces();
    return free.empty() ? Bytes{} : Bytes{free.rbegin()->size};
  }
  [[nodiscard]] const MemoryUse& now() const { return now_; }
  [[nodiscard]] const MemoryUse& peak() const { return peak_; }

 private:
  void count(Bytes requested, std::int64_t allocated, std::int64_t end);

  Bytes capacity_;
  std::int64_t alignment_;
  std::int64_t size_ = 0;
  Pieces pieces_;
  MemoryUse now_;
  MemoryUse peak_;
};

std::optional<MemoryBlock> BestFitAllocator::Arena::allocate(Bytes bytes) {
  assert(bytes >= Bytes{});
  if (bytes == Bytes{}) return MemoryBlock{bytes, Bytes{}, kNoPiece};
  if (bytes.count() > size_) return std::nullopt;
  // size_ is a whole number of units, so rounding up cannot leave it.
  const std::int64_t units = (bytes.count() - 1) / alignment_ + 1;
  const std::int64_t size = units * alignment_;
  const std::uint32_t index = pieces_.best_fit(0, size);
  if (index == kNoPiece) return std::nullopt;
  pieces_.take_free(index);
  if (pieces_[index].size > size) pieces_.put_free(pieces_.split(index, size));
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
  if (block.handle == kNoPiece) return;
  const std::uint32_t index = block.handle;
  assert(index < pieces_.size() && pieces_[index].state == Piece::State::in_use);
  assert(pieces_[index].offset == block.offset.count());
  now_.requested -= block.requested;
  now_.allocated -= Bytes{pieces_[index].size};
  pieces_.free(index);
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
