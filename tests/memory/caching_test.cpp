// The caching allocator: random use beside a simple re-statement of the rules, and what each
// setting is for.
#include "memory/allocator.hpp"
#include "memory/naive_expandable.hpp"
#include "support/allocation_count.hpp"

#include <map>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::kKiB;
using test::kMiB;
using test::NaiveCounts;
using test::NaivePlace;

struct Setting {
  std::string name;
  CachingSettings settings;
};

std::vector<Setting> separate_segments() {
  CachingSettings oversize, divided, collected, all;
  oversize.max_split_size = Bytes{24 * kMiB};
  divided.roundup_power2_divisions = 4;
  collected.garbage_collection_threshold = Ratio{600'000'000};
  all = collected;
  all.max_split_size = Bytes{21 * kMiB};
  all.roundup_power2_divisions = 8;
  return {{"plain", {}},
          {"max_split_size 24 MiB", oversize},
          {"roundup_power2_divisions 4", divided},
          {"garbage_collection_threshold 0.6", collected},
          {"all three", all}};
}

std::vector<Setting> expandable() {
  CachingSettings plain, divided;
  plain.expandable_segments = true;
  divided = plain;
  divided.roundup_power2_divisions = 4;
  return {{"expandable", plain}, {"expandable, roundup_power2_divisions 4", divided}};
}

std::int64_t random_size(std::mt19937_64& random) {
  constexpr std::array kMost{2 * kKiB, 300 * kKiB, 2 * kMiB, 12 * kMiB, 45 * kMiB};
  const std::int64_t most = kMost[random() % kMost.size()];
  return 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
}

/// Random use of the allocator beside a naive one. `Naive` numbers segments in its own way, which
/// `number` gives of a place of the allocator.
template <class Naive, class Number, class Compare>
void use_both(const CachingSettings& settings, std::uint64_t seed, int steps, Number number,
              Compare compare) {
  std::mt19937_64 random(seed);
  const auto capacity = static_cast<std::int64_t>((40 + random() % 260) * kMiB + random() % kMiB);
  CachingAllocator cache(Bytes{capacity}, settings);
  Naive naive(capacity, settings);
  struct Held {
    MemoryBlock block;
    NaivePlace place;
  };
  std::vector<Held> held;
  AllocatorUse peak;
  for (int step = 0; step < steps; ++step) {
    const std::uint64_t dice = random() % 20;
    const auto stream = static_cast<std::uint32_t>(random() % 3);
    if (dice == 0) {
      cache.events_complete();
      naive.events_complete();
    } else if (dice == 1 && random() % 8 == 0) {
      cache.release_cached();
      naive.release_cached();
    } else if (dice < 11 || held.empty()) {
      const std::int64_t bytes = random_size(random);
      const auto block = cache.allocate(Bytes{bytes}, stream);
      const auto place = naive.allocate(bytes, stream);
      REQUIRE(block.has_value() == place.has_value());
      if (block) {
        REQUIRE(NaivePlace{number(cache, *block, stream), block->offset.count(),
                           cache.size_of(*block).count()} == *place);
        held.push_back({*block, *place});
      }
    } else {
      std::swap(held[random() % held.size()], held.back());
      if (dice < 13) {
        cache.used_on(held.back().block, stream);
        naive.used_on(held.back().place, stream);
      }
      cache.free(held.back().block);
      naive.free(held.back().place);
      held.pop_back();
    }
    const AllocatorUse now = cache.counters().now;
    peak.requested = std::max(peak.requested, now.requested);
    peak.allocated = std::max(peak.allocated, now.allocated);
    peak.active = std::max(peak.active, now.active);
    REQUIRE(now.allocated <= now.active);
    REQUIRE(now.requested <= now.active);
    REQUIRE(now.active <= now.reserved);
    REQUIRE(now.reserved <= Bytes{capacity});
    compare(cache, naive);
  }
  const AllocatorCounters counters = cache.counters();
  REQUIRE(counters.peak.requested == peak.requested);
  REQUIRE(counters.peak.allocated == peak.allocated);
  REQUIRE(counters.peak.active == peak.active);
  // It was used hard enough to mean something.
  REQUIRE(counters.ooms > 0);
  REQUIRE(counters.device_frees > 0);
}

