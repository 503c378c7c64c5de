// Knapsacks: the table in two rows against all subsets, and what may not exceed the capacity.
#include "policy/remat/graph/rules/knapsack.hpp"

#include "property/random_chains.hpp"
#include "support/sample.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

struct KnapsackSums {
  std::int64_t quanta = 0, value = 0;
  double weight = 0;
};

KnapsackSums sums(const std::vector<WeighedItem>& items, std::uint64_t chosen) {
  KnapsackSums of;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if ((chosen >> i & 1) == 0) continue;
    of.quanta += quanta_of(items[i].weight);
    of.value += items[i].value;
    of.weight += items[i].weight;
  }
  return of;
}

std::uint64_t chosen_by(const std::vector<WeighedItem>& items, double capacity,
                        KnapsackSolver solver) {
  const std::vector<bool> taken = knapsack(items, capacity, solver, Work());
  std::uint64_t chosen = 0;
  for (std::size_t i = 0; i < taken.size(); ++i) chosen |= std::uint64_t{taken[i]} << i;
  return chosen;
}

}  // namespace

TEST_CASE("the second half of a knapsack gets what the first leaves, and no quantum more") {
  const std::vector<WeighedItem> items{{.weight = 0.5, .value = 3}, {.weight = 0.5001, .value = 4}};
  CHECK(chosen_by(items, 1, KnapsackSolver::dp) == 2);
  CHECK(chosen_by(items, 1.0001, KnapsackSolver::dp) == 3);
}

TEST_CASE("knapsacks of all solvers keep to the capacity; dp and ilp find the best subset") {
  test::Dice dice(20261129);
  for (int round = 0; round < test::rounds(300); ++round) {
    std::vector<WeighedItem> items;
    for (std::int64_t i = 0, count = dice(0, 9); i < count; ++i)
      items.push_back({static_cast<double>(dice(0, 5000)) / 10'000, dice(1, 50)});
    const double capacity = static_cast<double>(dice(0, 10'000)) / 10'000;
    KnapsackSums best;
    for (std::uint64_t subset = 0; subset < std::uint64_t{1} << items.size(); ++subset)
      if (const auto of = sums(items, subset);
          of.quanta <= quanta_of(capacity) && of.value > best.value)
        best = of;
    const auto dp = sums(items, chosen_by(items, capacity, KnapsackSolver::dp));
    const auto greedy = sums(items, chosen_by(items, capacity, KnapsackSolver::greedy));
    const auto ilp = sums(items, chosen_by(items, capacity, KnapsackSolver::ilp));
    CAPTURE(round, items.size(), capacity);
    REQUIRE(dp.quanta <= quanta_of(capacity));
    REQUIRE(dp.value == best.value);
    REQUIRE(greedy.quanta <= quanta_of(capacity));
    REQUIRE(greedy.value <= best.value);
    REQUIRE(ilp.quanta <= quanta_of(capacity));
    REQUIRE(ilp.value <= best.value);
    // Sums in floating point may fail to fill the capacity to the last bit.
    const auto without_last_bit =
        sums(items, chosen_by(items, capacity - 1e-9, KnapsackSolver::dp));
    REQUIRE(ilp.value >= std::min(without_last_bit.value, greedy.value));
  }
}

}  // namespace plimsoll
