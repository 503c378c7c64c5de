// What a caching allocator takes from the device and gives back.
#include "memory/cache.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace plimsoll {

// --- taking ------------------------------------------------------------------------------------

std::uint32_t CachingAllocator::Cache::obtain(const Request& request) {
  if (settings_.garbage_collection_threshold > Ratio{}) collect();
  std::uint32_t piece = ask(request);
  if (piece == kNoPiece && release_oversize(request)) piece = ask(request);
  if (piece != kNoPiece) return piece;
  release_all();
  return ask(request);
}

std::uint32_t CachingAllocator::Cache::ask(const Request& request) {
  if (settings_.expandable_segments) return grow(request);
  const Bytes size = segment_for(Bytes{request.size});
  if (!capacity_.is_unlimited() && size > capacity_ - counters_.now.reserved) return kNoPiece;
  counters_.now.reserved += size;
  ++counters_.segments;
  ++counters_.device_allocations;
  const std::uint32_t piece =
      pieces_.add({.size = size.count(), .segment = next_segment_++, .pool = request.pool});
  note(piece, true, 0, size.count());
  return piece;
}

void CachingAllocator::Cache::note(std::uint32_t piece, bool is_taken, std::int64_t offset,
                                   std::int64_t size) {
  const Piece& it = pieces_[piece];
  log_.add({.is_taken = is_taken,
            .is_mapping = settings_.expandable_segments,
            .segment = it.segment,
            .stream = it.pool / 2,
            .is_small = is_small(it.pool),
            .offset = Bytes{offset},
            .size = Bytes{size}});
}

// --- giving back -------------------------------------------------------------------------------

void CachingAllocator::Cache::release_segment(std::uint32_t piece) {
  pieces_.take_free(piece);
  counters_.now.reserved -= Bytes{pieces_[piece].size};
  ++counters_.device_frees;
  note(piece, false, 0, pieces_[piece].size);
  forget_segment(piece);
}

void CachingAllocator::Cache::release_cached() {
  gathered_.clear();
  for (const PieceKey& key : pieces_.free_pieces())
    if (settings_.expandable_segments || pieces_[key.piece].is_whole())
      gathered_.push_back(key.piece);
  for (const std::uint32_t piece : gathered_) {
    if (settings_.expandable_segments)
      release_pages(piece);
    else
      release_segment(piece);
  }
}

void CachingAllocator::Cache::release_all() {
  events_complete();
  release_cached();
  ++counters_.retries;
}

/// The smallest block that is oversize and large enough; without one, from the largest downwards.
/// Says whether it was enough.
bool CachingAllocator::Cache::release_oversize(const Request& request) {
  if (settings_.max_split_size.is_unlimited()) return false;
  const std::int64_t oversize = settings_.max_split_size.count();
  const std::int64_t enough = std::max(request.size, oversize);
  if (const std::uint32_t one = pieces_.best_fit(request.pool, enough); one != kNoPiece) {
    release_segment(one);
    return true;
  }
  std::int64_t released = 0;
  while (released < enough) {
    const PieceIndex& free = pieces_.free_pieces();
    const auto behind = free.lower_bound(PieceKey::least(request.pool + 1, 0));
    if (behind == free.begin()) return false;
    const PieceKey largest = *std::prev(behind);
    if (largest.pool != request.pool || largest.size < oversize) return false;
    released += largest.size;
    release_segment(largest.piece);
  }
  return true;
}

void CachingAllocator::Cache::collect() {
  const std::int64_t surplus = counters_.now.reserved.count() - collect_above_;
  if (surplus <= 0) return;
  std::int64_t ages = 0, released = 0;
  const auto age = [&](std::uint32_t piece) { return lookups_ - cached_at_[piece]; };
  gathered_.clear();
  for (const PieceKey& key : pieces_.free_pieces()) {
    if (is_small(key.pool) || !pieces_[key.piece].is_whole()) continue;
    gathered_.push_back(key.piece);
    ages += age(key.piece);
  }
  while (released < surplus && !gathered_.empty()) {
    const auto count = static_cast<std::int64_t>(gathered_.size());
    const std::int64_t sum = ages;
    std::erase_if(gathered_, [&](std::uint32_t piece) {
      if (age(piece) * count < sum) return false;
      ages -= age(piece);
      released += pieces_[piece].size;
      release_segment(piece);
      return true;
    });
  }
}

// --- expandable segments -----------------------------------------------------------------------

std::int64_t CachingAllocator::Cache::page_of(std::uint32_t pool) {
  return (is_small(pool) ? kSmallSegment : kLargeSegment).count();
}

std::int64_t CachingAllocator::Cache::space_of(std::uint32_t pool) const {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  const std::int64_t page = page_of(pool);
  if (capacity_.count() > kMost / 2) return kMost / page * page;
  const std::int64_t space = capacity_.count() + capacity_.count() / 8;
  return (space + page - 1) / page * page;
}

PieceKey CachingAllocator::Cache::address_of(std::uint32_t piece) const {
  const Piece& it = pieces_[piece];
  return {it.pool, piece, 0, it.segment, it.offset};
}

void CachingAllocator::Cache::put_unmapped(std::uint32_t piece) {
  pieces_.set_state(piece, Piece::State::unmapped);
  unmapped_.insert(address_of(piece));
}

void CachingAllocator::Cache::take_unmapped(std::uint32_t piece) {
  unmapped_.erase(address_of(piece));
  pieces_.set_state(piece, Piece::State::in_use);
}