NaiveCounts counts_of(const CachingAllocator& cache) {
  const AllocatorCounters it = cache.counters();
  return {it.now.requested.count(),
          it.now.allocated.count(),
          it.now.active.count(),
          it.now.reserved.count(),
          it.inactive_split.count(),
          static_cast<std::int64_t>(it.segments),
          it.retries,
          it.ooms,
          it.device_allocations,
          it.device_frees};
}

}  // namespace

TEST_CASE("a caching allocator does what its rules say, step by step") {
  for (const Setting& setting : separate_segments()) {
    INFO(setting.name);
    for (std::uint64_t seed = 0; seed < 15; ++seed)
      use_both<test::NaiveCache>(
          setting.settings, seed, 600,
          [](const CachingAllocator& cache, const MemoryBlock& block, std::uint32_t) {
            return std::size_t{cache.segment_of(block)};
          },
          [](const CachingAllocator& cache, const test::NaiveCache& naive) {
            REQUIRE(counts_of(cache) == naive.counts());
            REQUIRE(cache.largest_cached_block() == Bytes{naive.largest_free()});
          });
  }
}

TEST_CASE("expandable segments map and unmap the pages that their rules say") {
  for (const Setting& setting : expandable()) {
    INFO(setting.name);
    for (std::uint64_t seed = 0; seed < 15; ++seed)
      use_both<test::NaiveExpandable>(
          setting.settings, seed, 600,
          [](const CachingAllocator& cache, const MemoryBlock& block, std::uint32_t stream) {
            return std::size_t{2} * stream + (cache.size_of(block) <= Bytes{kMiB} ? 0 : 1);
          },
          [](const CachingAllocator& cache, const test::NaiveExpandable& naive) {
            NaiveCounts counts = counts_of(cache);
            // The naive one does not count what it does.
            counts.retries = counts.ooms = 0;
            counts.device_allocations = counts.device_frees = 0;
            REQUIRE(counts == naive.counts());
          });
  }
}

TEST_CASE("blocks never overlap, and what is free in a segment is in one piece at the end") {
  std::vector<Setting> settings = separate_segments();
  for (const Setting& more : expandable()) settings.push_back(more);
  for (const Setting& setting : settings) {
    INFO(setting.name);
    std::mt19937_64 random(3);
    CachingAllocator cache(Bytes{200 * kMiB}, setting.settings);
    using Address = std::pair<std::uint64_t, std::int64_t>;
    std::map<Address, MemoryBlock> live;
    for (int step = 0; step < 4000; ++step) {
      if (random() % 2 == 0 || live.empty()) {
        const auto block = cache.allocate(Bytes{random_size(random)}, random() % 2);
        if (!block) continue;
        const Address address{cache.segment_of(*block), block->offset.count()};
        const std::int64_t end = address.second + cache.size_of(*block).count();
        const auto [at, is_new] = live.emplace(address, *block);
        REQUIRE(is_new);
        const auto next = std::next(at);
        if (next != live.end() && next->first.first == address.first)
          REQUIRE(end <= next->first.second);
        if (at == live.begin() || std::prev(at)->first.first != address.first) continue;
        const MemoryBlock& before = std::prev(at)->second;
        REQUIRE((before.offset + cache.size_of(before)).count() <= address.second);
      } else {
        auto at = live.begin();
        std::advance(at, random() % live.size());
        cache.free(at->second);
        live.erase(at);
      }
    }
    for (const auto& [address, block] : live) cache.free(block);
    Bytes reserved;
    for (const MemorySegment& segment : cache.segments()) {
      CHECK(segment.blocks_in_use == 0);
      CHECK(segment.free == segment.size);
      reserved += segment.size;
      if (!setting.settings.expandable_segments) CHECK(segment.largest_free == segment.size);
    }
    CHECK(reserved == cache.now().reserved);
    cache.release_cached();
    CHECK(cache.now().reserved == Bytes{});
    CHECK(cache.segments().empty());
    CHECK(cache.largest_free_block() == Bytes{200 * kMiB});
  }
}

