/// Pieces in an order that is searched again and again: the free ones by size, for best fit.
/// Internal to this floor.
///
/// An ordered set as a list of leaves, each a sorted array, below one sorted array of their least
/// keys: two binary searches in arrays in the place of a walk down a tree, whose every node would be
/// somewhere else in the host's memory. Leaves are split when full and joined when nearly empty.
///
/// insert, erase, lower_bound O(log n), and O(n / kLeaf) moves of small entries where a leaf is split
/// or joined, which at least kLeaf / 4 operations lie between. Nothing is asked of the host's heap
/// once warm. Iterators are valid until the next insert or erase.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace plimsoll {

inline constexpr std::uint32_t kNoPiece = UINT32_MAX;

/// A piece as an index sees it, ordered by (pool, size, segment, offset).
struct PieceKey {
  std::uint32_t pool = 0;
  std::uint32_t piece = kNoPiece;
  std::int64_t size = 0;
  std::uint64_t segment = 0;
  std::int64_t offset = 0;

  /// Before all keys of `pool` of at least `size`.
  static PieceKey least(std::uint32_t pool, std::int64_t size) { return {pool, 0, size, 0, 0}; }

  friend bool operator<(const PieceKey& a, const PieceKey& b) {
    if (a.pool != b.pool) return a.pool < b.pool;
    if (a.size != b.size) return a.size < b.size;
    if (a.segment != b.segment) return a.segment < b.segment;
    return a.offset < b.offset;
  }
};

class PieceIndex {
 public:
  class Iterator;

  void insert(const PieceKey& key);
  /// Precondition: it is there.
  void erase(const PieceKey& key);

  [[nodiscard]] bool empty() const { return order_.empty(); }
  [[nodiscard]] Iterator begin() const;
  [[nodiscard]] Iterator end() const;
  /// The first key that is not before `key`.
  [[nodiscard]] Iterator lower_bound(const PieceKey& key) const;

 private:
  static constexpr std::uint32_t kLeaf = 32;  ///< keys a leaf has room for
  struct Leaf {
    std::uint32_t size = 0;
    std::array<PieceKey, kLeaf> keys;
  };
  /// A leaf, and a key that is not after any of it but after all of the leaf before.
  struct Entry {
    PieceKey least;
    std::uint32_t leaf = 0;
  };

  [[nodiscard]] std::size_t entry_of(const PieceKey& key) const;
  std::uint32_t new_leaf();
  void split(std::size_t entry);
  /// Takes the leaf behind into this one, if both together leave room to spare.
  void join_next(std::size_t entry);
  void drop(std::size_t entry);

  std::vector<Leaf> leaves_;
  std::vector<std::uint32_t> unused_;  ///< leaves to be used again
  std::vector<Entry> order_;           ///< no leaf is empty
};

class PieceIndex::Iterator {
 public:
  using iterator_category = std::bidirectional_iterator_tag;
  using value_type = PieceKey;
  using difference_type = std::ptrdiff_t;
  using pointer = const PieceKey*;
  using reference = const PieceKey&;

  Iterator() = default;
  Iterator(const PieceIndex& index, std::size_t entry, std::uint32_t at)
      : index_(&index), entry_(entry), at_(at) {}

  reference operator*() const { return leaf().keys[at_]; }
  pointer operator->() const { return &leaf().keys[at_]; }
  Iterator& operator++() {
    if (++at_ < leaf().size) return *this;
    ++entry_;
    at_ = 0;
    return *this;
  }
  Iterator& operator--() {
    if (at_ == 0) {
      --entry_;
      at_ = leaf().size;
    }
    --at_;
    return *this;
  }
  Iterator operator++(int) {
    const Iterator before = *this;
    ++*this;
    return before;
  }
  Iterator operator--(int) {
    const Iterator before = *this;
    --*this;
    return before;
  }
  friend bool operator==(const Iterator&, const Iterator&) = default;

 private:
  [[nodiscard]] const Leaf& leaf() const { return index_->leaves_[index_->order_[entry_].leaf]; }

  const PieceIndex* index_ = nullptr;
  std::size_t entry_ = 0;
  std::uint32_t at_ = 0;
};

inline PieceIndex::Iterator PieceIndex::begin() const {
  return {*this, 0, 0};
}
inline PieceIndex::Iterator PieceIndex::end() const {
  return {*this, order_.size(), 0};
}

}  // namespace plimsoll
