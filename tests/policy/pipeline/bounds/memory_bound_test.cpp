// What a device has to wait for within a limit on what it keeps.
#include "policy/pipeline/bounds/knapsack_bound.hpp"
#include "policy/pipeline/bounds/makespan_bound.hpp"
#include "policy/pipeline/partition/placement.hpp"
#include "policy/pipeline/search/list_heuristic.hpp"
#include "property/random_chains.hpp"

#include <array>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::Dice;

/// The most that fits, by trying all.
std::int64_t most_of(const std::vector<KnapsackItem>& goods, std::size_t kind, std::int64_t room) {
  if (kind == goods.size()) return 0;
  std::int64_t most = 0;
  const KnapsackItem& it = goods[kind];
  for (std::int64_t n = 0; n <= it.count && n * it.size <= room; ++n)
    most = std::max(most, n * it.worth + most_of(goods, kind + 1, room - n * it.size));
  return most;
}

/// Equal stages in a row: times in ps, bytes.
struct PublishedRow {
  std::uint32_t devices = 1, microbatches = 1;
  std::int64_t forward = 1, backward = 1, weight = 1, message = 0;
  std::int64_t saved = 1, held = 1;

  [[nodiscard]] SlotCosts costs() const {
    const SlotCosts::Slot slot{Time{forward}, Time{backward}, Time{weight}, Time{message},
                               Time{message}, Bytes{saved},   Bytes{held}};
    return {loop_placement(devices, 1), devices, std::vector(devices, slot)};
  }
  [[nodiscard]] TaskNetwork network() const {
    return task_network(costs(), SlotSlack{std::vector<SlotSlack::Times>(devices)}, microbatches,
                        std::vector<Time>(devices), true);
  }
  [[nodiscard]] Time bound(std::int64_t limit) const {
    return makespan_bound(network(), std::vector(devices, limit));
  }
};

}  // namespace

TEST_CASE("a knapsack holds no more than its bound, which is met by one kind") {
  Dice dice(20261123);
  int met = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<KnapsackItem> goods;
    for (std::int64_t kinds = dice(1, 3); kinds > 0; --kinds)
      goods.push_back({dice(0, 6), dice(0, 9), dice(0, 4)});
    const std::int64_t room = dice(0, 30);
    const std::int64_t most = most_of(goods, 0, room), bound = knapsack_bound(goods, room);
    CAPTURE(round, room, goods.size());
    REQUIRE(bound >= most);
    if (goods.size() == 1) REQUIRE(bound == most);
    met += bound == most ? 1 : 0;
  }
  CHECK(met > 1500);
}

TEST_CASE("what 1F1B keeps leaves the first of equal devices idle for both ends") {
  // 8 devices, 24 microbatches, F = 30, B = 20, W = 10, messages of 1; all is held. The first
  // backward of device 0 begins after 8 F, 7 B and 14 messages, 8 F fit: idle for 7 (B + 2).
  // From the end of its last forward 7 F, 8 B, 14 messages and a W, in which 8 B and 8 W fit:
  // idle for 7 (F - W + 2).
  PublishedRow row{.devices = 8, .microbatches = 24, .forward = 30, .backward = 20, .weight = 10};
  row.message = 1;
  CHECK(row.bound(8) == Time{24 * 60 + 7 * (20 + 2) + 7 * (30 - 10 + 2)});
  // Where the backward frees four fifths, weight halves fit in place of backwards. Beside the last
  // microbatch, which saves 5 of 40 and is worth 30, all 23 others hold 1 each and are worth 10,
  // and the 12 that are left let three of them save 5, worth 20 more: 320 of 394.
  row.saved = 5;
  CHECK(row.bound(40) == Time{24 * 60 + 7 * (20 + 2) + 394 - 320});
  // Without a limit the last device counts, which begins after 7 forwards and messages.
  CHECK(row.bound(INT64_MAX) == Time{24 * 60 + 7 * (30 + 1)});
}

