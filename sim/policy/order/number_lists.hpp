/// Lists of dense numbers, one for each dense number, in two flat arrays.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace plimsoll {

class NumberLists {
 public:
  using Pair = std::pair<std::uint32_t, std::uint32_t>;  ///< a list, and a number in it

  NumberLists() = default;

  /// Lists that ascend, every number once. O(n log n).
  NumberLists(std::size_t lists, std::vector<Pair> pairs) : begin_(lists + 1, 0) {
    std::ranges::sort(pairs);
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    for (const auto& [list, number] : pairs) {
      ++begin_[list + std::size_t{1}];
      numbers_.push_back(number);
    }
    for (std::size_t list = 0; list < lists; ++list) begin_[list + 1] += begin_[list];
  }

  [[nodiscard]] std::span<const std::uint32_t> of(std::uint32_t list) const {
    return std::span(numbers_).subspan(begin_[list], begin_[list + 1] - begin_[list]);
  }
  [[nodiscard]] std::size_t lists() const { return begin_.size() - 1; }
  [[nodiscard]] std::size_t size() const { return numbers_.size(); }  ///< of all lists together

  /// By each of `numbers` numbers, the lists that it is in.
  [[nodiscard]] NumberLists inverse(std::size_t numbers) const {
    std::vector<Pair> pairs;
    pairs.reserve(numbers_.size());
    for (std::uint32_t list = 0; list < lists(); ++list)
      for (const std::uint32_t number : of(list)) pairs.emplace_back(number, list);
    return NumberLists(numbers, std::move(pairs));
  }

 private:
  std::vector<std::uint32_t> begin_{0}, numbers_;
};

}  // namespace plimsoll
