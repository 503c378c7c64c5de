#include "memory/caching.hpp"

#include "engine/wide.hpp"
#include "memory/cache.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace plimsoll {

namespace {

/// Throws QuantityOverflow where the result leaves the range.
std::int64_t round_up(std::int64_t count, std::int64_t unit) {
  return (Bytes{count} + Bytes{unit - 1}).count() / unit * unit;
}

std::int64_t share_of(Bytes capacity, Ratio share) {
  if (capacity.is_unlimited()) return capacity.count();
  return static_cast<std::int64_t>(Signed128{capacity.count()} * share.count() / kWhole.count());
}

}  // namespace

Bytes CachingAllocator::rounded(Bytes bytes, const CachingSettings& settings) {
  const std::int64_t divisions = settings.roundup_power2_divisions;
  const auto n = static_cast<std::uint64_t>(bytes.count());
  if (divisions > 1 && bytes > kSmallestBlock * divisions) {
    const std::uint64_t power = std::bit_floor(n);
    if (power == n) return bytes;
    return Bytes{round_up(bytes.count(), static_cast<std::int64_t>(power) / divisions)};
  }
  return Bytes{round_up(std::max<std::int64_t>(bytes.count(), 1), kSmallestBlock.count())};
}

Bytes CachingAllocator::segment_for(Bytes rounded_bytes) {
  if (rounded_bytes <= kSmallRequest) return kSmallSegment;
  if (rounded_bytes < Bytes{10 << 20}) return kLargeSegment;
  return Bytes{round_up(rounded_bytes.count(), kSmallSegment.count())};
}

CachingAllocator::Cache::Cache(Bytes capacity, const CachingSettings& settings)
    : capacity_(capacity),
      settings_(settings),
      collect_above_(share_of(capacity, settings.garbage_collection_threshold)) {
  assert(capacity >= Bytes{} && settings.max_split_size > kLargeSegment);
  assert(std::has_single_bit(static_cast<std::uint64_t>(settings.roundup_power2_divisions)));
}

// --- handing out -------------------------------------------------------------------------------

CachingAllocator::Cache::Request CachingAllocator::Cache::request_of(Bytes bytes,
                                                                     std::uint32_t stream) const {
  const Bytes size = rounded(bytes, settings_);
  return {2 * stream + (size <= kSmallRequest ? 0 : 1), size.count()};
}

std::optional<MemoryBlock> CachingAllocator::Cache::allocate(Bytes bytes, std::uint32_t stream) {
  assert(bytes >= Bytes{});
  if (bytes == Bytes{}) return MemoryBlock{bytes, Bytes{}, kNoPiece};
  std::uint32_t piece = kNoPiece;
  if (bytes > capacity_) {
    release_all();
  } else {
    const Request request = request_of(bytes, stream);
    piece = find(request);
    if (piece == kNoPiece) piece = obtain(request);
    if (piece != kNoPiece && is_cut(request, pieces_[piece].size))
      pieces_.put_free(pieces_.split(piece, request.size));
  }
  if (piece == kNoPiece) {
    ++counters_.ooms;
    return std::nullopt;
  }
  count(bytes, pieces_[piece].size);
  return MemoryBlock{bytes, Bytes{pieces_[piece].offset}, piece};
}

bool CachingAllocator::Cache::allocate_all(std::span<MemoryBlock> blocks, std::uint32_t stream) {
  const AllocatorUse peak = counters_.peak;
  std::size_t given = 0;
  for (; given < blocks.size(); ++given) {
    const auto block = allocate(blocks[given].requested, stream);
    if (!block) break;
    blocks[given] = *block;
  }
  if (given == blocks.size()) return true;
  while (given > 0) free(blocks[--given]);
  release_cached();
  counters_.peak = peak;
  return false;
}

std::uint32_t CachingAllocator::Cache::find(const Request& request) {
  if (!is_small(request.pool)) ++lookups_;
  if (settings_.expandable_segments) return find_expandable(request);
  const std::uint32_t best = pieces_.best_fit(request.pool, request.size);
  if (best == kNoPiece) return kNoPiece;
  const std::int64_t size = pieces_[best].size, most = settings_.max_split_size.count();
  const bool is_oversize = request.size >= most;
  if (!is_oversize && size >= most) return kNoPiece;
  if (is_oversize && size - request.size >= kLargeSegment.count()) return kNoPiece;
  pieces_.take_free(best);
  return best;
}