TEST_CASE("on published stage times zb-1p is as short as its limit allows") {
  // Qi et al. 2024, arXiv:2401.10241: times of Table 9 in us, bytes a layer of Table 1.
  const auto row = [](std::uint32_t p, std::uint32_t m, const std::array<std::int64_t, 4>& times,
                      std::int64_t tokens, std::int64_t hidden, std::int64_t heads) {
    const auto [forward, backward, weight, message] = times;
    return PublishedRow{p,
                        m,
                        forward,
                        backward,
                        weight,
                        message,
                        tokens * (34 * hidden + 5 * heads * 1024),
                        tokens * 32 * hidden};
  };
  const std::array rows{row(8, 24, {18522, 18086, 9337, 601}, 6 * 1024, 2304, 24),
                        row(8, 64, {18546, 18097, 9321, 762}, 6 * 1024, 2304, 24),
                        row(8, 32, {29802, 29428, 19530, 577}, 3 * 1024, 4096, 32),
                        row(16, 48, {11347, 11248, 8132, 377}, 1024, 5120, 40),
                        row(16, 128, {11325, 11308, 8109, 378}, 1024, 5120, 40),
                        row(32, 128, {10408, 10204, 7703, 408}, 1024, 6144, 48)};
  for (const PublishedRow& it : rows) {
    CAPTURE(it.devices, it.microbatches);
    const std::int64_t limit = it.devices * it.saved;
    const TaskNetwork network = it.network();
    Time shortest = Time::unlimited();
    for (const Schedule& schedule :
         list_schedules(it.costs(), it.microbatches, std::vector(it.devices, Bytes{limit}))) {
      const TaskOrders orders = orders_of(network, schedule);
      REQUIRE(keeps_to(network, orders, std::vector(it.devices, limit)));
      shortest = std::min(shortest, Time{OrderEvaluator(network).evaluate(orders)->makespan});
    }
    CHECK(shortest == it.bound(limit));
    CHECK(it.bound(limit) > it.bound(INT64_MAX));
  }
}

TEST_CASE("where less fits than a round trip takes, microbatches take turns") {
  // 4 devices, F = B = W = 10, no messages: a round trip of device 0 takes 80. One microbatch
  // fits, and is held until its weight half, which a second forward waits for: 5 times 80 + 10.
  PublishedRow row{.devices = 4, .microbatches = 5, .forward = 10, .backward = 10, .weight = 10};
  CHECK(row.bound(1) == Time{5 * 90});
  // Nothing is held: the turns follow each other, and the last one ends with a weight half.
  row.held = 0;
  CHECK(row.bound(1) == Time{5 * 80 + 10});
  // Two fit: forwards 1, 3 and 5 are 80 and, with what is held, 10 apart.
  row.held = 1;
  CHECK(row.bound(2) == Time{2 * 90 + 80 + 10});
}

TEST_CASE("what is kept on two chunks of a device has to go through its limit") {
  // Four devices with two chunks each in a loop, all tasks 10, everything held, 9 microbatches,
  // room for two chunks. Forwards and backwards of a microbatch are 16 tasks, so that the first
  // and the fifth chunk, those of device 0, keep for 140 and 60 between theirs: 9 x 200 / 2 goes
  // by. Before that is a forward, after it a backward and a weight half.
  const SlotCosts::Slot slot{Time{10}, Time{10}, Time{10}, Time{}, Time{}, Bytes{1}, Bytes{1}};
  const SlotCosts costs{loop_placement(4, 2), 4, std::vector(8, slot)};
  const TaskNetwork network = task_network(costs, SlotSlack{std::vector<SlotSlack::Times>(8)}, 9,
                                           std::vector<Time>(4), true);
  CHECK(makespan_bound(network, std::vector<std::int64_t>(4, 2)) == Time{10 + 900 + 20});
}

}  // namespace plimsoll
