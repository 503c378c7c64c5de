// What processors draw that sleep, or whose operators differ: additive, and as claimed.
#include "support/chains.hpp"
#include "support/policies.hpp"

#include <random>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::Played;
using test::seconds;

/// `watts` x seconds.
Energy watt_seconds(std::int64_t count) {
  return Power{1'000'000'000} * count * seconds(1);
}

/// Three stages of 1 s; stage 1, of 2 B, goes out and back over 1 B/s: operators at [0,2), [3,5),
/// [6,8).
const test::Chain kChainWithGaps{{1, 1, 1}, {1, 1, 1}, {0, 0, 0, 0}, {2, 2, 2}, {}, {}};

Platform powered(const std::string& gpu) {
  return test::platform_of(
      "platform: p\nmemories:\n  hbm: {capacity: unlimited, bandwidth: 1 B/s}\n"
      "  dram: {capacity: unlimited}\nprocessors:\n  gpu: {memory: hbm, compute: {fp32: 1 FLOP/s}" +
      gpu + "}\nlinks:\n  bus: {between: [hbm, dram], bandwidth: 1 B/s}\n");
}

Energy energy_on(const std::string& gpu) {
  const Played it =
      test::play_policy("offload/all", test::chain_workload(kChainWithGaps), powered(gpu));
  REQUIRE(it.metrics.energy);
  REQUIRE(it.plan.claims.energy == it.metrics.energy->total);
  return it.metrics.energy->total;
}

/// Idle time beyond `after`, from the record of the run.
Time slept(const Played& it, Time after) {
  std::vector<std::pair<Time, Time>> busy;
  for (std::size_t s = 0; s < it.plan.steps.size(); ++s)
    if (it.plan.steps[s].kind == StepKind::compute)
      busy.emplace_back(it.execution.start[s], it.execution.end[s]);
  busy.emplace_back(it.execution.makespan, it.execution.makespan);
  std::ranges::sort(busy);
  Time sum, since;
  for (const auto& [start, end] : busy) {
    sum += std::max(start - since - after, Time{});
    since = end;
  }
  return sum;
}

}  // namespace

TEST_CASE("a processor that waits longer than sleep_after sleeps for the rest") {
  // 8 s at 10 W and 6 s at 20 W more: 200 J. Two gaps of 1 s; asleep for half of each at 2 W, it
  // saves 2 x 0.5 x 8 = 8 J; at once, 16 J; after a second, nothing.
  const std::string states = ", power: {idle: 10 W, active: 30 W, sleep: 2 W";
  CHECK(energy_on(states + "}") == watt_seconds(200));
  CHECK(energy_on(states + ", sleep_after: 500 ms}") == watt_seconds(192));
  CHECK(energy_on(states + ", sleep_after: 0 s}") == watt_seconds(184));
  CHECK(energy_on(states + ", sleep_after: 1 s}") == watt_seconds(200));
}

TEST_CASE("given times of operators are arithmetic at the first operating point") {
  // At half the clock each of the six operators takes 2 s, at 1 + 2 x 0.5 x 0.5^2 = 1.25 W; copies
  // of 2 s end with them, so that nothing waits: 12 s.
  const std::string points =
      ", operating_points: [{name: fast, clock: 2 GHz, voltage: 1 V}, {name: slow, clock: 1 GHz, "
      "voltage: 500 mV}], power: {idle: 1 W, active: 3 W}";
  CHECK(energy_on(points + ", operating_point: slow") == watt_seconds(15));
}

TEST_CASE("a cap that does not bind changes nothing") {
  const std::string states = ", voltage_floor: 0.8, power: {idle: 10 W, active: 30 W}";
  CHECK(energy_on(states + ", power_cap: 30 W") == watt_seconds(200));
  // 10 + 20 x 0.512 = 20.24 W at 0.8 of the clock: operators of 1.25 s. F1 F2 [0,2.5), copy out
  // [1.25,3.25), F3 B3 [3.25,5.75), copy in [4.5,6.5), B2 B1 [6.5,9): 10 x 9 + 10.24 x 7.5 = 166.8 J.
  CHECK(energy_on(states + ", power_cap: 20240 mW") == Energy{watt_seconds(1668).count() / 10});
}

TEST_CASE("peak power is that of the operator that draws most") {
  const Played it = test::play_policy(
      "none", test::chain_workload(kChainWithGaps),
      powered(", voltage_floor: 1, power: {idle: 10 W, active: 30 W}, power_cap: 25 W"));
  REQUIRE(it.metrics.energy->peak);
  CHECK(*it.metrics.energy->peak <= Power{25'000'000'000});
  CHECK(*it.metrics.energy->peak > Power{24'990'000'000});
}

TEST_CASE("flash wears by whole erase blocks, and by what its controller moves besides") {
  // One copy of 2 B erases a block of 4 B; half as much again is moved: 6 B of 10 x 100 B. Erasing
  // takes 1 s on top of the copy's 2 s.
  const auto played = [](const std::string& flash) {
    return test::play_policy(
        "offload/all", test::chain_workload(kChainWithGaps),
        test::platform_of(
            "platform: p\nmemories:\n  hbm: {capacity: unlimited}\n  flash: {capacity: "
            "100 B, endurance: 10" +
            flash +
            "}\nprocessors:\n  gpu: {memory: hbm}\nlinks:\n  bus: {between: [hbm, "
            "flash], bandwidth: 1 B/s}\n"));
  };
  const Played plain = played("");
  CHECK(*plain.metrics.memories[1].wear == Approx(0.002));
  const Played it = played(", erase: {block: 4 B, time: 1 s}, write_amplification: 150 %");
  CHECK(*it.metrics.memories[1].wear == Approx(0.006));
  CHECK(it.metrics.memories[1].bytes_written == Bytes{2});
  CHECK(it.execution.makespan == plain.execution.makespan + seconds(1));
}

TEST_CASE("energy is idle power throughout, less sleep, and what operators add") {
  std::mt19937 random(20241124);
  const auto upto = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most)) + 1;
  };
  for (int round = 0; round < 300; ++round) {
    test::Chain chain = test::equal_chain(4);
    for (std::size_t i = 0; i < chain.stages(); ++i) {
      chain.forward[i] = upto(9);
      chain.backward[i] = upto(9);
    }
    const std::int64_t idle = upto(20), more = upto(40), after = upto(5'000);
    const Platform platform = powered(fmt::format(
        ", voltage_floor: {} %, power: {{idle: {} W, active: {} W, sleep: {} mW, sleep_after: {} "
        "ms}}, power_cap: {} mW",
        upto(100), idle, idle + more, idle * upto(1'000), after,
        idle * 1'000 + 300 * more + upto(700 * more)));
    const Played it = test::play_policy("offload/all", test::chain_workload(chain), platform);
    const Processor& gpu = platform.processors[0];
    const Topology topology(platform);
    const Workload workload = test::chain_workload(chain);
    const Program program = lower(it.plan, workload, platform, topology);
    Energy sum = gpu.power->idle * it.execution.makespan;
    sum -= (gpu.power->idle - *gpu.power->sleep) * slept(it, Time{after * 1'000'000'000});
    for (std::uint32_t s = 0; s < it.plan.steps.size(); ++s)
      if (it.plan.steps[s].kind == StepKind::compute)
        sum += *program.power_above_idle(s) * (it.execution.end[s] - it.execution.start[s]);
    REQUIRE(it.metrics.energy->total == sum);
    REQUIRE(it.plan.claims.energy == sum);
  }
}

}  // namespace plimsoll
