/// A set of dense ids that is emptied in O(1): for one question about each of many lists.
#pragma once

#include "base/dense_id.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace plimsoll {

/// Every operation O(1); a round of insertions is forgotten by clear().
template <DenseId Id>
class IdSet {
 public:
  /// For ids below `ids`.
  explicit IdSet(std::size_t ids) : round_of_(ids, 0) {}

  void clear() {
    if (++round_ != 0) return;
    std::ranges::fill(round_of_, 0u);
    round_ = 1;
  }
  /// Room for ids below `ids`.
  void grow(std::size_t ids) {
    if (ids > round_of_.size()) round_of_.resize(ids, 0);
  }
  /// Whether it was not there yet.
  bool insert(Id id) {
    std::uint32_t& round = round_of_[index(id)];
    const bool is_new = round != round_;
    round = round_;
    return is_new;
  }
  [[nodiscard]] bool has(Id id) const { return round_of_[index(id)] == round_; }

 private:
  std::vector<std::uint32_t> round_of_;  ///< by id: the round in which it came in last
  std::uint32_t round_ = 1;
};

}  // namespace plimsoll
