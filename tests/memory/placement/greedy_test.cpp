#include "memory/placement/greedy.hpp"

#include "support/buffers.hpp"

#include <catch2/catch.hpp>

using namespace plimsoll;

namespace {

constexpr PlacementRule kAllRules[] = {PlacementRule::by_size,     PlacementRule::by_lifetime,
                                       PlacementRule::by_area,     PlacementRule::by_start,
                                       PlacementRule::xla_spatial, PlacementRule::xla_temporal,
                                       PlacementRule::best};

Offsets bytes(std::initializer_list<std::int64_t> counts) {
  Offsets offsets;
  for (const std::int64_t count : counts) offsets.emplace_back(count);
  return offsets;
}

}  // namespace

TEST_CASE("each rule takes its own order and gap") {
  // 0: [0, 10) 2 B, 1: [0, 2) 4 B, 2: [2, 4) 3 B, 3: [1, 3) 3 B.
  const std::vector<TimedBuffer> buffers{
      {0, 10, Bytes{2}}, {0, 2, Bytes{4}}, {2, 4, Bytes{3}}, {1, 3, Bytes{3}}};
  // 4 B first: 1 at 0. Of the two of 3 B the later: 3 overlaps 1, at 4. 2 overlaps 3: below it are
  // 4 B, at 0. 0 overlaps all: [0, 4) and [4, 7) are taken, at 7.
  CHECK(place_by_rule(buffers, PlacementRule::by_size) == bytes({7, 0, 0, 4}));
  // 0 lives longest, at 0; then as listed: 1 at 2, to 6; 2 at 2, to 5; 3 at 6.
  CHECK(place_by_rule(buffers, PlacementRule::by_lifetime) == bytes({0, 2, 2, 6}));
  // Areas 20, 8, 6, 6: the same order.
  CHECK(place_by_rule(buffers, PlacementRule::by_area) == bytes({0, 2, 2, 6}));
  // Of those that start at 0 the larger first: 1 at 0, 0 at 4; 3 at 6, 2 below both at 0.
  CHECK(place_by_rule(buffers, PlacementRule::by_start) == bytes({4, 0, 0, 6}));
}

TEST_CASE("the smallest gap is not the lowest") {
  // Walls leave gaps [0, 5), [6, 8) and [9, infinity) to a newcomer of 2 B: the lowest is the first,
  // the smallest that holds it the second.
  std::vector<TimedBuffer> buffers{
      {0, 4, Bytes{1}, Bytes{5}}, {0, 4, Bytes{1}, Bytes{8}}, {1, 2, Bytes{2}}};
  CHECK(place_by_rule(buffers, PlacementRule::by_size) == bytes({5, 8, 0}));
  CHECK(place_by_rule(buffers, PlacementRule::xla_spatial) == bytes({5, 8, 6}));
  // One of 6 B fits into none of them.
  buffers[2].size = Bytes{6};
  CHECK(place_by_rule(buffers, PlacementRule::xla_temporal) == bytes({5, 8, 9}));
}

TEST_CASE("rules place without collision, at or above the load, and keep given offsets") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::vector<TimedBuffer> buffers = test::Tiler(seed, 40, 1000).cut(30, 1).loosen(8).buffers();
    // Where the tiles were, given offsets cannot collide: those of an earlier placement will do.
    const Offsets before = place_by_rule(buffers, PlacementRule::by_start);
    for (std::size_t i = 0; i < buffers.size(); i += 4) buffers[i].offset = before[i];
    Bytes lowest = Bytes::unlimited();
    for (const PlacementRule rule : kAllRules) {
      const Offsets offsets = place_by_rule(buffers, rule);
      REQUIRE_FALSE(collision_in(buffers, offsets));
      REQUIRE(end_of(buffers, offsets) >= load_of(buffers));
      for (std::size_t i = 0; i < buffers.size(); i += 4) REQUIRE(offsets[i] == before[i]);
      if (rule != PlacementRule::best) lowest = std::min(lowest, end_of(buffers, offsets));
    }
    REQUIRE(end_of(buffers, place_by_rule(buffers, PlacementRule::best)) == lowest);
  }
}

TEST_CASE("names of rules are read back") {
  for (const PlacementRule rule : kAllRules) CHECK(placement_rule(to_text(rule)) == rule);
  CHECK_FALSE(placement_rule("greedy"));
  CHECK(placement_rule_names().size() == std::size(kAllRules));
}
