#include "memory/allocator.hpp"

#include "support/allocation_count.hpp"

#include <map>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

using namespace plimsoll;

namespace {

struct Kind {
  std::string name;
  Allocator (*make)(Bytes capacity);
  std::int64_t alignment;  // 0: no addresses
  bool takes_first = false;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"ideal", [](Bytes c) { return Allocator::ideal(c); }, 0},
      {"best_fit, alignment 1", [](Bytes c) { return Allocator::best_fit(c); }, 1},
      {"best_fit, alignment 8", [](Bytes c) { return Allocator::best_fit(c, Bytes{8}); }, 8},
      {"best_fit, alignment 512", [](Bytes c) { return Allocator::best_fit(c, Bytes{512}); }, 512},
      {"first_fit, alignment 1", [](Bytes c) { return Allocator::first_fit(c); }, 1, true},
      {"first_fit, alignment 64", [](Bytes c) { return Allocator::first_fit(c, Bytes{64}); }, 64,
       true}};
  return all;
}

/// An arena as a map of the addresses in use, looked through from the first to the last.
class NaiveArena {
 public:
  NaiveArena(std::int64_t capacity, std::int64_t alignment, bool takes_first)
      : size_(capacity / alignment * alignment), alignment_(alignment), takes_first_(takes_first) {}

  /// The address, or -1.
  std::int64_t allocate(std::int64_t bytes) {
    const std::int64_t size = (bytes + alignment_ - 1) / alignment_ * alignment_;
    std::int64_t best = -1, best_size = 0;
    for (const auto& [offset, hole] : holes()) {
      if (hole < size || (best >= 0 && (takes_first_ || hole >= best_size))) continue;
      best = offset;
      best_size = hole;
    }
    if (best < 0) return -1;
    used_[best] = size;
    touched_ = std::max(touched_, best + size);
    return best;
  }
  void free(std::int64_t offset) { used_.erase(offset); }

  [[nodiscard]] std::int64_t allocated() const {
    std::int64_t sum = 0;
    for (const auto& [offset, size] : used_) sum += size;
    return sum;
  }
  [[nodiscard]] std::int64_t largest() const {
    std::int64_t largest = 0;
    for (const auto& [offset, size] : holes()) largest = std::max(largest, size);
    return largest;
  }
  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] std::int64_t touched() const { return touched_; }

 private:
  [[nodiscard]] std::vector<std::pair<std::int64_t, std::int64_t>> holes() const {
    std::vector<std::pair<std::int64_t, std::int64_t>> holes;
    std::int64_t at = 0;
    for (const auto& [offset, size] : used_) {
      if (offset > at) holes.emplace_back(at, offset - at);
      REQUIRE(offset >= at);  // no two blocks overlap
      at = offset + size;
    }
    if (size_ > at) holes.emplace_back(at, size_ - at);
    return holes;
  }

  std::int64_t size_, alignment_;
  bool takes_first_;
  std::map<std::int64_t, std::int64_t> used_;
  std::int64_t touched_ = 0;
};

void check(const MemoryUse& use, std::int64_t requested, std::int64_t allocated,
           std::int64_t reserved) {
  CHECK(use.requested == Bytes{requested});
  CHECK(use.allocated == Bytes{allocated});
  CHECK(use.reserved == Bytes{reserved});
}

}  // namespace

TEST_CASE("every allocator counts what is requested and refuses what does not fit") {
  for (const Kind& kind : kinds()) {
    INFO(kind.name);
    Allocator memory = kind.make(Bytes{4096});
    CHECK(memory.capacity() == Bytes{4096});
    CHECK(memory.largest_free_block() == Bytes{4096});
    const auto a = memory.allocate(Bytes{1024});
    const auto b = memory.allocate(Bytes{3072});
    REQUIRE(a);
    REQUIRE(b);
    CHECK(memory.free_bytes() == Bytes{0});
    CHECK_FALSE(memory.allocate(Bytes{1}));
    CHECK_FALSE(memory.allocate(Bytes{1'000'000'000'000'000'000}));
    memory.free(*a);
    CHECK(memory.free_bytes() == Bytes{1024});
    CHECK(memory.now().requested == Bytes{3072});
    CHECK(memory.peak().requested == Bytes{4096});
    memory.free(*b);
    CHECK(memory.largest_free_block() == Bytes{4096});  // in one piece again
    CHECK(memory.now().allocated == Bytes{0});
    CHECK(memory.peak().allocated == Bytes{4096});
    CHECK(memory.peak().reserved == Bytes{4096});
  }
}

TEST_CASE("an allocation of nothing always succeeds and takes nothing") {
  for (const Kind& kind : kinds()) {
    INFO(kind.name);
    Allocator memory = kind.make(Bytes{0});
    const auto nothing = memory.allocate(Bytes{0});
    REQUIRE(nothing);
    CHECK_FALSE(memory.allocate(Bytes{1}));
    memory.free(*nothing);
    check(memory.peak(), 0, 0, 0);
  }
}

