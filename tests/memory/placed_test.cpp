// A memory in which every block lies where a placement said.
#include "memory/allocator.hpp"
#include "memory/fragmentation.hpp"

#include <array>
#include <vector>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using State = MemoryPiece::State;

/// Of 64 B in units of 8: 10 B at 0, 20 B at 16, and, where the first was, 5 B at 8.
Allocator three_placed(Bytes capacity = Bytes{64}) {
  return Allocator::placed(capacity, Bytes{8},
                           {{Bytes{10}, Bytes{0}}, {Bytes{20}, Bytes{16}}, {Bytes{5}, Bytes{8}}});
}

}  // namespace

TEST_CASE("placed blocks get their addresses in the order of requests") {
  Allocator memory = three_placed();
  const auto first = memory.allocate(Bytes{10});
  const auto nothing = memory.allocate(Bytes{});  // takes no address
  const auto second = memory.allocate(Bytes{20});
  REQUIRE((first && nothing && second));
  CHECK(first->offset == Bytes{0});
  CHECK(second->offset == Bytes{16});
  // 10 B take 16, 20 B take 24; the placement ends at 16 + 24.
  CHECK(memory.now() == MemoryUse{Bytes{30}, Bytes{40}, Bytes{40}});
  memory.free(*first);
  memory.free(*nothing);
  const auto third = memory.allocate(Bytes{5});
  REQUIRE(third);
  CHECK(third->offset == Bytes{8});
  // [0, 8) is free now, [8, 16) and [16, 40) are taken.
  const std::vector<MemoryPiece> expected{{0, Bytes{0}, Bytes{8}, State::free, UINT32_MAX},
                                          {0, Bytes{8}, Bytes{8}, State::in_use, 2},
                                          {0, Bytes{16}, Bytes{24}, State::in_use, 1}};
  CHECK(memory.pieces() == expected);
  CHECK(memory.piece_of(*third) == expected[1]);
  CHECK(memory.counters().inactive_split == Bytes{8});
  const std::array held{*second, *third};
  // Rounding: 24 - 20 and 8 - 5. The hole is what is free below the end.
  CHECK(gaps_of(memory, held) == MemoryGaps{Bytes{7}, Bytes{0}, Bytes{8}});
  memory.free(*second);
  memory.free(*third);
  CHECK(memory.now() == MemoryUse{Bytes{0}, Bytes{0}, Bytes{40}});
  CHECK(memory.peak() == MemoryUse{Bytes{30}, Bytes{40}, Bytes{40}});
}

TEST_CASE("placed blocks are granted by bytes, all of a step or none") {
  // 10 + 20 B exceed 29: nothing is taken, and the next request still gets the first address.
  Allocator memory = three_placed(Bytes{29});
  std::array<MemoryBlock, 2> both{MemoryBlock{.requested = Bytes{10}},
                                  MemoryBlock{.requested = Bytes{20}}};
  CHECK_FALSE(memory.allocate_all(both));
  CHECK(memory.free_bytes() == Bytes{29});
  const auto first = memory.allocate(Bytes{10});
  REQUIRE(first);
  CHECK(first->offset == Bytes{0});
  CHECK_FALSE(memory.allocate(Bytes{20}));
  CHECK(memory.largest_free_block() == Bytes{19});
}

}  // namespace plimsoll
