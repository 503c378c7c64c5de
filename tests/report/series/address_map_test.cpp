// Maps of addresses: rectangles that never overlap and add up to what the allocator counts.
#include "report/series/address_map.hpp"

#include "memory/random_traces.hpp"
#include "report/run_scenario.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

using namespace plimsoll;

namespace {

constexpr std::int64_t kMapMiB = 1 << 20;
constexpr std::int64_t kMapMs = 1'000'000'000;

struct Mapped {
  Recording recording;
  std::vector<AddressMap> maps;
};

Mapped mapped(const RunResult& run, const Platform& platform) {
  const Topology topology(platform);
  const Program program = lower(run.plan, run.workload_as_run, platform, topology);
  Mapped result{record(program), {}};
  result.maps = address_maps(program, result.recording);
  return result;
}

std::string with_allocator(std::string scenario, const std::string& allocator) {
  const std::string before = "sram: {";
  return scenario.insert(scenario.find(before) + before.size(), "allocator: " + allocator + ", ");
}

/// VGG-19 on a GPU that it hardly fits: segments are given back to ask once more.
Scenario full_gpu(const AllocatorSettings& settings) {
  Scenario scenario = load_scenario(std::filesystem::path(PLIMSOLL_SOURCE_DIR) /
                                    "scenarios/what-if/vgg19-offload.yaml");
  Memory& hbm = scenario.platform.memories[index(*scenario.platform.find_memory("hbm"))];
  hbm.allocator = settings.kind;
  hbm.alignment = settings.alignment;
  hbm.caching = settings.caching;
  hbm.bfc = settings.bfc;
  return scenario;
}

struct Rectangle {
  Bytes address, end;
};

/// What is there at a moment, by address; sizes in all.
template <class Items>
Bytes require_apart(const Items& items, Time now, auto rectangle_of) {
  std::vector<Rectangle> there;
  for (const auto& item : items)
    if (const auto [address, size, begin, end] = rectangle_of(item); begin <= now && now < end)
      there.push_back({address, address + size});
  std::ranges::sort(there, {}, &Rectangle::address);
  Bytes sum;
  for (std::size_t i = 0; i < there.size(); ++i) {
    if (i > 0) REQUIRE(there[i - 1].end <= there[i].address);
    sum += there[i].end - there[i].address;
  }
  return sum;
}

auto rectangle_of_block(const AddressMap::Block& block) {
  const Placement& it = block.placement;
  return std::tuple(block.address, it.size, it.begin, it.end);
}
auto rectangle_of_range(const AddressMap::Range& range) {
  return std::tuple(range.address, range.size, range.begin, range.end);
}

/// Every block lies in what is held all the time that it is there.
void require_within_ranges(const AddressMap& map) {
  for (const AddressMap::Block& block : map.blocks) {
    const Placement& it = block.placement;
    // Ranges may adjoin, in addresses and in time: their common parts make up the whole block.
    unit::Wide::Count covered = 0;
    for (const AddressMap::Range& range : map.ranges) {
      const Bytes from = std::max(range.address, block.address);
      const Bytes to = std::min(range.address + range.size, block.address + it.size);
      const Time begin = std::max(range.begin, it.begin), end = std::min(range.end, it.end);
      if (from < to && begin < end)
        covered += static_cast<unit::Wide::Count>((to - from).count()) *
                   ((end.is_unlimited() ? Time{INT64_MAX - 1} : end) - begin).count();
    }
    const Time end = it.end.is_unlimited() ? Time{INT64_MAX - 1} : it.end;
    REQUIRE(covered == static_cast<unit::Wide::Count>(it.size.count()) * (end - it.begin).count());
  }
}

/// The map of a memory against its series, after each instant.
std::size_t require_adds_up(const Mapped& run, bool has_segments) {
  std::size_t moments = 0;
  for (const AddressMap& map : run.maps) {
    require_within_ranges(map);
    const auto series =
        std::ranges::find(run.recording.memories, map.memory, &MemorySeries::memory);
    REQUIRE(series != run.recording.memories.end());
    const std::vector<MemoryPoint>& points = series->points;
    for (std::size_t p = 0; p < points.size(); ++p) {
      if (p + 1 < points.size() && points[p + 1].time == points[p].time) continue;
      const Time now = points[p].time;
      REQUIRE(require_apart(map.blocks, now, rectangle_of_block) == points[p].use.allocated);
      const Bytes held = require_apart(map.ranges, now, rectangle_of_range);
      if (has_segments) REQUIRE(held == points[p].use.reserved);
      ++moments;
    }
  }
  return moments;
}

}  // namespace

