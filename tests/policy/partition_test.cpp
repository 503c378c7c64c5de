// The balanced partition against brute force.
#include "policy/pipeline/partition.hpp"

#include "property/random_chains.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

std::vector<Time> times_of(const std::vector<std::int64_t>& counts) {
  std::vector<Time> times;
  for (const std::int64_t count : counts) times.emplace_back(count);
  return times;
}

std::int64_t greatest_sum(const std::vector<std::int64_t>& times,
                          const std::vector<std::size_t>& cuts) {
  std::int64_t greatest = 0;
  for (std::size_t slot = 0; slot + 1 < cuts.size(); ++slot) {
    std::int64_t sum = 0;
    for (std::size_t i = cuts[slot]; i < cuts[slot + 1]; ++i) sum += times[i];
    greatest = std::max(greatest, sum);
  }
  return greatest;
}

/// The cuts with the least greatest sum, of those the lexicographically greatest: the one that
/// fills the first slots most.
struct BruteForce {
  const std::vector<std::int64_t>& times;
  std::vector<std::size_t> best, cuts{0};
  std::int64_t least = INT64_MAX;

  void search(std::size_t slots) {
    if (slots == 1) {
      cuts.push_back(times.size());
      const std::int64_t sum = greatest_sum(times, cuts);
      if (sum < least || (sum == least && cuts > best)) {
        least = sum;
        best = cuts;
      }
      cuts.pop_back();
      return;
    }
    for (std::size_t cut = cuts.back() + 1; cut + slots - 1 <= times.size(); ++cut) {
      cuts.push_back(cut);
      search(slots - 1);
      cuts.pop_back();
    }
  }
};

}  // namespace

TEST_CASE("a balanced partition by hand") {
  // 4 1 1 4 2 in two: 6 | 6, not 4 1 1 4 | 2. In three: least is 6 (4 + 2 cannot be split
  // from two further slots with less): 4 1 1 | 4 2 needs one more cut, the first slot stays full.
  CHECK(balanced_partition(times_of({4, 1, 1, 4, 2}), 2).cuts == std::vector<std::size_t>{0, 3, 5});
  CHECK(balanced_partition(times_of({1, 1, 1, 1}), 4).cuts ==
        std::vector<std::size_t>{0, 1, 2, 3, 4});
  CHECK(balanced_partition(times_of({0, 0, 0}), 2).cuts == std::vector<std::size_t>{0, 2, 3});
  CHECK(balanced_partition(times_of({7}), 1).cuts == std::vector<std::size_t>{0, 1});
}

TEST_CASE("the balanced partition is exact, and fills the first slots most") {
  test::Dice dice(20240621);
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::int64_t> times(static_cast<std::size_t>(dice(1, 9)));
    for (std::int64_t& time : times) time = dice(0, 2) == 0 ? 0 : dice(1, 12);
    const auto slots = static_cast<std::size_t>(dice(1, static_cast<std::int64_t>(times.size())));
    BruteForce brute{times, {}, {0}, INT64_MAX};
    brute.search(slots);
    const Partition partition = balanced_partition(times_of(times), slots);
    CAPTURE(times, slots);
    REQUIRE(partition.slots() == slots);
    REQUIRE(partition.cuts == brute.best);
    REQUIRE(greatest_sum(times, partition.cuts) == brute.least);
  }
}

}  // namespace plimsoll
