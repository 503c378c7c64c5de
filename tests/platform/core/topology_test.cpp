#include "platform/core/topology.hpp"

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

#include <catch2/catch.hpp>

using namespace plimsoll;

namespace {

struct Joined {
  std::size_t first, second;
  std::int64_t rate = 1;
  std::int64_t latency = 0;
};

Platform make(std::size_t memories, const std::vector<Joined>& links) {
  Platform platform;
  platform.memories.resize(memories);
  for (const Joined& joined : links) {
    Link link;
    link.between = {MemoryId(joined.first), MemoryId(joined.second)};
    link.bandwidth = {ByteRate{joined.rate}, ByteRate{joined.rate}};
    link.latency = Time{joined.latency};
    platform.links.push_back(link);
  }
  return platform;
}

std::vector<std::size_t> links_of(const Route& route) {
  std::vector<std::size_t> links;
  for (const Hop& hop : route.hops) links.push_back(static_cast<std::size_t>(hop.link));
  return links;
}

/// What decides between routes, least first.
using Rank = std::tuple<std::size_t, std::int64_t, std::int64_t, std::vector<std::size_t>>;

/// All simple paths from `at` to `to`, tried one by one.
void enumerate(const Platform& platform, std::size_t at, std::size_t to, std::vector<bool>& seen,
               Rank so_far, std::vector<Rank>& found) {
  if (at == to) {
    found.push_back(so_far);
    return;
  }
  seen[at] = true;
  for (std::size_t i = 0; i < platform.links.size(); ++i) {
    const Link& link = platform.links[i];
    for (const std::size_t way : {std::size_t{0}, std::size_t{1}}) {
      const auto next = static_cast<std::size_t>(link.between[1 - way]);
      if (static_cast<std::size_t>(link.between[way]) != at || seen[next]) continue;
      auto [hops, rate, latency, links] = so_far;
      links.push_back(i);
      const std::int64_t least = std::min(-rate, link.bandwidth[way].count());
      enumerate(platform, next, to, seen, {hops + 1, -least, latency + link.latency.count(), links},
                found);
    }
  }
  seen[at] = false;
}

}  // namespace

TEST_CASE("a route adds the latencies and takes the least bandwidth in its direction") {
  Platform platform = make(3, {{0, 1, 100, 5}, {2, 1, 70, 7}});
  platform.links[0].bandwidth = {ByteRate{100}, ByteRate{30}};
  platform.memories[0].read = {Time{1}, ByteRate{80}, {}};
  platform.memories[0].write = {Time{2}, ByteRate{20}, {}};
  platform.memories[1].read = {Time{1000}, ByteRate{1}, {}};  // only passed through
  platform.memories[2].read = {Time{3}, ByteRate{60}, {}};
  platform.memories[2].write = {Time{4}, ByteRate{50}, {}};
  const Topology topology(platform);

  // There: read 1 + 5 + 7 + write 4 = 17; min(80, 100, 70, 50) = 50.
  const Route* there = topology.route(MemoryId{0}, MemoryId{2});
  REQUIRE(there != nullptr);
  CHECK(there->latency == Time{17});
  CHECK(there->bandwidth == ByteRate{50});
  CHECK(there->hops[0].direction == 0);
  CHECK(there->hops[1].direction == 1);

  // Back: read 3 + 7 + 5 + write 2 = 17; min(60, 70, 30, 20) = 20.
  const Route* back = topology.route(MemoryId{2}, MemoryId{0});
  REQUIRE(back != nullptr);
  CHECK(back->latency == Time{17});
  CHECK(back->bandwidth == ByteRate{20});
}

TEST_CASE("within a memory a route is empty, and between strangers there is none") {
  const Topology topology(make(3, {{0, 1}}));
  const Route* self = topology.route(MemoryId{1}, MemoryId{1});
  REQUIRE(self != nullptr);
  CHECK(self->hops.empty());
  CHECK(self->latency == Time{0});
  CHECK(self->bandwidth.is_unlimited());
  CHECK(topology.route(MemoryId{0}, MemoryId{2}) == nullptr);
}

