// TensorFlow's allocator: random use beside a simple re-statement of the rules, and its settings.
#include "memory/allocator.hpp"
#include "memory/naive_cache.hpp"

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::kMiB;

/// Regions as lists of chunks, searched from end to end.
class NaiveRegions {
 public:
  struct Place {
    std::size_t region = 0;
    std::int64_t offset = 0, size = 0;
    auto operator<=>(const Place&) const = default;
  };

  NaiveRegions(std::int64_t capacity, const BfcSettings& settings)
      : capacity_(capacity / 256 * 256), settings_(settings) {
    next_ = settings.growth ? up(settings.first_region.count()) : capacity_;
  }

  std::optional<Place> allocate(std::int64_t bytes) {
    const std::int64_t size = up(bytes);
    if (auto found = find(size)) return found;
    if (grow(size)) return find(size);
    if (!settings_.give_back_regions) return std::nullopt;
    std::int64_t whole = 0;
    for (const auto& region : regions_)
      if (region.size() == 1 && !region[0].used) whole += region[0].size;
    if (size > capacity_ - held() + whole) return std::nullopt;
    for (auto& region : regions_)
      if (region.size() == 1 && !region[0].used) region.clear();
    if (grow(size)) return find(size);
    return std::nullopt;
  }

  void free(const Place& place) {
    auto& region = regions_[place.region];
    for (Chunk& chunk : region)
      if (chunk.offset == place.offset) chunk.used = false;
    for (std::size_t c = 1; c < region.size();) {
      if (region[c - 1].used || region[c].used) {
        ++c;
        continue;
      }
      region[c - 1].size += region[c].size;
      region.erase(region.begin() + static_cast<std::ptrdiff_t>(c));
    }
  }

  [[nodiscard]] std::int64_t held() const {
    std::int64_t sum = 0;
    for (const auto& region : regions_)
      for (const Chunk& chunk : region) sum += chunk.size;
    return sum;
  }
  [[nodiscard]] std::int64_t used() const {
    std::int64_t sum = 0;
    for (const auto& region : regions_)
      for (const Chunk& chunk : region) sum += chunk.used ? chunk.size : 0;
    return sum;
  }

 private:
  struct Chunk {
    std::int64_t offset = 0, size = 0;
    bool used = false;
  };
  static std::int64_t up(std::int64_t n) { return (n + 255) / 256 * 256; }

  std::optional<Place> find(std::int64_t size) {
    std::optional<Place> best;
    for (std::size_t r = 0; r < regions_.size(); ++r)
      for (const Chunk& chunk : regions_[r])
        if (!chunk.used && chunk.size >= size && (!best || chunk.size < best->size))
          best = Place{r, chunk.offset, chunk.size};
    if (!best) return best;
    auto& region = regions_[best->region];
    const auto at = std::ranges::find(region, best->offset, &Chunk::offset);
    at->used = true;
    if (at->size >= 2 * size || at->size - size >= 128 * kMiB) {
      const Chunk rest{at->offset + size, at->size - size, false};
      at->size = best->size = size;
      region.insert(at + 1, rest);
    }
    return best;
  }

  bool grow(std::int64_t size) {
    const std::int64_t left = capacity_ - held();
    if (size > left) return false;
    bool doubled = false;
    while (next_ < size) {
      next_ *= 2;
      doubled = true;
    }
    regions_.push_back({{0, std::min(next_, left), false}});
    if (!doubled) next_ *= 2;
    return true;
  }

  std::int64_t capacity_;
  BfcSettings settings_;
  std::int64_t next_ = 0;
  std::vector<std::vector<Chunk>> regions_;  // those given back stay, empty
};

std::size_t region_of(const BfcAllocator& memory, const MemoryBlock& block) {
  const std::vector<MemoryPiece> pieces = memory.pieces();
  return std::ranges::find(pieces, block.handle, &MemoryPiece::handle)->segment;
}

std::int64_t size_of(const BfcAllocator& memory, const MemoryBlock& block) {
  const std::vector<MemoryPiece> pieces = memory.pieces();
  return std::ranges::find(pieces, block.handle, &MemoryPiece::handle)->size.count();
}

}  // namespace

