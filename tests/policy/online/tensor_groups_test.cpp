// Ranges of a divided pool by hand: which free range serves a group, and where in it.
#include "policy/online/run/tensor_groups.hpp"

#include <vector>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

constexpr TensorCost kCheap = TensorCost::cheap, kCostly = TensorCost::costly;

std::int64_t offset(TensorGroups& groups, const std::vector<FreeRange>& free, std::int64_t size,
                    TensorCost cost) {
  const auto place = groups.place(free, size, cost);
  REQUIRE(place);
  return place->offset;
}

}  // namespace

TEST_CASE("there are orders of 2, 4 and 6 groups") {
  CHECK(group_order(2).size() == 2);
  CHECK(group_order(4).size() == 4);
  CHECK(group_order(6).size() == 6);
  for (const std::int64_t none : {0, 1, 3, 5, 8}) CHECK(group_order(none).empty());
}

TEST_CASE("two groups: costly ones from the low end, cheap ones from the high end") {
  TensorGroups groups(2, 100, 1);
  CHECK(offset(groups, {{0, 100}}, 10, kCostly) == 0);
  CHECK(offset(groups, {{0, 100}}, 10, kCheap) == 90);
}

// Ranges [0, 50) and [50, 100). Costly: group 0 low in the first, 3 high in the second. Cheap: 1
// high in the first, 2 low in the second.
TEST_CASE("four groups: cheap ones meet in the middle") {
  TensorGroups groups(4, 100, 1);
  CHECK(offset(groups, {{0, 100}}, 10, kCostly) == 0);
  // At the high end of the free range nothing of it is in [0, 50): it ends at 50.
  CHECK(offset(groups, {{0, 100}}, 10, kCheap) == 40);
  // The first range has no place: both classes move on, and stay there.
  CHECK(offset(groups, {{60, 100}}, 10, kCostly) == 90);
  CHECK(groups.group_of(kCostly) == 3);
  CHECK(offset(groups, {{60, 100}}, 10, kCheap) == 60);
  CHECK(groups.group_of(kCheap) == 2);
  CHECK(offset(groups, {{0, 20}, {60, 100}}, 10, kCostly) == 90);
}

// A tensor of 10 at the low end of [44, 60) has 6 in [0, 50), of [45, 61) half of it.
TEST_CASE("a free range serves a group that more than half of the tensor reaches into") {
  TensorGroups low(4, 100, 1), next(4, 100, 1);
  CHECK(offset(low, {{44, 60}}, 10, kCostly) == 44);
  CHECK(low.group_of(kCostly) == 0);
  CHECK(offset(next, {{45, 61}}, 10, kCostly) == 51);
  CHECK(next.group_of(kCostly) == 3);
}

// Ranges [0, 30), [30, 60), [60, 90). Costly are tried as 3, 0, 4, cheap ones as 1, 5, 2. [20, 70)
// has all of the second range and more: not for group 3; at its low end 10 are in the first range.
TEST_CASE("a free range with more on both sides is not for the groups between") {
  TensorGroups groups(6, 90, 1);
  CHECK(groups.group_of(kCostly) == 3);
  CHECK(groups.group_of(kCheap) == 1);
  CHECK(offset(groups, {{20, 70}}, 10, kCostly) == 20);
  CHECK(groups.group_of(kCostly) == 0);
}

// Larger than twice a range, no group is served; the free range is taken all the same.
TEST_CASE("where no group is served any free range is") {
  TensorGroups groups(6, 90, 1);
  CHECK(offset(groups, {{0, 90}}, 70, kCostly) == 20);
  CHECK(groups.group_of(kCostly) == 3);
  CHECK_FALSE(groups.place({}, 10, kCheap));
}

}  // namespace plimsoll
