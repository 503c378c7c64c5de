/// Numbers by position, with the largest of any range and the first that is large enough.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace plimsoll {

/// A complete binary tree of maxima. Every operation is O(log of the positions between), or O(log
/// size) at worst; 16 to 32 B a position.
class MaximumTree {
 public:
  static constexpr std::int64_t kNothing = std::numeric_limits<std::int64_t>::min();

  /// kNothing at all positions 0..size-1.
  explicit MaximumTree(std::size_t size) {
    while (leaves_ < size) leaves_ *= 2;
    largest_.assign(2 * leaves_, kNothing);
  }

  void set(std::size_t position, std::int64_t value) {
    std::size_t node = leaves_ + position;
    largest_[node] = value;
    while (node > 1) {
      const std::int64_t both = std::max(largest_[node], largest_[node ^ 1]);
      node /= 2;
      if (largest_[node] == both) return;
      largest_[node] = both;
    }
  }

  /// Of the positions begin..end-1; kNothing of none.
  [[nodiscard]] std::int64_t largest(std::size_t begin, std::size_t end) const {
    std::int64_t best = kNothing;
    for (begin += leaves_, end += leaves_; begin < end; begin /= 2, end /= 2) {
      if (begin % 2 == 1) best = std::max(best, largest_[begin++]);
      if (end % 2 == 1) best = std::max(best, largest_[--end]);
    }
    return best;
  }

  /// The first position from `begin` on with at least `value`, or size() where there is none.
  [[nodiscard]] std::size_t first_from(std::size_t begin, std::int64_t value) const {
    std::size_t node = leaves_ + begin;
    while (largest_[node] < value) {
      while (node % 2 == 1) node /= 2;  // the last of its parent
      if (node == 0) return size();
      ++node;
    }
    while (node < leaves_) {
      node *= 2;
      if (largest_[node] < value) ++node;
    }
    return node - leaves_;
  }
  [[nodiscard]] std::size_t size() const { return leaves_; }

 private:
  std::size_t leaves_ = 1;
  std::vector<std::int64_t> largest_;
};

}  // namespace plimsoll
