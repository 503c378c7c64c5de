/// Ranges of addresses that an allocator holds of its device, with something known of each. A range
/// comes whole, and may go in parts.
///
/// Worked example: [0, 60) is held. With [20, 40) given back [0, 20) and [40, 60) are.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

namespace plimsoll {

template <class What>
class HeldRanges {
 public:
  struct Range {
    std::int64_t begin = 0, size = 0;
    What what{};

    [[nodiscard]] std::int64_t end() const { return begin + size; }
  };

  /// Precondition: no byte of it is held. O(log ranges).
  void take(Range range) { ranges_.insert_or_assign(range.begin, std::move(range)); }

  /// No byte of [begin, end) is held any more. `cut` is called with every range that loses bytes, as
  /// it was, and says what is known of what is left of it on either side. O(log ranges) for each.
  template <class Cut>
  void give_back(std::int64_t begin, std::int64_t end, Cut cut) {
    auto it = ranges_.upper_bound(begin);
    if (it != ranges_.begin() && std::prev(it)->second.end() > begin) --it;
    while (it != ranges_.end() && it->first < end) {
      const Range range = std::move(it->second);
      it = ranges_.erase(it);
      const What rest = cut(range);
      if (range.begin < begin) take({range.begin, begin - range.begin, rest});
      if (range.end() > end) take({end, range.end() - end, rest});
    }
  }

  /// By their begins.
  [[nodiscard]] const std::map<std::int64_t, Range>& ranges() const { return ranges_; }

 private:
  std::map<std::int64_t, Range> ranges_;
};

}  // namespace plimsoll
