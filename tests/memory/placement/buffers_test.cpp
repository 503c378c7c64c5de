#include "memory/placement/buffers.hpp"

#include "memory/placement/sections.hpp"
#include "support/buffers.hpp"

#include <set>

#include <catch2/catch.hpp>

using namespace plimsoll;

TEST_CASE(
    "the load counts what is alive at once; a buffer that ends makes room for one that starts") {
  CHECK(load_of({}) == Bytes{});
  const std::vector<TimedBuffer> buffers{{0, 2, Bytes{4}}, {1, 3, Bytes{4}}, {2, 4, Bytes{4}}};
  CHECK(load_of(buffers) == Bytes{8});
  // A given end above the load is a bound, too.
  CHECK(lowest_end(std::vector<TimedBuffer>{{0, 2, Bytes{4}, Bytes{10}}}) == Bytes{14});
}

TEST_CASE("a collision is found, and only where there is one") {
  const std::vector<TimedBuffer> buffers{{0, 2, Bytes{4}}, {1, 3, Bytes{4}}, {2, 4, Bytes{4}}};
  CHECK_FALSE(collision_in(buffers, Offsets{Bytes{0}, Bytes{4}, Bytes{0}}));
  const auto found = collision_in(buffers, Offsets{Bytes{0}, Bytes{3}, Bytes{7}});
  REQUIRE(found);
  CHECK(found->first == 0);
  CHECK(found->second == 1);
  // Without given offsets nothing is known to collide.
  CHECK_FALSE(given_collision(buffers));
}

TEST_CASE("sections are maximal, and every pair that overlaps is in one") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<TimedBuffer> buffers =
        test::Tiler(seed, 30, 500).cut(25, 1).loosen(5).buffers();
    const BufferSections sections = sections_of(buffers);
    std::set<std::pair<std::uint32_t, std::uint32_t>> together;
    for (const auto& members : sections.members)
      for (const std::uint32_t a : members)
        for (const std::uint32_t b : members)
          if (a != b) together.emplace(a, b);
    for (std::uint32_t a = 0; a < buffers.size(); ++a) {
      std::set<std::uint32_t> beside;
      for (std::uint32_t b = 0; b < buffers.size(); ++b) {
        if (a == b) continue;
        REQUIRE(buffers[a].overlaps(buffers[b]) == together.contains({a, b}));
        if (buffers[a].overlaps(buffers[b])) beside.insert(b);
      }
      const auto& neighbours = sections.neighbours[a];
      REQUIRE(beside == std::set<std::uint32_t>(neighbours.begin(), neighbours.end()));
      REQUIRE(neighbours.size() == beside.size());
    }
    for (const auto& one : sections.members)
      for (const auto& other : sections.members)
        if (&one != &other) REQUIRE_FALSE(std::ranges::includes(one, other));
  }
}
