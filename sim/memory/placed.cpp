#include "memory/placed.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace plimsoll {

PlacedAllocator::PlacedAllocator(Bytes capacity, Bytes alignment, std::vector<PlacedBlock> blocks)
    : capacity_(capacity), alignment_(alignment), blocks_(std::move(blocks)) {
  assert(capacity >= Bytes{} && alignment > Bytes{});
  for (const PlacedBlock& it : blocks_) end_ = std::max(end_, it.offset + rounded(it.requested));
}

std::optional<MemoryBlock> PlacedAllocator::allocate(Bytes bytes) {
  assert(bytes >= Bytes{});
  if (bytes > free_bytes()) return std::nullopt;
  return take(bytes);
}

bool PlacedAllocator::allocate_all(std::span<MemoryBlock> blocks) {
  Bytes sum;
  for (const MemoryBlock& block : blocks) sum += block.requested;
  if (sum > free_bytes()) return false;
  for (MemoryBlock& block : blocks) block = take(block.requested);
  return true;
}

MemoryBlock PlacedAllocator::take(Bytes bytes) {
  if (bytes == Bytes{}) return {};
  assert(next_ < blocks_.size() && blocks_[next_].requested == bytes);
  const auto handle = static_cast<std::uint32_t>(next_++);
  const Bytes offset = blocks_[handle].offset;
  assert(is_free(offset, rounded(bytes)));
  in_use_.emplace(offset, handle);
  requested_ += bytes;
  allocated_ += rounded(bytes);
  peak_.requested = std::max(peak_.requested, requested_);
  peak_.allocated = std::max(peak_.allocated, allocated_);
  peak_.reserved = end_;
  return {bytes, offset, handle};
}

bool PlacedAllocator::is_free(Bytes offset, Bytes size) const {
  const auto above = in_use_.lower_bound(offset);
  if (above != in_use_.end() && above->first < offset + size) return false;
  if (above == in_use_.begin()) return true;
  const auto& [begin, handle] = *std::prev(above);
  return begin + rounded(blocks_[handle].requested) <= offset;
}

void PlacedAllocator::free(const MemoryBlock& block) {
  if (block.requested == Bytes{}) return;
  assert(in_use_.contains(block.offset) && in_use_.at(block.offset) == block.handle);
  in_use_.erase(block.offset);
  requested_ -= block.requested;
  allocated_ -= rounded(block.requested);
}

Bytes PlacedAllocator::free_bytes() const {
  return capacity_.is_unlimited() ? capacity_ : capacity_ - requested_;
}

MemoryUse PlacedAllocator::now() const {
  return {requested_, allocated_, end_};
}

AllocatorCounters PlacedAllocator::counters() const {
  return {.now = {requested_, allocated_, allocated_, end_},
          .peak = {peak_.requested, peak_.allocated, peak_.allocated, peak_.reserved},
          .inactive_split = in_use_.empty() ? Bytes{} : end_ - allocated_,
          .segments = 1};
}

Bytes PlacedAllocator::rounded(Bytes bytes) const {
  if (bytes == Bytes{}) return bytes;
  return ((bytes.count() - 1) / alignment_.count() + 1) * alignment_;
}

std::vector<MemoryPiece> PlacedAllocator::pieces() const {
  std::vector<MemoryPiece> pieces;
  Bytes top;
  const auto fill_up_to = [&](Bytes offset) {
    if (offset > top) pieces.push_back({.offset = top, .size = offset - top});
  };
  for (const auto& [offset, handle] : in_use_) {
    fill_up_to(offset);
    const Bytes size = rounded(blocks_[handle].requested);
    pieces.push_back({0, offset, size, MemoryPiece::State::in_use, handle});
    top = offset + size;
  }
  fill_up_to(end_);
  return pieces;
}

MemoryPiece PlacedAllocator::piece_of(const MemoryBlock& block) const {
  return {0, block.offset, rounded(block.requested), MemoryPiece::State::in_use, block.handle};
}

}  // namespace plimsoll
