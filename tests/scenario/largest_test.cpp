// The search for the last candidate that holds, against trying all of them.
#include "scenario/largest.hpp"

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
      // 33 samples, 4 neighbours, and 12 halvings of a gap of 3,125.
      CHECK(found.tried <= 64);
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

TEST_CASE("largest: a response that flickers is scanned behind its last sample that holds") {
  // Multiples of 8 hold up to 520: a bisection would end at any of them. Samples are at multiples
  // of 31.25 rounded down: 0, 31, 62, ..., of which 312, 531.. - so the last one that holds is
  // found by trying all of the gap behind it.
  const auto flicker = [](std::size_t c) { return c % 8 == 0 && c <= 520; };
  const LastFound found = find(1001, flicker);
  REQUIRE(found.last);
  CHECK(flicker(*found.last));
  CHECK(!found.holes.empty());
  CHECK(!found.is_proven);
  // All between the last sample that holds and the next sample were tried.
  for (std::size_t c = *found.last + 1; c < *found.last + 8; ++c) CHECK(!flicker(c));
}

TEST_CASE("largest: nothing holds") {
  const LastFound found = find(5000, [](std::size_t) { return false; });
  CHECK(!found.last);
  CHECK(found.tried == 33);
  CHECK(!found.is_proven);
}

}  // namespace plimsoll
