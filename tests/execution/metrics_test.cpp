// What runs cost: energy, throughput, recomputation.
#include "support/chains.hpp"
#include "support/policies.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::Named;
using test::Played;
using test::seconds;

/// `watts` x seconds.
Energy joules(std::int64_t count) {
  return Power{1'000'000'000} * count * seconds(1);
}

/// The run of waiting_test.cpp: three stages of 1 s, saved 2 B, stage 1 offloaded over 1 B/s.
const test::Chain kChain{{1, 1, 1}, {1, 1, 1}, {0, 0, 0, 0}, {2, 2, 2}, {}, {}};

std::string platform_text(const std::string& dram, const std::string& link) {
  return "platform: p\nbattery: {energy: 9 kJ, usable: 50 %}\n"
         "energy: {boundary: board, regulator_efficiency: 80 %}\n"
         "memories:\n  hbm: {capacity: unlimited, power: {idle: 1 W, active: 2 W}}\n"
         "  dram: {capacity: unlimited" +
         dram +
         "}\nprocessors:\n  gpu: {memory: hbm, power: {idle: 10 W, active: 30 W}}\n"
         "links:\n  bus: {between: [hbm, dram], bandwidth: 1 B/s" +
         link + "}\n";
}

}  // namespace

TEST_CASE("energy: states over time, actions by the byte, the regulator on top") {
  // 8 s; gpu busy 6 s: 10 x 8 + 20 x 6 = 200 J. hbm is at work with an operator or a copy all the
  // time: F1 F2 [0,2), copy [1,3), F3 B3 [3,5), copy [4,6), B2 B1 [6,8): 1 x 8 + 1 x 8 = 16 J.
  // dram: 2 B x 2 J + 2 B x 1 J = 6 J. bus: 4 B x 0.5 J = 2 J. Together 224 J; at the source
  // 224 / 0.8 = 280 J, so the regulator loses 56 J. Average 280 J / 8 s = 35 W; the battery gives
  // 4500 J: 16 steps.
  const Platform platform = test::platform_of(platform_text(
      ", write: {energy: 2000 mJ/B}, read: {energy: 1000 mJ/B}", ", energy: 500 mJ/B"));
  const Played it = test::play_policy("offload/all", test::chain_workload(kChain), platform);
  REQUIRE(it.metrics.energy);
  const EnergyMetrics& energy = *it.metrics.energy;
  using Component = std::pair<std::string, Energy>;
  CHECK(energy.components == std::vector<Component>{{"gpu", joules(200)},
                                                    {"hbm", joules(16)},
                                                    {"dram", joules(6)},
                                                    {"bus", joules(2)},
                                                    {"regulator", joules(56)}});
  // Above 10 W of the gpu and 1 W of hbm: forwards and backwards 20 W x 3 s each, hbm 1 W x 8 s.
  PhaseEnergies phases{};
  const auto set = [&](EnergyPhase phase, Energy part) {
    phases[static_cast<std::size_t>(phase)] = part;
  };
  set(EnergyPhase::forward, joules(60));
  set(EnergyPhase::backward, joules(60));
  set(EnergyPhase::memory, joules(8));
  set(EnergyPhase::copies, joules(8));
  set(EnergyPhase::idle, joules(88));
  set(EnergyPhase::regulator, joules(56));
  CHECK(energy.phases == phases);
  CHECK(energy.total == joules(280));
  CHECK(energy.per_sample == joules(280));
  CHECK(energy.average == Power{35'000'000'000});
  CHECK_FALSE(energy.peak);  // work that is charged by the action has no power
  CHECK(energy.steps_per_battery == 16);
  CHECK(energy.samples_per_battery == 16);
}

TEST_CASE("peak power is the greatest sum of the components' states, at the source") {
  // dram 0.5 W, 1 W with a copy; bus 0.5 W, 1.5 W. Most at once: gpu 30, hbm 2, dram 1, bus 1.5:
  // 34.5 W while a copy runs beside an operator; at the source 34.5 / 0.8 = 43.125 W.
  const Platform platform = test::platform_of(platform_text(
      ", power: {idle: 500 mW, active: 1 W}", ", power: {idle: 500 mW, active: 1500 mW}"));
  const Played it = test::play_policy("offload/all", test::chain_workload(kChain), platform);
  REQUIRE(it.metrics.energy->peak);
  CHECK(*it.metrics.energy->peak == Power{43'125'000'000});
  // Copies take 4 of the 8 s: dram 0.5 x 8 + 0.5 x 4 = 6 J, bus 0.5 x 8 + 1 x 4 = 8 J.
  CHECK(it.metrics.energy->components[2].second == joules(6));
  CHECK(it.metrics.energy->components[3].second == joules(8));
}

TEST_CASE("energy that a workload gives is charged for every run of an operator") {
  // Two stages of 1 J forward, 2 J backward; every stage but the last runs forward twice: 7 J.
  const Workload workload = test::workload_of(
      "workload: w\nbatch: 4\nchain:\n"
      "  - {name: s1, forward: 1 s, backward: 1 s, saved: 2 B, energy: {forward: 1 J, backward: 2 "
      "J}}\n"
      "  - {name: s2, forward: 1 s, backward: 1 s, saved: 2 B, energy: {forward: 1 J, backward: 2 "
      "J}}\n");
  const Played it = test::play_policy("remat/every-stage", workload, test::one_gpu({}));
  REQUIRE(it.metrics.energy);
  CHECK(it.metrics.energy->total == joules(7));
  CHECK(it.metrics.energy->per_sample == Energy{joules(7).count() / 4});
  CHECK_FALSE(it.metrics.energy->steps_per_battery);
}

TEST_CASE("without any power or energy there is none in the result") {
  const Played it = test::play_policy("none", test::chain_workload(kChain), test::one_gpu({}));
  CHECK_FALSE(it.metrics.energy);
}

TEST_CASE("throughput of iterations in a row: the first one whole, the others a period each") {
  // F [0,1), B [1,2) on the gpu; a copy of a_0 (20 B) to dram takes 20 s. Makespan 20 s, span 2 s.
  // Three iterations of 4 samples: 12 / (20 + 2 x 2) s.
  const Workload workload = test::workload_of(
      "workload: w\nbatch: 4\ninput: 20 B\nchain:\n"
      "  - {name: s1, forward: 1 s, backward: 1 s, saved: 2 B}\n");
  const Platform platform = test::one_gpu({});
  const Named named(workload, platform);
  PlanBuilder builder(workload, platform, "test");
  const LaneId stream = builder.stream(ProcessorId{0});
  builder.compute(stream, named.op("s1.forward"));
  builder.compute(stream, named.op("s1.backward"));
  builder.copy(builder.channel(MemoryId{0}, MemoryId{1}), named.tensor("input"), 0,
               SourceRelease::keep);
  const Played it = test::play(builder.finish(), workload, platform, 3);
  CHECK(it.metrics.makespan == seconds(20));
  CHECK(it.metrics.period == seconds(2));
  CHECK(*it.metrics.throughput == Approx(12.0 / 24));
  CHECK(it.metrics.links[0].busy->at(0) == 1.0);
}

TEST_CASE("recomputed operators are forward runs beyond the first, those in pairs among them") {
  // Two microbatches of one stage; the forward of the first runs again together with the backward
  // of the second.
  const Workload workload = test::workload_of(
      "workload: w\nchain:\n  - {name: s, forward: 1 s, backward: 1 s, saved: 2 B}\n");
  const Platform platform = test::one_gpu({});
  const Named named(workload, platform);
  const OperatorId forward = named.op("s.forward"), backward = named.op("s.backward");
  PlanBuilder builder(workload, platform, "test");
  const LaneId stream = builder.stream(ProcessorId{0});
  builder.compute(stream, forward, 0);
  builder.release(named.tensor("s.saved"), 0, MemoryId{0});
  builder.compute(stream, forward, 1);
  builder.pair(stream, {backward, 1, Form::keep}, {forward, 0, Form::keep}, seconds(1));
  builder.compute(stream, backward, 0);
  const Played it = test::play(builder.finish(), workload, platform);
  CHECK(it.metrics.processors[0].recomputed_ops == 1);
}

TEST_CASE("wear is the share of the endurance that one iteration uses") {
  // 2 B written to a card of 100 B that takes 10 writes a block: 2 / 100 / 10.
  const Platform platform = test::platform_of(
      "platform: p\nmemories:\n  hbm: {capacity: unlimited}\n  sd: {capacity: 100 B, endurance: "
      "10}\nprocessors:\n  gpu: {memory: hbm}\nlinks:\n  bus: {between: [hbm, sd]}\n");
  const Played it = test::play_policy("offload/all", test::chain_workload(kChain), platform);
  CHECK(*it.metrics.memories[1].wear == Approx(0.002));
  CHECK_FALSE(it.metrics.memories[0].wear);
}

}  // namespace plimsoll
