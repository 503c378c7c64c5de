#include "memory/pieces.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace plimsoll {

std::uint32_t Pieces::add(const Piece& piece) {
  assert(piece.state != Piece::State::free);
  if (unused_.empty()) {
    pieces_.push_back(piece);
    unused_.reserve(pieces_.capacity());
    return static_cast<std::uint32_t>(pieces_.size() - 1);
  }
  const std::uint32_t id = unused_.back();
  unused_.pop_back();
  pieces_[id] = piece;
  return id;
}

void Pieces::remove(std::uint32_t piece) {
  assert(pieces_[piece].is_whole() && pieces_[piece].state != Piece::State::free);
  pieces_[piece].size = 0;
  unused_.push_back(piece);
}

PieceKey Pieces::key_of(std::uint32_t piece) const {
  const Piece& it = pieces_[piece];
  return {it.pool, piece, it.size, it.segment, it.offset};
}

std::uint32_t Pieces::best_fit(std::uint32_t pool, std::int64_t size) const {
  const auto fit = free_.lower_bound(PieceKey::least(pool, size));
  return fit == free_.end() || fit->pool != pool ? kNoPiece : fit->piece;
}

std::uint32_t Pieces::first_fit(std::uint32_t pool, std::int64_t size) const {
  std::uint32_t first = kNoPiece;
  auto it = free_.lower_bound(PieceKey::least(pool, size));
  const auto address = [](const auto& at) { return std::pair(at.segment, at.offset); };
  for (; it != free_.end() && it->pool == pool; ++it)
    if (first == kNoPiece || address(*it) < address(pieces_[first])) first = it->piece;
  return first;
}

void Pieces::put_free(std::uint32_t piece) {
  Piece& it = pieces_[piece];
  assert(it.state != Piece::State::free);
  it.state = Piece::State::free;
  if (!it.is_whole()) cut_free_ += it.size;
  free_.insert(key_of(piece));
}

void Pieces::take_free(std::uint32_t piece) {
  Piece& it = pieces_[piece];
  assert(it.state == Piece::State::free);
  it.state = Piece::State::in_use;
  if (!it.is_whole()) cut_free_ -= it.size;
  free_.erase(key_of(piece));
}

std::uint32_t Pieces::free_piece_at(std::uint32_t pool, std::int64_t offset,
                                    std::int64_t size) const {
  auto it = free_.lower_bound(PieceKey::least(pool, size));
  for (; it != free_.end() && it->pool == pool; ++it)
    if (it->offset <= offset && offset - it->offset <= it->size - size) return it->piece;
  return kNoPiece;
}

std::uint32_t Pieces::take_range(std::uint32_t piece, std::int64_t offset, std::int64_t size) {
  take_free(piece);
  std::uint32_t taken = piece;
  if (offset > pieces_[piece].offset) {
    taken = split(piece, offset - pieces_[piece].offset);
    put_free(piece);
  }
  if (size < pieces_[taken].size) put_free(split(taken, size));
  return taken;
}

std::uint32_t Pieces::split(std::uint32_t piece, std::int64_t size) {
  Piece rest = pieces_[piece];
  assert(0 < size && size < rest.size);
  rest.offset += size;
  rest.size -= size;
  rest.previous = piece;
  const std::uint32_t id = add(rest);
  if (rest.next != kNoPiece) pieces_[rest.next].previous = id;
  pieces_[piece].size = size;
  pieces_[piece].next = id;
  return id;
}

void Pieces::join_next(std::uint32_t piece) {
  Piece& it = pieces_[piece];
  const std::uint32_t joined = it.next;
  it.size += pieces_[joined].size;
  it.next = pieces_[joined].next;
  pieces_[joined].size = 0;
  if (it.next != kNoPiece) pieces_[it.next].previous = piece;
  unused_.push_back(joined);
}

std::uint32_t Pieces::free(std::uint32_t piece) {
  assert(pieces_[piece].state == Piece::State::in_use);
  const auto is_free = [&](std::uint32_t id) {
    return id != kNoPiece && pieces_[id].state == Piece::State::free;
  };
  if (const std::uint32_t next = pieces_[piece].next; is_free(next)) {
    take_free(next);
    join_next(piece);
  }
  if (const std::uint32_t previous = pieces_[piece].previous; is_free(previous)) {
    take_free(previous);
    join_next(previous);
    piece = previous;
  }
  put_free(piece);
  return piece;
}

std::vector<std::uint32_t> Pieces::heads() const {
  std::vector<std::uint32_t> heads;
  for (std::uint32_t id = 0; id < pieces_.size(); ++id)
    if (pieces_[id].size > 0 && pieces_[id].previous == kNoPiece) heads.push_back(id);
  std::ranges::sort(heads, {}, [&](std::uint32_t id) { return pieces_[id].segment; });
  return heads;
}

MemoryPiece Pieces::seen(std::uint32_t piece) const {
  const Piece& it = pieces_[piece];
  const bool is_free = it.state == Piece::State::free;
  return {it.segment, Bytes{it.offset}, Bytes{it.size},
          is_free ? MemoryPiece::State::free : MemoryPiece::State::in_use,
          is_free ? kNoPiece : piece};
}

std::vector<MemoryPiece> Pieces::in_address_order() const {
  std::vector<MemoryPiece> all;
  all.reserve(pieces_.size());
  for (const std::uint32_t head : heads()) {
    for (std::uint32_t id = head; id != kNoPiece; id = pieces_[id].next) {
      if (pieces_[id].state != Piece::State::unmapped) all.push_back(seen(id));
    }
  }
  return all;
}

}  // namespace plimsoll