/// The lowest unmapped range that, with a free piece before it, has room; a segment is made where
/// there is none. Or kNoPiece.
std::uint32_t CachingAllocator::Cache::range_with_room(const Request& request) {
  auto range = unmapped_.lower_bound(PieceKey::least(request.pool, 0));
  const bool has_segment = range != unmapped_.end() && range->pool == request.pool;
  for (; range != unmapped_.end() && range->pool == request.pool; ++range) {
    const Piece& it = pieces_[range->piece];
    const bool follows_free =
        it.previous != kNoPiece && pieces_[it.previous].state == Piece::State::free;
    const std::int64_t before = follows_free ? pieces_[it.previous].size : 0;
    if (before + it.size >= request.size) return range->piece;
  }
  const std::int64_t space = space_of(request.pool);
  if (has_segment || request.size > space) return kNoPiece;
  ++counters_.segments;
  const std::uint32_t piece =
      pieces_.add({.size = space, .segment = next_segment_++, .pool = request.pool});
  put_unmapped(piece);
  return piece;
}

std::uint32_t CachingAllocator::Cache::grow(const Request& request) {
  const std::uint32_t range = range_with_room(request);
  if (range == kNoPiece) return kNoPiece;
  const std::uint32_t before = pieces_[range].previous;
  const bool follows_free = before != kNoPiece && pieces_[before].state == Piece::State::free;
  const std::int64_t missing = request.size - (follows_free ? pieces_[before].size : 0);
  if (missing <= 0) {  // freed only when everything under way had ended
    pieces_.take_free(before);
    return before;
  }
  const std::int64_t page = page_of(request.pool);
  const Bytes mapped{(missing + page - 1) / page * page};
  if (!capacity_.is_unlimited() && mapped > capacity_ - counters_.now.reserved) {
    if (!pieces_[range].is_whole()) return kNoPiece;
    take_unmapped(range);  // of a segment just made
    forget_segment(range);
    return kNoPiece;
  }
  counters_.now.reserved += mapped;
  ++counters_.device_allocations;
  note(range, true, pieces_[range].offset, mapped.count());
  take_unmapped(range);
  if (mapped.count() < pieces_[range].size) put_unmapped(pieces_.split(range, mapped.count()));
  const std::uint32_t piece = pieces_.free(range);
  pieces_.take_free(piece);
  return piece;
}

void CachingAllocator::Cache::forget_segment(std::uint32_t piece) {
  --counters_.segments;
  pieces_.remove(piece);
}

Bytes CachingAllocator::Cache::whole_pages(std::uint32_t piece) const {
  const std::int64_t page = page_of(pieces_[piece].pool);
  const std::int64_t offset = pieces_[piece].offset, end = offset + pieces_[piece].size;
  return Bytes{std::max<std::int64_t>(end / page - (offset + page - 1) / page, 0) * page};
}

/// Unmaps the whole pages within a free piece; what is left of it on both sides stays free.
void CachingAllocator::Cache::release_pages(std::uint32_t piece) {
  const std::int64_t page = page_of(pieces_[piece].pool);
  const std::int64_t offset = pieces_[piece].offset, end = offset + pieces_[piece].size;
  const std::int64_t first = (offset + page - 1) / page * page, last = end / page * page;
  if (first >= last) return;
  pieces_.take_free(piece);
  std::uint32_t middle = piece;
  if (first > offset) middle = pieces_.split(piece, first - offset);
  if (last < end) pieces_.put_free(pieces_.split(middle, last - first));
  if (middle != piece) pieces_.put_free(piece);
  counters_.now.reserved -= Bytes{last - first};
  ++counters_.device_frees;
  note(middle, false, first, last - first);

  const auto is_unmapped = [&](std::uint32_t id) {
    return id != kNoPiece && pieces_[id].state == Piece::State::unmapped;
  };
  if (const std::uint32_t next = pieces_[middle].next; is_unmapped(next)) {
    take_unmapped(next);
    pieces_.join_next(middle);
  }
  if (const std::uint32_t previous = pieces_[middle].previous; is_unmapped(previous)) {
    take_unmapped(previous);
    pieces_.join_next(previous);
    middle = previous;
  }
  if (!pieces_[middle].is_whole()) return put_unmapped(middle);
  forget_segment(middle);
}

// --- what there is -----------------------------------------------------------------------------

std::vector<MemoryPiece> CachingAllocator::Cache::pieces() const {
  std::vector<MemoryPiece> all = pieces_.in_address_order();
  if (awaited_.empty()) return all;
  std::vector<bool> is_awaited(pieces_.size(), false);
  for (const MemoryBlock& block : awaited_) is_awaited[block.handle] = true;
  for (MemoryPiece& piece : all)
    if (piece.state == MemoryPiece::State::in_use && is_awaited[piece.handle])
      piece.state = MemoryPiece::State::awaited;
  return all;
}

std::vector<MemorySegment> CachingAllocator::Cache::segments() const {
  std::vector<MemorySegment> all = segments_of(pieces());
  const std::vector<std::uint32_t> heads = pieces_.heads();
  assert(heads.size() == all.size());
  for (std::size_t s = 0; s < all.size(); ++s) {
    all[s].stream = pieces_[heads[s]].pool / 2;
    all[s].is_small = is_small(pieces_[heads[s]].pool);
  }
  return all;
}

}  // namespace plimsoll