std::uint32_t CachingAllocator::Cache::find_expandable(const Request& request) {
  std::uint32_t best = kNoPiece;
  std::int64_t least = 0;
  const PieceIndex& free = pieces_.free_pieces();
  auto it = free.lower_bound(PieceKey::least(request.pool, request.size));
  for (; it != free.end() && it->pool == request.pool; ++it) {
    const std::uint32_t next = pieces_[it->piece].next;
    const bool grows = next != kNoPiece && pieces_[next].state == Piece::State::unmapped;
    const std::int64_t reach = it->size + (grows ? pieces_[next].size : 0);
    const bool is_lower = best != kNoPiece && pieces_[it->piece].offset < pieces_[best].offset;
    if (best == kNoPiece || reach < least || (reach == least && is_lower)) {
      best = it->piece;
      least = reach;
    }
    if (!grows) break;  // whatever comes later is larger
  }
  if (best != kNoPiece) pieces_.take_free(best);
  return best;
}

bool CachingAllocator::Cache::is_cut(const Request& request, std::int64_t block) const {
  const std::int64_t rest = block - request.size;
  if (is_small(request.pool) || settings_.expandable_segments)
    return rest >= kSmallestBlock.count();
  return request.size < settings_.max_split_size.count() && rest > kSmallRequest.count();
}

void CachingAllocator::Cache::count(Bytes requested, std::int64_t allocated) {
  AllocatorUse &now = counters_.now, &peak = counters_.peak;
  now.requested += requested;
  now.allocated += Bytes{allocated};
  now.active += Bytes{allocated};
  peak.requested = std::max(peak.requested, now.requested);
  peak.allocated = std::max(peak.allocated, now.allocated);
  peak.active = std::max(peak.active, now.active);
  peak.reserved = std::max(peak.reserved, now.reserved);
}

// --- taking back -------------------------------------------------------------------------------

void CachingAllocator::Cache::free(const MemoryBlock& block) {
  if (block.handle == kNoPiece) return;
  const Piece& piece = pieces_[block.handle];
  assert(piece.state == Piece::State::in_use && piece.offset == block.offset.count());
  counters_.now.allocated -= Bytes{piece.size};
  const bool awaited = block.handle < used_elsewhere_.size() && used_elsewhere_[block.handle];
  if (awaited)
    awaited_.push_back(block);
  else
    put_back(block);
}

void CachingAllocator::Cache::put_back(const MemoryBlock& block) {
  counters_.now.requested -= block.requested;
  counters_.now.active -= Bytes{pieces_[block.handle].size};
  const std::uint32_t piece = pieces_.free(block.handle);
  if (settings_.garbage_collection_threshold == Ratio{}) return;
  if (cached_at_.size() < pieces_.size()) cached_at_.resize(2 * pieces_.size());
  cached_at_[piece] = lookups_;
}

void CachingAllocator::Cache::used_on(const MemoryBlock& block, std::uint32_t stream) {
  if (block.handle == kNoPiece || pieces_[block.handle].pool / 2 == stream) return;
  if (used_elsewhere_.size() < pieces_.size()) used_elsewhere_.resize(2 * pieces_.size());
  used_elsewhere_[block.handle] = true;
}

void CachingAllocator::Cache::events_complete() {
  for (const MemoryBlock& block : awaited_) {
    used_elsewhere_[block.handle] = false;
    put_back(block);
  }
  awaited_.clear();
}

void CachingAllocator::Cache::complete(const MemoryBlock& block) {
  const auto it = std::ranges::find(awaited_, block.handle, &MemoryBlock::handle);
  if (it == awaited_.end()) return;
  used_elsewhere_[block.handle] = false;
  put_back(*it);
  awaited_.erase(it);
}

// --- what there is -----------------------------------------------------------------------------

