/// The 0/1 knapsack of a memory budget: which values are worth their bytes.
///
/// PyTorch's activation memory budget (torch/_functorch/_activation_checkpointing/knapsack.py)
/// solves it by a table over weights in 1/10,000, greedily, or by an integer program. The table is
/// halved as Hirschberg halves one: the best capacity of the first half of the items is found from
/// two rows, and the second half gets what that leaves, the capacity less that of the first. (As
/// published it gets one quantum more, so that what is taken may exceed the capacity.)
#pragma once

#include "base/work.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll {

struct WeighedItem {
  double weight = 0;       ///< as a share of what there is to share
  std::int64_t value = 1;  ///< positive
};

enum class KnapsackSolver : std::uint8_t { dp, greedy, ilp };

/// Of a weight of 1: what `dp` rounds weights and the capacity to.
inline constexpr std::int64_t kKnapsackQuanta = 10'000;

/// In whole quanta, the nearest.
[[nodiscard]] std::int64_t quanta_of(double weight);

/// Which items are taken, as many as fit into `capacity`, in [0, 1]. `dp`: of the greatest value, in
/// whole quanta; O(items x quanta). `greedy`: by value a weight, the largest first; O(items log
/// items). `ilp`: of the greatest value that a branch and bound of limited size finds.
[[nodiscard]] std::vector<bool> knapsack(std::span<const WeighedItem> items, double capacity,
                                         KnapsackSolver solver, const Work& work);

}  // namespace plimsoll