TEST_CASE("more than the largest free block is never had") {
  std::vector<Setting> settings = separate_segments();
  for (const Setting& more : expandable()) settings.push_back(more);
  for (const Setting& setting : settings) {
    INFO(setting.name);
    std::mt19937_64 random(4);
    CachingAllocator cache(Bytes{100 * kMiB}, setting.settings);
    std::vector<MemoryBlock> held;
    int refused = 0;
    for (int step = 0; step < 3000; ++step) {
      if (random() % 2 == 0 || held.empty()) {
        const Bytes bytes{random_size(random)}, most = cache.largest_free_block();
        const auto block = cache.allocate(bytes, random() % 2);
        if (block) held.push_back(*block);
        if (bytes > most) REQUIRE_FALSE(block);
        if (bytes > most) ++refused;
      } else {
        std::swap(held[random() % held.size()], held.back());
        cache.free(held.back());
        held.pop_back();
      }
    }
    CHECK(refused > 0);
  }
}

TEST_CASE("blocks of max_split_size and more are given back, and no more of them than needed") {
  // 100 MiB, blocks from 24 MiB on are oversize. Free are segments of 24 and 30 MiB; 20 MiB are in
  // use, 26 MiB not reserved. 28 MiB: the block of 30 serves, as it is less than 20 MiB larger.
  CachingSettings settings;
  settings.max_split_size = Bytes{24 * kMiB};
  CachingAllocator cache(Bytes{100 * kMiB}, settings);
  const auto mib = [&](std::int64_t count) { return cache.allocate(Bytes{count * kMiB}); };
  const auto kept = mib(20), small = mib(24), large = mib(30);
  REQUIRE((kept && small && large));
  cache.free(*small);
  cache.free(*large);
  const auto served = mib(28);
  REQUIRE(served);
  CHECK(cache.size_of(*served) == Bytes{30 * kMiB});
  cache.free(*served);
  // 12 MiB may not be cut from an oversize block: a segment of its own, 86 MiB reserved, 14 left.
  const auto other = mib(12);
  REQUIRE(other);
  CHECK(cache.now().reserved == Bytes{86 * kMiB});
  // 26 MiB fit the block of 30 MiB; once that is in use, another 26 MiB need a segment, for which
  // the device lacks 12 MiB and no free oversize block is large enough: the one of 24 MiB goes
  // first, in vain, as 24 < 26; then all that is free.
  const auto first = mib(26), second = mib(26);
  REQUIRE((first && second));
  CHECK(cache.counters().device_frees == 1);
  CHECK(cache.counters().retries == 1);
  CHECK(cache.now().reserved == Bytes{88 * kMiB});
  // Freed, the segments are of 30 and 26 MiB. 60 MiB need both, of which 56 are not enough: retry.
  // 31 MiB need one, the smallest that is large enough; there is none, so the largest goes, and one
  // more, to reach 31; no retry.
  cache.free(*first);
  cache.free(*second);
  REQUIRE(mib(31));
  CHECK(cache.counters().device_frees == 3);
  CHECK(cache.counters().retries == 1);
}

TEST_CASE("an oversize request takes an oversize block that is less than 20 MiB larger") {
  // 48 MiB are 20 MiB more than 28 MiB, so a segment of 28 MiB is asked for; for 512 B more they
  // serve.
  CachingSettings settings;
  settings.max_split_size = Bytes{24 * kMiB};
  CachingAllocator cache(Bytes{100 * kMiB}, settings);
  cache.free(cache.allocate(Bytes{48 * kMiB}).value());
  CHECK(cache.size_of(cache.allocate(Bytes{28 * kMiB}).value()) == Bytes{28 * kMiB});
  CHECK(cache.size_of(cache.allocate(Bytes{28 * kMiB + 512}).value()) == Bytes{48 * kMiB});
}

TEST_CASE("garbage collection gives back what has been cached for longest") {
  // Half of 100 MiB may be held before old segments go. Those of 20, 22 and 24 MiB hold 66 MiB;
  // none of them serves 26 MiB.
  CachingSettings settings;
  settings.garbage_collection_threshold = Ratio{500'000'000};
  CachingAllocator cache(Bytes{100 * kMiB}, settings);
  const auto a = cache.allocate(Bytes{20 * kMiB}), b = cache.allocate(Bytes{22 * kMiB}),
             c = cache.allocate(Bytes{24 * kMiB});
  REQUIRE((a && b && c));  // 3 lookups of the large pool; the third saw 42 MiB, below 50
  cache.free(*a);          // cached at 3
  const auto again = cache.allocate(Bytes{20 * kMiB});  // the 4th; served from the cache
  REQUIRE(again);
  cache.free(*b);                                   // cached at 4
  cache.free(*c);                                   // cached at 4
  cache.free(*again);                               // cached at 4
  const auto d = cache.allocate(Bytes{24 * kMiB});  // the 5th, from the cache
  REQUIRE(d);
  cache.free(*d);  // cached at 5
  // The 6th: 26 MiB. 66 held, 16 too many. Ages: a 2, b 2, c 1; the mean is 5/3. a and b go: 42
  // MiB.
  REQUIRE(cache.allocate(Bytes{26 * kMiB}));
  CHECK(cache.counters().device_frees == 2);
  CHECK(cache.counters().retries == 0);
  CHECK(cache.now().reserved == Bytes{(24 + 26) * kMiB});
}