Bytes CachingAllocator::Cache::free_bytes() const {
  return capacity_.is_unlimited() ? capacity_ : capacity_ - counters_.now.active;
}

Bytes CachingAllocator::Cache::largest_cached_block() const {
  std::int64_t largest = 0;
  for (const PieceKey& key : pieces_.free_pieces()) largest = std::max(largest, key.size);
  return Bytes{largest};
}

Bytes CachingAllocator::Cache::largest_free_block() const {
  if (capacity_.is_unlimited()) return capacity_;
  Bytes at_device = capacity_ - counters_.now.reserved;
  if (settings_.expandable_segments) {
    for (const PieceKey& key : pieces_.free_pieces()) at_device += whole_pages(key.piece);
    return std::min(at_device + largest_cached_block(), free_bytes());
  }
  for (const PieceKey& key : pieces_.free_pieces())
    if (pieces_[key.piece].is_whole()) at_device += Bytes{key.size};
  return std::max(at_device, largest_cached_block());
}

AllocatorCounters CachingAllocator::Cache::counters() const {
  AllocatorCounters counters = counters_;
  if (!settings_.expandable_segments) counters.inactive_split = Bytes{pieces_.cut_free()};
  return counters;
}

// --- the value that users hold -----------------------------------------------------------------

CachingAllocator::CachingAllocator(Bytes capacity, const CachingSettings& settings)
    : cache_(std::make_unique<Cache>(capacity, settings)) {}
CachingAllocator::CachingAllocator(CachingAllocator&&) noexcept = default;
CachingAllocator& CachingAllocator::operator=(CachingAllocator&&) noexcept = default;
CachingAllocator::~CachingAllocator() = default;

std::optional<MemoryBlock> CachingAllocator::allocate(Bytes bytes, std::uint32_t stream) {
  return cache_->allocate(bytes, stream);
}
bool CachingAllocator::allocate_all(std::span<MemoryBlock> blocks, std::uint32_t stream) {
  return cache_->allocate_all(blocks, stream);
}
void CachingAllocator::free(const MemoryBlock& block) {
  cache_->free(block);
}
void CachingAllocator::used_on(const MemoryBlock& block, std::uint32_t stream) {
  cache_->used_on(block, stream);
}
void CachingAllocator::events_complete() {
  cache_->events_complete();
}
void CachingAllocator::complete(const MemoryBlock& block) {
  cache_->complete(block);
}
void CachingAllocator::release_cached() {
  cache_->release_cached();
}
Bytes CachingAllocator::capacity() const {
  return cache_->capacity();
}
Bytes CachingAllocator::free_bytes() const {
  return cache_->free_bytes();
}
Bytes CachingAllocator::largest_free_block() const {
  return cache_->largest_free_block();
}
Bytes CachingAllocator::largest_cached_block() const {
  return cache_->largest_cached_block();
}
MemoryUse CachingAllocator::now() const {
  const AllocatorUse now = cache_->counters().now;
  return {now.requested, now.allocated, now.reserved};
}
MemoryUse CachingAllocator::peak() const {
  const AllocatorUse peak = cache_->counters().peak;
  return {peak.requested, peak.allocated, peak.reserved};
}
AllocatorCounters CachingAllocator::counters() const {
  return cache_->counters();
}
Bytes CachingAllocator::size_of(const MemoryBlock& block) const {
  return block.handle == kNoPiece ? Bytes{} : Bytes{cache_->piece_of(block).size};
}
std::uint64_t CachingAllocator::segment_of(const MemoryBlock& block) const {
  return cache_->piece_of(block).segment;
}
Bytes CachingAllocator::rounded(Bytes bytes) const {
  return rounded(bytes, cache_->settings());
}
MemoryPiece CachingAllocator::piece_of(const MemoryBlock& block) const {
  return cache_->seen(block.handle);
}
SegmentLog& CachingAllocator::log() {
  return cache_->log();
}
std::vector<MemoryPiece> CachingAllocator::pieces() const {
  return cache_->pieces();
}
std::vector<MemorySegment> CachingAllocator::segments() const {
  return cache_->segments();
}

}  // namespace plimsoll
