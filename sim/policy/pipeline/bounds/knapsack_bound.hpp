/// What a knapsack holds at most.
#pragma once

#include <cstdint>
#include <vector>

namespace plimsoll {

/// So many equal things.
struct KnapsackItem {
  std::int64_t size = 0, worth = 0, count = 0;
};

/// An upper bound of the worth of what fits into `room`, which is no less than 0: the densest
/// first, and of the kind that no longer fits as a whole either no more, and the next kind in
/// shares, or one more, which takes its place from the kind before (Martello and Toth 1977, "An
/// Upper Bound for the Zero-One Knapsack Problem", EJOR 1). Exact for one kind. O(kinds log).
[[nodiscard]] std::int64_t knapsack_bound(std::vector<KnapsackItem> goods, std::int64_t room);

}  // namespace plimsoll
