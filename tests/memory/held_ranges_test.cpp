// Ranges that are held, beside a list of the bytes.
#include "memory/held_ranges.hpp"

#include <algorithm>
#include <array>
#include <random>

#include <catch2/catch.hpp>

namespace plimsoll {

TEST_CASE("ranges that are given back in part are held in their rests") {
  HeldRanges<char> held;
  held.take({0, 60, 'a'});
  held.give_back(20, 40, [](const auto& range) {
    CHECK((range.begin == 0 && range.end() == 60 && range.what == 'a'));
    return 'b';
  });
  REQUIRE(held.ranges().size() == 2);
  CHECK(held.ranges().at(0).end() == 20);
  CHECK(held.ranges().at(40).end() == 60);
  CHECK(held.ranges().at(40).what == 'b');
}

TEST_CASE("held ranges are what a list of the bytes says") {
  constexpr std::int64_t kBytes = 64;
  std::mt19937_64 random(11);
  for (int round = 0; round < 200; ++round) {
    HeldRanges<int> held;
    std::array<int, kBytes> bytes{};  // 0: not held
    for (int step = 1; step < 60; ++step) {
      const auto begin = static_cast<std::int64_t>(random() % kBytes);
      const auto most = static_cast<std::uint64_t>(kBytes - begin);
      const auto end = begin + 1 + static_cast<std::int64_t>(random() % most);
      const auto first = bytes.begin() + begin, last = bytes.begin() + end;
      if (std::all_of(first, last, [](int byte) { return byte == 0; })) {
        held.take({begin, end - begin, step});
        std::fill(first, last, step);
      } else {
        held.give_back(begin, end, [](const auto& range) { return range.what; });
        std::fill(first, last, 0);
      }
      std::array<int, kBytes> seen{};
      for (const auto& [at, range] : held.ranges()) {
        REQUIRE(at == range.begin);
        REQUIRE(range.size > 0);
        std::fill(seen.begin() + range.begin, seen.begin() + range.end(), range.what);
      }
      REQUIRE(seen == bytes);
    }
  }
}

}  // namespace plimsoll