TEST_CASE("a map says where the blocks of a small chain lie") {
  // First fit in 16 MiB. The input (1 MiB) lies at 0, what s1 saves (4) at 1, what s2 saves (3) from
  // 10 ms on at 5. B2 (15 to 25 ms) needs its own gradient (2) and writes that of s1 (1), which
  // follow at 9 and 8. At 25 ms 5 to 8 is free again: there B1 puts the gradient of the input (1).
  const RanScenario ran = run_scenario(with_allocator(two_stages("16 MiB", "none"), "first-fit"));
  const Mapped run = mapped(ran.results[0], ran.scenario.platform);
  REQUIRE(run.maps.size() == 1);
  const AddressMap& map = run.maps[0];
  CHECK(map.segments == std::vector{Bytes{}});
  REQUIRE(map.ranges.size() == 1);
  CHECK(map.ranges[0].size == Bytes{16 * kMapMiB});
  std::map<std::string, std::array<std::int64_t, 4>> found;  // address, size, begin, end
  for (const auto& [it, address] : map.blocks)
    found[ran.results[0].workload_as_run[it.tensor].name] = {
        address.count() / kMapMiB, it.size.count() / kMapMiB, it.begin.count() / kMapMs,
        it.end.is_unlimited() ? -1 : it.end.count() / kMapMs};
  using Place = std::array<std::int64_t, 4>;
  REQUIRE(found.size() == 6);
  CHECK(found.at("input") == Place{0, 1, 0, -1});
  CHECK(found.at("s1.saved") == Place{1, 4, 0, 45});
  CHECK(found.at("s2.saved") == Place{5, 3, 10, 25});
  CHECK(found.at("input.gradient") == Place{5, 1, 25, -1});
  CHECK(found.at("s1.gradient") == Place{8, 1, 15, 45});
  CHECK(found.at("s2.gradient") == Place{9, 2, 15, 25});
}

TEST_CASE("rectangles of blocks never overlap and add up to what is allocated") {
  std::size_t moments = 0, given_back = 0;
  for (const auto& [name, settings] : test::allocators_with_addresses()) {
    const Scenario scenario = full_gpu(settings);
    for (const RunResult& result : run(scenario)) {
      CAPTURE(name, result.policy);
      const Mapped played = mapped(result, scenario.platform);
      REQUIRE(played.maps.size() == 1);
      moments += require_adds_up(played, takes_segments(settings.kind));
      for (const AddressMap::Range& range : played.maps[0].ranges)
        if (!range.end.is_unlimited()) ++given_back;
    }
  }
  CHECK(moments > 1000);
  CHECK(given_back > 10);
}

TEST_CASE("a memory without addresses has no map, an arena of a plan does") {
  const RanScenario ran = run_scenario(two_stages("16 MiB", "none"));
  CHECK(mapped(ran.results[0], ran.scenario.platform).maps.empty());
  RunResult result = ran.results[0];
  result.plan.limits.emplace_back(MemoryId{0}, Bytes{12 * kMapMiB});
  result.plan.arenas.emplace_back(MemoryId{0}, Bytes{512});
  const Mapped run = mapped(result, ran.scenario.platform);
  REQUIRE(run.maps.size() == 1);
  CHECK(run.maps[0].ranges.at(0).size == Bytes{12 * kMapMiB});
  CHECK(require_adds_up(run, false) > 0);
}

TEST_CASE("of too many blocks those of the largest area stay") {
  std::mt19937 random(7);
  AddressMap map;
  for (std::int64_t i = 0; i < 500; ++i) {
    // Any two differ in area: size times 500, plus less than 500.
    const auto size = static_cast<std::int64_t>(random() % 1000 + 1);
    map.blocks.push_back({{.size = Bytes{size * 500 + i}, .begin = Time{i}, .end = Time{i + 1}},
                          Bytes{i * 1'000'000}});
  }
  map.blocks[3].placement.end = Time::unlimited();  // reaches to the end: 497 ps
  std::vector<std::int64_t> areas;
  for (const AddressMap::Block& block : map.blocks)
    areas.push_back(block.placement.size.count() *
                    (std::min(block.placement.end, Time{500}) - block.placement.begin).count());
  std::vector<std::int64_t> sorted = areas;
  std::ranges::sort(sorted, std::greater{});
  const AddressMap fewer = thinned(map, Time{500}, 100);
  CHECK(fewer.left_out == 400);
  CHECK(fewer.largest_left_out == Bytes{sorted[100]});
  std::vector<Bytes> expected, kept;
  for (std::size_t i = 0; i < areas.size(); ++i)
    if (areas[i] >= sorted[99]) expected.push_back(map.blocks[i].address);
  for (const AddressMap::Block& block : fewer.blocks) kept.push_back(block.address);
  CHECK(kept == expected);
  CHECK(thinned(map, Time{500}, 500).blocks.size() == 500);
  CHECK(thinned(map, Time{500}, 500).left_out == 0);
  // Ranges likewise: of 1, 2, ... 10 B for 1 ps each those of 8 to 10 B.
  for (std::int64_t i = 1; i <= 10; ++i)
    map.ranges.push_back({Bytes{100 * i}, Bytes{i}, Time{i}, Time{i + 1}});
  const AddressMap few = thinned(map, Time{500}, 3);
  CHECK(few.ranges_left_out == 7);
  REQUIRE(few.ranges.size() == 3);
  CHECK(few.ranges[0].size == Bytes{8});
}