TEST_CASE("fewest links, then the greatest least bandwidth, then latency, then the file's order") {
  // One slow link beats two fast ones.
  CHECK(links_of(*Topology(make(3, {{0, 1, 9}, {1, 2, 9}, {0, 2, 1}}))
                      .route(MemoryId{0}, MemoryId{2})) == std::vector<std::size_t>{2});
  // Over 1: min(9, 3) = 3; over 2: min(5, 4) = 4.
  CHECK(links_of(*Topology(make(4, {{0, 1, 9}, {1, 3, 3}, {0, 2, 5}, {2, 3, 4}}))
                      .route(MemoryId{0}, MemoryId{3})) == std::vector<std::size_t>{2, 3});
  // Equal least bandwidths of 3: latencies 8 and 6.
  CHECK(links_of(*Topology(make(4, {{0, 1, 3, 4}, {1, 3, 3, 4}, {0, 2, 9, 3}, {2, 3, 3, 3}}))
                      .route(MemoryId{0}, MemoryId{3})) == std::vector<std::size_t>{2, 3});
  // All equal: link 0 stands before link 1, although over it the second link stands last.
  CHECK(links_of(
            *Topology(make(4, {{0, 2}, {0, 1}, {1, 3}, {2, 3}})).route(MemoryId{0}, MemoryId{3})) ==
        std::vector<std::size_t>{0, 3});
  // Parallel links: the wider one, although it stands last.
  CHECK(links_of(*Topology(make(2, {{0, 1, 1}, {0, 1, 2}})).route(MemoryId{0}, MemoryId{1})) ==
        std::vector<std::size_t>{1});
}

TEST_CASE("a wide way to a crossing does not decide behind a bottleneck") {
  // To 4 the last link bounds both ways to 2, so latency decides: 10 over 1, 1 over 2; although to
  // the crossing 3 itself the way over 1 is the wider one, 9 against 5.
  const Platform platform =
      make(5, {{0, 1, 9, 5}, {1, 3, 9, 5}, {0, 2, 5, 1}, {2, 3, 5, 0}, {3, 4, 2, 0}});
  const Topology topology(platform);
  CHECK(links_of(*topology.route(MemoryId{0}, MemoryId{4})) == std::vector<std::size_t>{2, 3, 4});
  CHECK(links_of(*topology.route(MemoryId{0}, MemoryId{3})) == std::vector<std::size_t>{0, 1});
}

TEST_CASE("routes equal the best of all paths, tried one by one") {
  std::mt19937_64 random(20'240'901);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (int round = 0; round < 400; ++round) {
    const std::size_t memories = 2 + below(5);
    std::vector<Joined> links;
    for (std::size_t i = below(11); i > 0; --i) {
      const std::size_t first = below(memories);
      const std::size_t second = (first + 1 + below(memories - 1)) % memories;
      links.push_back({first, second, static_cast<std::int64_t>(1 + below(3)),
                       static_cast<std::int64_t>(below(3))});
    }
    const Platform platform = make(memories, links);
    const Topology topology(platform);
    for (std::size_t from = 0; from < memories; ++from) {
      for (std::size_t to = 0; to < memories; ++to) {
        std::vector<Rank> paths;
        std::vector<bool> seen(memories, false);
        enumerate(platform, from, to, seen, {0, -ByteRate::unlimited().count(), 0, {}}, paths);
        const Route* route = topology.route(MemoryId(from), MemoryId(to));
        REQUIRE((route != nullptr) == !paths.empty());
        if (route == nullptr) continue;
        const Rank best = *std::min_element(paths.begin(), paths.end());
        CHECK(links_of(*route) == std::get<3>(best));
        CHECK(route->latency.count() == std::get<2>(best));
        CHECK(route->bandwidth.count() == -std::get<1>(best));
      }
    }
  }
}

TEST_CASE("a chain of 4,000 memories is routed from neighbour to neighbour and from end to end") {
  constexpr std::size_t kMemories = 4'000;
  std::vector<Joined> links;
  for (std::size_t i = 0; i + 1 < kMemories; ++i) links.push_back({i, i + 1, 10, 2});
  const Topology topology(make(kMemories, links));
  for (std::size_t i = 0; i + 1 < kMemories; i += 40) {
    CHECK(topology.route(MemoryId(i), MemoryId(i + 1))->hops.size() == 1);
  }
  CHECK(topology.route(MemoryId(0), MemoryId(kMemories - 1))->latency ==
        Time{2 * static_cast<std::int64_t>(kMemories - 1)});
}