TEST_CASE("an unlimited memory takes what comes") {
  for (const Kind& kind : kinds()) {
    INFO(kind.name);
    Allocator memory = kind.make(Bytes::unlimited());
    const Bytes much{1'000'000'000'000'000 / 512 * 512};
    const auto block = memory.allocate(much);
    REQUIRE(block);
    CHECK(memory.free_bytes().is_unlimited());
    CHECK(memory.largest_free_block().is_unlimited());
    CHECK(memory.now().reserved == much);
    memory.free(*block);
    CHECK(memory.now().requested == Bytes{0});
  }
}

TEST_CASE("the worked example of allocator.hpp") {
  Allocator memory = Allocator::best_fit(Bytes{100}, Bytes{8});
  CHECK(memory.free_bytes() == Bytes{96});
  const auto first = memory.allocate(Bytes{10});
  const auto middle = memory.allocate(Bytes{20});
  const auto last = memory.allocate(Bytes{8});
  REQUIRE((first && middle && last));
  CHECK(first->offset == Bytes{0});
  CHECK(middle->offset == Bytes{16});
  CHECK(last->offset == Bytes{40});
  check(memory.now(), 38, 48, 48);
  memory.free(*middle);
  check(memory.now(), 18, 24, 48);  // once touched, reserved
  CHECK(memory.largest_free_block() == Bytes{48});
  const auto small = memory.allocate(Bytes{9});
  REQUIRE(small);
  CHECK(small->offset == Bytes{16});
  check(memory.peak(), 38, 48, 48);
}

TEST_CASE("an arena may be too fragmented for what an ideal memory still takes") {
  // Four blocks of 25 in 100; the second and the fourth freed: 50 free, no more than 25 in one
  // piece.
  Allocator arena = Allocator::best_fit(Bytes{100});
  Allocator ideal = Allocator::ideal(Bytes{100});
  std::vector<MemoryBlock> blocks;
  for (int i = 0; i < 4; ++i) {
    blocks.push_back(arena.allocate(Bytes{25}).value());
    REQUIRE(ideal.allocate(Bytes{25}));
  }
  for (const std::size_t i : {std::size_t{1}, std::size_t{3}}) {
    arena.free(blocks[i]);
    ideal.free(blocks[i]);
  }
  CHECK(arena.free_bytes() == ideal.free_bytes());
  CHECK(arena.largest_free_block() == Bytes{25});
  CHECK_FALSE(arena.allocate(Bytes{26}));
  CHECK(ideal.allocate(Bytes{26}));
}

TEST_CASE("blocks of an arena lie where they are asked for, all or none") {
  Allocator arena = Allocator::best_fit(Bytes{100}, Bytes{10});
  std::vector<MemoryBlock> blocks{{.requested = Bytes{15}, .offset = Bytes{40}},
                                  {.requested = Bytes{40}, .offset = Bytes{60}},
                                  {.requested = Bytes{0}, .offset = kNowhere}};
  REQUIRE(arena.place_all(blocks));
  check(arena.now(), 55, 60, 100);
  // [0, 40) is free: 41 B would reach beyond it; of two blocks the first is given back.
  std::vector<MemoryBlock> beyond{{.requested = Bytes{41}, .offset = Bytes{0}}};
  CHECK_FALSE(arena.place_all(beyond));
  std::vector<MemoryBlock> twice{{.requested = Bytes{20}, .offset = Bytes{10}},
                                 {.requested = Bytes{1}, .offset = Bytes{20}}};
  CHECK_FALSE(arena.place_all(twice));
  std::vector<MemoryBlock> nowhere{{.requested = Bytes{1}, .offset = kNowhere}};
  CHECK_FALSE(arena.place_all(nowhere));
  check(arena.now(), 55, 60, 100);
  // [0, 10) and [30, 40) are left beside it, and merge with what is freed.
  std::vector<MemoryBlock> within{{.requested = Bytes{20}, .offset = Bytes{10}}};
  REQUIRE(arena.place_all(within));
  CHECK(arena.largest_free_block() == Bytes{10});
  arena.free(within.front());
  CHECK(arena.largest_free_block() == Bytes{40});
  arena.free(blocks[0]);
  CHECK(arena.largest_free_block() == Bytes{60});
}

TEST_CASE("an ideal memory can be given back byte by byte") {
  Allocator memory = Allocator::ideal(Bytes{10});
  REQUIRE(memory.as_ideal() != nullptr);
  REQUIRE(memory.allocate(Bytes{10}));
  memory.as_ideal()->give_back(Bytes{3});
  CHECK(memory.free_bytes() == Bytes{3});
  CHECK(memory.as_ideal()->take(Bytes{3}));
  CHECK_FALSE(memory.as_ideal()->take(Bytes{1}));
  CHECK(Allocator::best_fit(Bytes{10}).as_ideal() == nullptr);
}

TEST_CASE("every allocator does what a list of blocks says") {
  std::mt19937_64 random(9);
  for (const Kind& kind : kinds()) {
    INFO(kind.name);
    for (int round = 0; round < 60; ++round) {
      const auto capacity = static_cast<std::int64_t>(random() % 60'000);
      Allocator memory = kind.make(Bytes{capacity});
      NaiveArena naive(capacity, std::max<std::int64_t>(kind.alignment, 1), kind.takes_first);
      std::vector<MemoryBlock> held;
      std::int64_t requested = 0, peak = 0, allocated_peak = 0;
      for (int step = 0; step < 300; ++step) {
        if (!held.empty() && random() % 5 < 2) {
          std::swap(held[random() % held.size()], held.back());
          memory.free(held.back());
          requested -= held.back().requested.count();
          if (kind.alignment > 0) naive.free(held.back().offset.count());
          held.pop_back();
        } else {
          const auto bytes = static_cast<std::int64_t>(1 + random() % 4000);
          const auto block = memory.allocate(Bytes{bytes});
          if (kind.alignment == 0) {
            REQUIRE(block.has_value() == (requested + bytes <= capacity));
          } else {
            REQUIRE((block ? block->offset.count() : -1) == naive.allocate(bytes));
          }
          if (block) held.push_back(*block);
          requested += block ? bytes : 0;
        }
        const bool arena = kind.alignment > 0;
        const std::int64_t allocated = arena ? naive.allocated() : requested;
        peak = std::max(peak, requested);
        allocated_peak = std::max(allocated_peak, allocated);
        const std::int64_t size = arena ? naive.size() : capacity;
        REQUIRE(memory.free_bytes() == Bytes{size - allocated});
        REQUIRE(memory.largest_free_block() == Bytes{arena ? naive.largest() : size - allocated});
        REQUIRE(memory.now().requested == Bytes{requested});
        REQUIRE(memory.now().allocated == Bytes{allocated});
        REQUIRE(memory.now().reserved == Bytes{arena ? naive.touched() : requested});
        REQUIRE(memory.peak().requested == Bytes{peak});
        REQUIRE(memory.peak().allocated == Bytes{allocated_peak});
      }
    }
  }
}

TEST_CASE("an allocator moves with its blocks") {
  for (const Kind& kind : kinds()) {
    INFO(kind.name);
    Allocator memory = kind.make(Bytes{1024});
    const auto block = memory.allocate(Bytes{512});
    REQUIRE(block);
    Allocator moved = std::move(memory);
    moved.free(*block);
    CHECK(moved.free_bytes() == Bytes{1024});
  }
}

TEST_CASE("a warm allocator does not allocate from the host") {
  std::vector<Kind> all = kinds();
  all.push_back({"bfc", [](Bytes c) { return Allocator::bfc(c); }, 256});
  all.push_back(
      {"bfc, growth",
       [](Bytes c) { return Allocator::bfc(c, {.growth = true, .give_back_regions = true}); },
       256});
  for (const Kind& kind : all) {
    INFO(kind.name);
    Allocator memory = kind.make(Bytes{64 << 20});
    std::vector<MemoryBlock> held;
    held.reserve(200);
    std::uint64_t before = 0;
    for (int lap = 0; lap < 4; ++lap) {
      std::mt19937_64 random(10);  // the same lap each time; the first two warm up
      if (lap == 2) before = allocation_count();
      for (int step = 0; step < 5000; ++step) {
        if (held.size() < 200 && random() % 2 == 0) {
          const auto block =
              memory.allocate(Bytes{static_cast<std::int64_t>(random() % (1 << 20))});
          if (block) held.push_back(*block);
        } else if (!held.empty()) {
          std::swap(held[random() % held.size()], held.back());
          memory.free(held.back());
          held.pop_back();
        }
      }
      for (const MemoryBlock& block : held) memory.free(block);
      held.clear();
    }
    CHECK(allocation_count() == before);
  }
}

TEST_CASE("blocks are allocated together or not at all") {
  for (const Kind& kind : kinds()) {
    INFO(kind.name);
    // 4 units of 512 B. Two are taken; three more would need one more than there is, two do not.
    Allocator memory = kind.make(Bytes{2048});
    std::vector<MemoryBlock> two(2, MemoryBlock{.requested = Bytes{512}});
    std::vector<MemoryBlock> three(3, MemoryBlock{.requested = Bytes{512}});
    REQUIRE(memory.allocate_all(two));
    CHECK_FALSE(memory.allocate_all(three));
    check(memory.now(), 1024, 1024, 1024);
    check(memory.peak(), 1024, 1024, 1024);
    CHECK(memory.largest_free_block() == Bytes{1024});
    std::vector<MemoryBlock> rest(2, MemoryBlock{.requested = Bytes{512}});
    REQUIRE(memory.allocate_all(rest));
    check(memory.peak(), 2048, 2048, 2048);
    if (kind.alignment > 0) CHECK(rest[1].offset == Bytes{1536});
    for (const MemoryBlock& block : rest) memory.free(block);
    for (const MemoryBlock& block : two) memory.free(block);
    CHECK(memory.now().requested == Bytes{});
  }
}
