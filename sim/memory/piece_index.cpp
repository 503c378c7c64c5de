#include "memory/piece_index.hpp"

#include <algorithm>
#include <cassert>

namespace plimsoll {

/// Of the leaf in which `key` is, or would be. Precondition: not empty.
std::size_t PieceIndex::entry_of(const PieceKey& key) const {
  const auto behind =
      std::upper_bound(order_.begin(), order_.end(), key,
                       [](const PieceKey& wanted, const Entry& it) { return wanted < it.least; });
  return behind == order_.begin() ? 0 : static_cast<std::size_t>(behind - order_.begin() - 1);
}

PieceIndex::Iterator PieceIndex::lower_bound(const PieceKey& key) const {
  if (order_.empty()) return end();
  const std::size_t entry = entry_of(key);
  const Leaf& leaf = leaves_[order_[entry].leaf];
  const auto keys = leaf.keys.begin();
  const auto at = std::lower_bound(keys, keys + leaf.size, key) - keys;
  if (at == leaf.size) return {*this, entry + 1, 0};
  return {*this, entry, static_cast<std::uint32_t>(at)};
}

void PieceIndex::insert(const PieceKey& key) {
  if (order_.empty()) order_.push_back({key, new_leaf()});
  std::size_t entry = entry_of(key);
  if (leaves_[order_[entry].leaf].size == kLeaf) {
    split(entry);
    if (!(key < order_[entry + 1].least)) ++entry;
  }
  Leaf& leaf = leaves_[order_[entry].leaf];
  const auto keys = leaf.keys.begin(), last = keys + leaf.size;
  const auto at = std::lower_bound(keys, last, key);
  std::copy_backward(at, last, last + 1);
  *at = key;
  ++leaf.size;
  if (key < order_[entry].least) order_[entry].least = key;
}

void PieceIndex::erase(const PieceKey& key) {
  const std::size_t entry = entry_of(key);
  Leaf& leaf = leaves_[order_[entry].leaf];
  const auto keys = leaf.keys.begin(), last = keys + leaf.size;
  const auto at = std::lower_bound(keys, last, key);
  assert(at != last && at->piece == key.piece);
  std::copy(at + 1, last, at);
  --leaf.size;
  if (leaf.size == 0)
    drop(entry);
  else if (leaf.size < kLeaf / 4)
    join_next(entry);
}

std::uint32_t PieceIndex::new_leaf() {
  if (unused_.empty()) {
    leaves_.emplace_back();
    unused_.reserve(leaves_.capacity());
    return static_cast<std::uint32_t>(leaves_.size() - 1);
  }
  const std::uint32_t leaf = unused_.back();
  unused_.pop_back();
  return leaf;
}

void PieceIndex::split(std::size_t entry) {
  const std::uint32_t behind = new_leaf();
  Leaf &left = leaves_[order_[entry].leaf], &right = leaves_[behind];
  const auto middle = left.keys.begin() + kLeaf / 2;
  std::copy(middle, left.keys.end(), right.keys.begin());
  left.size = kLeaf / 2;
  right.size = kLeaf - kLeaf / 2;
  order_.insert(order_.begin() + static_cast<std::ptrdiff_t>(entry) + 1,
                {right.keys.front(), behind});
}

void PieceIndex::join_next(std::size_t entry) {
  if (entry + 1 == order_.size()) return;
  Leaf& left = leaves_[order_[entry].leaf];
  const Leaf& right = leaves_[order_[entry + 1].leaf];
  if (left.size + right.size > kLeaf * 3 / 4) return;
  std::copy_n(right.keys.begin(), right.size, left.keys.begin() + left.size);
  left.size += right.size;
  drop(entry + 1);
}

void PieceIndex::drop(std::size_t entry) {
  leaves_[order_[entry].leaf].size = 0;
  unused_.push_back(order_[entry].leaf);
  order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(entry));
}

}  // namespace plimsoll
