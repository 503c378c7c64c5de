// The search for the last candidate that holds, against trying all of them.
#include "scenario/run/largest.hpp"

#include <random>
#include <set>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using Holes = std::vector<std::pair<std::size_t, std::size_t>>;

LastFound find(std::size_t candidates, const std::function<bool(std::size_t)>& holds) {
  std::set<std::size_t> tried;
  const LastFound found = find_last(candidates, [&](std::size_t c) {
    CHECK(c < candidates);
    CHECK(tried.insert(c).second);  // once each
    return holds(c);
  });
  CHECK(found.tried == tried.size());
  return found;
}

}  // namespace

TEST_CASE("largest: every border of a monotone response is found, with few tries") {
  for (const std::size_t candidates : {1U, 2U, 63U, 64U, 65U, 1000U, 100'000U}) {
    std::mt19937_64 random(candidates);
    std::uniform_int_distribution<std::size_t> any(0, candidates);
    for (int i = 0; i < 40; ++i) {
      const std::size_t border = i == 0 ? 0 : i == 1 ? candidates : any(random);
      INFO(border << " of " << candidates);
      const LastFound found = find(candidates, [&](std::size_t c) { return c < border; });
      // Below the first sample but one nothing is known of candidates that hold: 0 is a sample.
      REQUIRE(found.last.has_value() == (border > 0));
      if (border > 0) CHECK(*found.last == border - 1);
      CHECK(found.holes.empty());
      // 33 samples, 4 neighbours, and 12 halvings of a gap of 3,125; where none holds, a scan.
      CHECK(found.tried <= (border > 0 ? 64 : 33 + 1024));
      if (candidates <= 64 || border == candidates) CHECK(found.is_proven);
    }
  }
}

TEST_CASE("largest: of few candidates all are tried, so that every hole is known") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 200; ++i) {
    const std::size_t candidates = 1 + random() % 64;
    std::vector<bool> holds;
    for (std::size_t c = 0; c < candidates; ++c) holds.push_back(random() % 3 != 0);
    const LastFound found = find(candidates, [&](std::size_t c) { return holds[c]; });
    std::optional<std::size_t> last;
    for (std::size_t c = 0; c < candidates; ++c)
      if (holds[c]) last = c;
    CHECK(found.last == last);
    CHECK(found.is_proven);
    std::size_t in_holes = 0, failing = 0;
    for (const auto& [first, end] : found.holes)
      for (std::size_t c = first; c <= end; ++c, ++in_holes) CHECK(!holds[c]);
    for (std::size_t c = 0; last && c < *last; ++c) failing += holds[c] ? 0U : 1U;
    CHECK(in_holes == failing);
  }
}

TEST_CASE("largest: a hole is reported with its borders, and does not hide what is behind it") {
  // Of 1,000 candidates 33 samples lie 31 or 32 apart: a hole of 100 holds some of them.
  const LastFound found =
      find(1000, [](std::size_t c) { return c < 300 || (c >= 400 && c <= 777); });
  CHECK(found.last == 777);
  CHECK(found.holes == Holes{{300, 399}});
}

TEST_CASE("largest: a response that flickers is scanned") {
  // Multiples of 8 hold up to 520: a bisection would end at any of them.
  const auto flicker = [](std::size_t c) { return c % 8 == 0 && c <= 520; };
  const LastFound found = find(1001, flicker);
  CHECK(found.last == std::size_t{520});
  CHECK(found.is_proven);
  REQUIRE(found.holes.size() == 65);
  CHECK(found.holes.front() == std::pair<std::size_t, std::size_t>{1, 7});
  CHECK(found.holes.back() == std::pair<std::size_t, std::size_t>{513, 519});
}

TEST_CASE("largest: what no sample meets is found by a scan") {
  // Multiples of 4 less 1, up to 11, of 130: batches 4, 8 and 12 of 4 microbatches.
  const LastFound found = find(130, [](std::size_t c) { return c % 4 == 3 && c < 12; });
  CHECK(found.last == std::size_t{11});
  CHECK(found.holes == Holes{{0, 2}, {4, 6}, {8, 10}});
  CHECK(found.is_proven);
}

TEST_CASE("largest: nothing holds") {
  const LastFound found = find(5000, [](std::size_t) { return false; });
  CHECK(!found.last);
  // 1,024 of 5,000, beside samples that are not among them.
  CHECK(found.tried >= 1024);
  CHECK(found.tried <= 1024 + 33);
  CHECK(!found.is_proven);
  CHECK(found.is_cut_short);
}

TEST_CASE("largest: a scan that leaves candidates out says so") {
  // Odd candidates hold up to 3,001: of 1,000 all are tried, of 5,000 some 1,024.
  const auto odd = [](std::size_t c) { return c % 2 == 1 && c <= 3001; };
  CHECK_FALSE(find(1000, odd).is_cut_short);
  const LastFound found = find(5000, odd);
  CHECK(found.is_cut_short);
  CHECK_FALSE(found.is_proven);
  // A monotone response is bisected, not scanned.
  CHECK_FALSE(find(5000, [](std::size_t c) { return c <= 3001; }).is_cut_short);
}

// Bisecting between 0 and 99 would find a border that means nothing: 7 and 60 hold alone.
TEST_CASE("largest: where no border is expected all are tried, or evenly spaced ones") {
  const auto holds = [](std::size_t c) { return c == 7 || c == 60; };
  const LastFound all = find_last(100, holds, {.scans = true});
  CHECK(all.last == std::size_t{60});
  CHECK(all.tried == 100);
  CHECK(all.is_proven);
  CHECK(all.holes == Holes{{0, 6}, {8, 59}});
  // 5 of 101: 0, 25, 50, 75, 100.
  const LastFound some =
      find_last(101, [](std::size_t c) { return c != 50; }, {.all = 5, .scan = 5, .scans = true});
  CHECK(some.last == std::size_t{100});
  CHECK(some.tried == 5);
  CHECK(some.is_cut_short);
  CHECK(some.holes == Holes{{50, 50}});
}

}  // namespace plimsoll
