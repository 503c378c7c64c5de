#include "memory/piece_index.hpp"

#include <algorithm>
#include <iterator>
#include <random>
#include <set>
#include <vector>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using Set = std::set<PieceKey>;

std::vector<std::uint32_t> ids(const auto& keys) {
  std::vector<std::uint32_t> ids;
  for (const PieceKey& key : keys) ids.push_back(key.piece);
  return ids;
}

void check_search(const PieceIndex& index, const Set& set, const PieceKey& key) {
  const auto found = index.lower_bound(key);
  const auto expected = set.lower_bound(key);
  REQUIRE((found == index.end()) == (expected == set.end()));
  if (expected != set.end()) REQUIRE(found->piece == expected->piece);
  REQUIRE((found == index.begin()) == (expected == set.begin()));
  if (expected != set.begin()) REQUIRE(std::prev(found)->piece == std::prev(expected)->piece);
}

}  // namespace

TEST_CASE("an index of pieces does what an ordered set does") {
  std::mt19937_64 random(4);
  for (const std::uint64_t spread : {2u, 40u, 100'000u}) {
    PieceIndex index;
    Set set;
    std::vector<PieceKey> held;
    // It grows to some thousand keys, shrinks to none, and so on.
    for (std::uint32_t step = 0; step < 40'000; ++step) {
      const bool grows = step % 10'000 < 5'000;
      if (held.empty() || (random() % 8 == 0) != grows) {
        const PieceKey key{static_cast<std::uint32_t>(random() % 2), step,
                           static_cast<std::int64_t>(1 + random() % spread), random() % 3, step};
        index.insert(key);
        set.insert(key);
        held.push_back(key);
      } else {
        std::swap(held[random() % held.size()], held.back());
        index.erase(held.back());
        set.erase(held.back());
        held.pop_back();
      }
      check_search(index, set,
                   PieceKey::least(static_cast<std::uint32_t>(random() % 3),
                                   static_cast<std::int64_t>(random() % (spread + 2))));
      if (step % 1000 == 0) REQUIRE(ids(index) == ids(set));
    }
    while (!held.empty()) {
      index.erase(held.back());
      held.pop_back();
    }
    CHECK(index.empty());
    CHECK(index.begin() == index.end());
  }
}

}  // namespace plimsoll