TEST_CASE("bfc does what a list of chunks says") {
  for (const BfcSettings& settings :
       {BfcSettings{}, BfcSettings{.growth = true},
        BfcSettings{.growth = true, .first_region = Bytes{5000}, .give_back_regions = true}}) {
    CAPTURE(settings.growth, settings.give_back_regions);
    std::int64_t refused = 0, given_back = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      std::mt19937_64 random(seed);
      const auto capacity = static_cast<std::int64_t>(random() % (400 * kMiB));
      BfcAllocator memory(Bytes{capacity}, settings);
      NaiveRegions naive(capacity, settings);
      std::vector<std::pair<MemoryBlock, NaiveRegions::Place>> held;
      for (int step = 0; step < 250; ++step) {
        if (held.empty() || random() % 20 < 11) {
          const auto most = static_cast<std::uint64_t>(
              std::array{std::int64_t{3000}, kMiB, 30 * kMiB, 200 * kMiB}[random() % 4]);
          const auto bytes = static_cast<std::int64_t>(1 + random() % most);
          const Bytes largest = memory.largest_free_block();
          const auto block = memory.allocate(Bytes{bytes});
          const auto place = naive.allocate(bytes);
          REQUIRE(block.has_value() == place.has_value());
          REQUIRE(block.has_value() == (Bytes{bytes} <= largest));
          if (block) {
            REQUIRE(NaiveRegions::Place{region_of(memory, *block), block->offset.count(),
                                        size_of(memory, *block)} == *place);
            held.emplace_back(*block, *place);
          }
        } else {
          std::swap(held[random() % held.size()], held.back());
          memory.free(held.back().first);
          naive.free(held.back().second);
          held.pop_back();
        }
        REQUIRE(memory.now().reserved.count() == naive.held());
        REQUIRE(memory.now().allocated.count() == naive.used());
      }
      refused += memory.counters().ooms;
      given_back += memory.counters().device_frees;
    }
    CHECK(refused > 0);
    CHECK((given_back > 0) == settings.give_back_regions);
  }
}

TEST_CASE("regions of bfc double, but for what the memory has left") {
  // 2, 4, 8 MiB for three requests that none of those before serves; then 16 MiB would be next, of
  // which 20 - 14 = 6 are there.
  Allocator memory = Allocator::bfc(Bytes{20 * kMiB}, {.growth = true});
  for (const std::int64_t mib : {2, 4, 8, 5}) REQUIRE(memory.allocate(Bytes{mib * kMiB}));
  const std::vector<MemorySegment> regions = memory.segments();
  REQUIRE(regions.size() == 4);
  CHECK(regions[0].size == Bytes{2 * kMiB});
  CHECK(regions[1].size == Bytes{4 * kMiB});
  CHECK(regions[2].size == Bytes{8 * kMiB});
  CHECK(regions[3].size == Bytes{6 * kMiB});
}

TEST_CASE("chunks of bfc are cut where 128 MiB would be left unused, however small the share") {
  // 1,000 MiB for 800: the rest is less than the request, but more than 128 MiB.
  Allocator memory = Allocator::bfc(Bytes{1000 * kMiB});
  REQUIRE(memory.allocate(Bytes{800 * kMiB}));
  CHECK(memory.now().allocated == Bytes{800 * kMiB});
  // 200 for 100: twice the request. 100 for 60: neither, so all of it goes.
  REQUIRE(memory.allocate(Bytes{100 * kMiB}));
  REQUIRE(memory.allocate(Bytes{60 * kMiB}));
  CHECK(memory.now().allocated == Bytes{1000 * kMiB});
}

TEST_CASE("blocks of bfc are allocated together or not at all") {
  // Regions of 2 and 4 MiB; 4 + 3 MiB are refused beside them in 8 MiB, and leave no region behind.
  Allocator memory = Allocator::bfc(Bytes{8 * kMiB}, {.growth = true});
  const auto kept = memory.allocate(Bytes{2 * kMiB});
  REQUIRE(kept);
  std::vector<MemoryBlock> two(2, MemoryBlock{.requested = Bytes{4 * kMiB}});
  CHECK_FALSE(memory.allocate_all(two));
  CHECK(memory.now().reserved == Bytes{2 * kMiB});
  CHECK(memory.peak().reserved == Bytes{2 * kMiB});
  const auto next = memory.allocate(Bytes{1});
  REQUIRE(next);
  CHECK(memory.segments().at(1).size == Bytes{4 * kMiB});  // as if nothing had been tried
}

TEST_CASE("an unlimited memory of bfc grows") {
  Allocator memory = Allocator::bfc(Bytes::unlimited());
  const auto block = memory.allocate(Bytes{100});
  REQUIRE(block);
  CHECK(memory.now().reserved == Bytes{2 * kMiB});
  CHECK(memory.largest_free_block().is_unlimited());
  CHECK(memory.allocate(Bytes{1'000'000'000'000'000'000}));
  CHECK(memory.free_bytes().is_unlimited());
  CHECK_FALSE(Allocator::bfc(Bytes{255}).allocate(Bytes{1}));
}

}  // namespace plimsoll
