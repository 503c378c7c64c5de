#include "memory/bfc.hpp"

#include "memory/pieces.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace plimsoll {

class BfcAllocator::Regions {
 public:
  Regions(Bytes capacity, const BfcSettings& settings)
      : capacity_(capacity),
        // What the last unit does not fill is never used.
        size_(capacity.count() - capacity.count() % kBfcUnit.count()),
        settings_(settings),
        next_region_(grows() ? rounded(settings.first_region).count() : size_) {
    assert(capacity >= Bytes{} && settings.first_region > Bytes{});
  }

  std::optional<MemoryBlock> allocate(Bytes bytes);
  bool allocate_all(std::span<MemoryBlock> blocks);
  void free(const MemoryBlock& block);

  [[nodiscard]] Bytes capacity() const { return capacity_; }
  [[nodiscard]] Bytes free_bytes() const {
    return capacity_.is_unlimited() ? capacity_ : Bytes{size_} - counters_.now.allocated;
  }
  [[nodiscard]] Bytes largest_free_block() const;
  [[nodiscard]] AllocatorCounters counters() const;
  [[nodiscard]] std::vector<MemoryPiece> pieces() const { return pieces_.in_address_order(); }
  [[nodiscard]] MemoryPiece piece_of(const MemoryBlock& block) const {
    return pieces_.seen(block.handle);
  }
  [[nodiscard]] SegmentLog& log() { return log_; }

 private:
  [[nodiscard]] bool grows() const { return settings_.growth || capacity_.is_unlimited(); }
  /// Gives a free piece that is large enough, or kNoPiece.
  std::uint32_t extend(std::int64_t size);
  std::uint32_t extend_after_giving_back(std::int64_t size);
  /// Of the regions from number `first` on.
  void give_back(std::uint64_t first);
  void count(Bytes requested, std::int64_t allocated);

  Bytes capacity_;
  std::int64_t size_;
  BfcSettings settings_;
  std::int64_t next_region_;  ///< how large it will be
  std::uint64_t next_number_ = 0;
  Pieces pieces_;
  std::vector<std::uint32_t> gathered_;  ///< scratch
  AllocatorCounters counters_;
  SegmentLog log_;
};

// --- handing out -------------------------------------------------------------------------------

std::optional<MemoryBlock> BfcAllocator::Regions::allocate(Bytes bytes) {
  assert(bytes >= Bytes{});
  if (bytes == Bytes{}) return MemoryBlock{bytes, Bytes{}, kNoPiece};
  std::uint32_t piece = kNoPiece;
  std::int64_t size = 0;
  if (bytes.count() <= size_) {
    size = rounded(bytes).count();
    piece = pieces_.best_fit(0, size);
    if (piece == kNoPiece) piece = extend(size);
    if (piece == kNoPiece && settings_.give_back_regions) piece = extend_after_giving_back(size);
  }
  if (piece == kNoPiece) {
    ++counters_.ooms;
    return std::nullopt;
  }
  pieces_.take_free(piece);
  const std::int64_t rest = pieces_[piece].size - size;
  if (rest >= size || rest >= kBfcMostWaste.count()) pieces_.put_free(pieces_.split(piece, size));
  count(bytes, pieces_[piece].size);
  return MemoryBlock{bytes, Bytes{pieces_[piece].offset}, piece};
}

bool BfcAllocator::Regions::allocate_all(std::span<MemoryBlock> blocks) {
  const AllocatorUse peak = counters_.peak;
  const std::uint64_t first_new = next_number_;
  const std::int64_t next_region = next_region_;
  std::size_t given = 0;
  for (; given < blocks.size(); ++given) {
    const auto block = allocate(blocks[given].requested);
    if (!block) break;
    blocks[given] = *block;
  }
  if (given == blocks.size()) return true;
  while (given > 0) free(blocks[--given]);
  give_back(first_new);
  next_region_ = next_region;
  counters_.peak = peak;
  return false;
}

void BfcAllocator::Regions::count(Bytes requested, std::int64_t allocated) {
  AllocatorUse &now = counters_.now, &peak = counters_.peak;
  now.requested += requested;
  now.allocated += Bytes{allocated};
  now.active = now.allocated;
  peak.requested = std::max(peak.requested, now.requested);
  peak.allocated = std::max(peak.allocated, now.allocated);
  peak.active = peak.allocated;
  peak.reserved = std::max(peak.reserved, now.reserved);
}

void BfcAllocator::Regions::free(const MemoryBlock& block) {
  if (block.handle == kNoPiece) return;
  const Piece& piece = pieces_[block.handle];
  assert(piece.state == Piece::State::in_use && piece.offset == block.offset.count());
  counters_.now.requested -= block.requested;
  counters_.now.allocated -= Bytes{piece.size};
  counters_.now.active = counters_.now.allocated;
  pieces_.free(block.handle);
}

