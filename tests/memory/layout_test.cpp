// What lies where: after every operation of random use, of every allocator with addresses.
#include "memory/allocator.hpp"
#include "memory/naive_cache.hpp"
#include "memory/random_traces.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using State = MemoryPiece::State;
using test::kMiB;

/// By handle, what is held.
using Held = std::map<std::uint32_t, MemoryBlock>;

bool is_expandable(const AllocatorSettings& settings) {
  return settings.kind == AllocatorKind::caching && settings.caching.expandable_segments;
}

/// Pieces tile their segments, no two free ones adjoin, every held block is one piece, and the
/// counters are the sums.
void check_layout(const Allocator& memory, const AllocatorSettings& settings, const Held& held) {
  const std::vector<MemoryPiece> pieces = memory.pieces();
  Bytes taken, awaited, held_bytes, largest;
  std::size_t blocks = 0;
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    const MemoryPiece& it = pieces[p];
    REQUIRE(it.size > Bytes{});
    const bool is_first = p == 0 || pieces[p - 1].segment != it.segment;
    if (is_first && p > 0) REQUIRE(pieces[p - 1].segment < it.segment);
    if (is_first && !is_expandable(settings)) REQUIRE(it.offset == Bytes{});
    if (!is_first) {
      const Bytes end = pieces[p - 1].offset + pieces[p - 1].size;
      REQUIRE(end <= it.offset);
      if (!is_expandable(settings)) REQUIRE(end == it.offset);
      if (end == it.offset)
        REQUIRE_FALSE((pieces[p - 1].state == State::free && it.state == State::free));
    }
    held_bytes += it.size;
    if (it.state == State::free) {
      largest = std::max(largest, it.size);
      continue;
    }
    taken += it.size;
    if (it.state == State::awaited) {
      awaited += it.size;
      REQUIRE(!held.contains(it.handle));
      continue;
    }
    ++blocks;
    REQUIRE(held.contains(it.handle));
    const MemoryBlock& block = held.at(it.handle);
    REQUIRE(block.offset == it.offset);
    REQUIRE(memory.rounded(block.requested) <= it.size);
  }
  REQUIRE(blocks == held.size());
  const AllocatorCounters counters = memory.counters();
  REQUIRE(counters.now.active == taken);
  REQUIRE(counters.now.allocated == taken - awaited);
  if (!is_arena(settings.kind)) REQUIRE(counters.now.reserved == held_bytes);
  REQUIRE(counters.now.requested <= counters.now.active);
  REQUIRE(counters.now.active <= counters.now.reserved);

  const std::vector<MemorySegment> segments = memory.segments();
  REQUIRE(segments.size() == counters.segments);
  Bytes cut, free;
  std::size_t in_use = 0;
  for (const MemorySegment& segment : segments) {
    free += segment.free;
    in_use += segment.blocks_in_use;
    if (segment.is_cut()) cut += segment.free;
  }
  REQUIRE(free == held_bytes - taken);
  REQUIRE(in_use >= blocks);
  if (!is_arena(settings.kind) && !is_expandable(settings)) REQUIRE(counters.inactive_split == cut);
}

/// Gives the requests that were refused.
std::int64_t use_at_random(const AllocatorSettings& settings, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const Bytes capacity{static_cast<std::int64_t>(30 + random() % 200) * kMiB + 777};
  Allocator memory = Allocator::of(capacity, settings);
  Held held;
  Bytes load, most;  // requested and not freed
  for (int step = 0; step < 200; ++step) {
    if (held.empty() || random() % 5 < 3) {
      const Bytes bytes{test::any_size(random)};
      const auto block = memory.allocate(bytes, static_cast<std::uint32_t>(random() % 2));
      if (block) held.emplace(block->handle, *block);
      if (block) load += bytes;
    } else {
      const auto gone =
          std::next(held.begin(), static_cast<std::ptrdiff_t>(random() % held.size()));
      load -= gone->second.requested;
      memory.free(gone->second);
      held.erase(gone);
    }
    most = std::max(most, load);
    check_layout(memory, settings, held);
    REQUIRE(memory.now().requested == load);
  }
  // No allocator needs less than what is alive at one time.
  REQUIRE(memory.peak().requested == most);
  REQUIRE(most <= memory.peak().reserved);
  return memory.counters().ooms;
}

}  // namespace

TEST_CASE("pieces tile their segments after every operation") {
  for (const auto& [name, settings] : test::allocators_with_addresses()) {
    INFO(name);
    std::int64_t refused = 0;
    for (std::uint64_t seed = 0; seed < 8; ++seed) refused += use_at_random(settings, seed);
    CHECK(refused > 0);
  }
}

TEST_CASE("a piece that other streams still use is awaited") {
  CachingAllocator cache(Bytes{64 * kMiB}, {});
  const auto block = cache.allocate(Bytes{12 * kMiB}, 0);
  REQUIRE(block);
  cache.used_on(*block, 1);
  cache.free(*block);
  REQUIRE(cache.pieces().size() == 1);
  CHECK(cache.pieces()[0].state == State::awaited);
  CHECK(cache.segments()[0].blocks_in_use == 1);
  cache.events_complete();
  CHECK(cache.pieces()[0].state == State::free);
}

TEST_CASE("an ideal memory has no pieces") {
  Allocator memory = Allocator::ideal(Bytes{100});
  REQUIRE(memory.allocate(Bytes{10}));
  CHECK(memory.pieces().empty());
  CHECK(memory.segments().empty());
}

TEST_CASE("what keeps a segment cut is told") {
  // Four blocks of 10 MiB fill a segment of 40; without the second and the fourth it is cut by the
  // others, beside 20 MiB free in pieces of 10.
  Allocator memory = Allocator::caching(Bytes{48 * kMiB});
  const auto whole = memory.allocate(Bytes{40 * kMiB});
  REQUIRE(whole);
  memory.free(*whole);
  std::vector<MemoryBlock> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(memory.allocate(Bytes{10 * kMiB}).value());
  memory.free(blocks[1]);
  memory.free(blocks[3]);
  const std::vector<MemorySegment> segments = memory.segments();
  REQUIRE(segments.size() == 1);
  CHECK(segments[0].is_cut());
  CHECK(segments[0].blocks_in_use == 2);
  CHECK(segments[0].free == Bytes{20 * kMiB});
  CHECK(segments[0].largest_free == Bytes{10 * kMiB});
  const std::vector<MemoryPiece> pieces = memory.pieces();
  REQUIRE(pieces.size() == 4);
  CHECK(pieces[0].handle == blocks[0].handle);
  CHECK(pieces[1].state == State::free);
  CHECK(pieces[2].handle == blocks[2].handle);
  CHECK(pieces[3].state == State::free);
}

}  // namespace plimsoll