TEST_CASE("blocks of a caching memory are allocated together or not at all") {
  // 40 MiB: 20 are taken. 12 + 12 MiB do not fit beside them, and the first of them leaves nothing.
  Allocator memory = Allocator::caching(Bytes{40 * kMiB});
  const auto kept = memory.allocate(Bytes{20 * kMiB});
  REQUIRE(kept);
  std::vector<MemoryBlock> two(2, MemoryBlock{.requested = Bytes{12 * kMiB}});
  CHECK_FALSE(memory.allocate_all(two, 1));
  CHECK(memory.now().reserved == Bytes{20 * kMiB});
  CHECK(memory.peak().reserved == Bytes{20 * kMiB});
  CHECK(memory.peak().requested == Bytes{20 * kMiB});
  memory.free(*kept);
  // Another stream's free block serves nobody, but its segment is given back when room is needed.
  REQUIRE(memory.allocate_all(two, 1));
  CHECK(memory.now().reserved == Bytes{24 * kMiB});
  CHECK(memory.as_ideal() == nullptr);
  CHECK(memory.as_caching()->counters().retries == 2);
}

TEST_CASE("nothing, everything and more than everything of a caching memory") {
  Allocator memory = Allocator::caching(Bytes{0});
  const auto nothing = memory.allocate(Bytes{});
  REQUIRE(nothing);
  CHECK_FALSE(memory.allocate(Bytes{1}));
  CHECK_FALSE(memory.allocate(Bytes{std::int64_t{1} << 62}));
  memory.free(*nothing);

  CachingSettings expandable;
  expandable.expandable_segments = true;
  for (const CachingSettings& settings : {CachingSettings{}, expandable}) {
    Allocator unlimited = Allocator::caching(Bytes::unlimited(), settings);
    const auto much = unlimited.allocate(Bytes{1'000'000'000'000'000});
    REQUIRE(much);
    CHECK(unlimited.free_bytes().is_unlimited());
    CHECK(unlimited.largest_free_block().is_unlimited());
    Allocator moved = std::move(unlimited);
    moved.free(*much);
    CHECK(moved.now().requested == Bytes{});
  }
  // The largest count of bytes leaves the range when it is rounded up.
  Allocator unlimited = Allocator::caching(Bytes::unlimited());
  CHECK_THROWS_AS(unlimited.allocate(Bytes{INT64_MAX - 1}), QuantityOverflow);
}

TEST_CASE("a warm caching allocator does not allocate from the host") {
  std::vector<Setting> settings = separate_segments();
  for (const Setting& more : expandable()) settings.push_back(more);
  for (const Setting& setting : settings) {
    INFO(setting.name);
    CachingAllocator cache(Bytes{600 * kMiB}, setting.settings);
    std::vector<MemoryBlock> held;
    held.reserve(200);
    std::uint64_t before = 0;
    for (int lap = 0; lap < 4; ++lap) {
      std::mt19937_64 random(10);  // the same lap each time; the first two warm up
      if (lap == 2) before = allocation_count();
      for (int step = 0; step < 3000; ++step) {
        if (held.size() < 150 && random() % 2 == 0) {
          const auto block = cache.allocate(Bytes{random_size(random)}, random() % 2);
          if (block) held.push_back(*block);
        } else if (!held.empty()) {
          std::swap(held[random() % held.size()], held.back());
          cache.used_on(held.back(), random() % 2);
          cache.free(held.back());
          held.pop_back();
        }
        if (step % 50 == 0) cache.events_complete();
      }
      for (const MemoryBlock& block : held) cache.free(block);
      held.clear();
      cache.events_complete();
      cache.release_cached();
    }
    CHECK(allocation_count() == before);
  }
}

}  // namespace plimsoll