// --- regions -----------------------------------------------------------------------------------

std::uint32_t BfcAllocator::Regions::extend(std::int64_t size) {
  const std::int64_t left = size_ - counters_.now.reserved.count();
  if (size > left) return kNoPiece;
  const auto twice = [&] { return next_region_ > size_ / 2 ? size_ : 2 * next_region_; };
  bool has_grown = false;
  for (; next_region_ < size; next_region_ = twice()) has_grown = true;
  const std::int64_t region = std::min(next_region_, left);
  if (!has_grown) next_region_ = twice();
  counters_.now.reserved += Bytes{region};
  ++counters_.segments;
  ++counters_.device_allocations;
  log_.add({.segment = next_number_, .size = Bytes{region}});
  const std::uint32_t piece = pieces_.add({.size = region, .segment = next_number_++});
  pieces_.put_free(piece);
  return piece;
}

std::uint32_t BfcAllocator::Regions::extend_after_giving_back(std::int64_t size) {
  if (Bytes{size} > largest_free_block()) return kNoPiece;
  give_back(0);
  ++counters_.retries;
  return extend(size);
}

void BfcAllocator::Regions::give_back(std::uint64_t first) {
  gathered_.clear();
  for (const PieceKey& key : pieces_.free_pieces())
    if (key.segment >= first && pieces_[key.piece].is_whole()) gathered_.push_back(key.piece);
  for (const std::uint32_t piece : gathered_) {
    pieces_.take_free(piece);
    counters_.now.reserved -= Bytes{pieces_[piece].size};
    --counters_.segments;
    ++counters_.device_frees;
    log_.add(
        {.is_taken = false, .segment = pieces_[piece].segment, .size = Bytes{pieces_[piece].size}});
    pieces_.remove(piece);
  }
}

// --- what there is -----------------------------------------------------------------------------

Bytes BfcAllocator::Regions::largest_free_block() const {
  if (capacity_.is_unlimited()) return capacity_;
  const PieceIndex& free = pieces_.free_pieces();
  const Bytes cached = free.empty() ? Bytes{} : Bytes{std::prev(free.end())->size};
  Bytes at_device = Bytes{size_} - counters_.now.reserved;
  if (settings_.give_back_regions)
    for (const PieceKey& key : free)
      if (pieces_[key.piece].is_whole()) at_device += Bytes{key.size};
  return std::max(cached, at_device);
}

AllocatorCounters BfcAllocator::Regions::counters() const {
  AllocatorCounters counters = counters_;
  counters.inactive_split = Bytes{pieces_.cut_free()};
  return counters;
}

Bytes BfcAllocator::rounded(Bytes bytes) {
  const std::int64_t unit = kBfcUnit.count();
  return Bytes{(bytes + Bytes{unit - 1}).count() / unit * unit};
}

// --- the value that users hold -----------------------------------------------------------------

BfcAllocator::BfcAllocator(Bytes capacity, const BfcSettings& settings)
    : regions_(std::make_unique<Regions>(capacity, settings)) {}
BfcAllocator::BfcAllocator(BfcAllocator&&) noexcept = default;
BfcAllocator& BfcAllocator::operator=(BfcAllocator&&) noexcept = default;
BfcAllocator::~BfcAllocator() = default;

std::optional<MemoryBlock> BfcAllocator::allocate(Bytes bytes) {
  return regions_->allocate(bytes);
}
bool BfcAllocator::allocate_all(std::span<MemoryBlock> blocks) {
  return regions_->allocate_all(blocks);
}
void BfcAllocator::free(const MemoryBlock& block) {
  regions_->free(block);
}
Bytes BfcAllocator::capacity() const {
  return regions_->capacity();
}
Bytes BfcAllocator::free_bytes() const {
  return regions_->free_bytes();
}
Bytes BfcAllocator::largest_free_block() const {
  return regions_->largest_free_block();
}
MemoryUse BfcAllocator::now() const {
  const AllocatorUse now = counters().now;
  return {now.requested, now.allocated, now.reserved};
}
MemoryUse BfcAllocator::peak() const {
  const AllocatorUse peak = counters().peak;
  return {peak.requested, peak.allocated, peak.reserved};
}
AllocatorCounters BfcAllocator::counters() const {
  return regions_->counters();
}
MemoryPiece BfcAllocator::piece_of(const MemoryBlock& block) const {
  return regions_->piece_of(block);
}
SegmentLog& BfcAllocator::log() {
  return regions_->log();
}
std::vector<MemoryPiece> BfcAllocator::pieces() const {
  return regions_->pieces();
}

}  // namespace plimsoll
