// What a step costs beside its forwards and backwards: the optimizer, the host, and loading data.
#include "property/random_chains.hpp"
#include "support/library.hpp"
#include "support/policies.hpp"
#include "support/split_pipelines.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::Dice;
using test::Played;
using test::seconds;

struct Costs {
  std::int64_t forward = 1, backward = 2, overhead = 0;
  std::vector<std::int64_t> optimizer;  ///< by stage
};

std::string costs_chain(const Costs& costs) {
  std::string text = fmt::format("workload: w\nstep_overhead: {} s\nchain:\n", costs.overhead);
  for (std::size_t i = 0; i < costs.optimizer.size(); ++i)
    text += fmt::format(
        "  - {{name: s{}, forward: {} s, backward: {} s, optimizer_step: {} s, saved: 1 B}}\n", i,
        costs.forward, costs.backward, costs.optimizer[i]);
  return text;
}

Played played(const std::string& policy, const Costs& costs) {
  const Workload workload = test::workload_of(costs_chain(costs));
  const Platform platform = test::platform_of(test::row_yaml(std::ssize(costs.optimizer), "0 s"));
  Played run = test::play_policy(policy, workload, platform);
  REQUIRE(run.execution.status == RunStatus::ok);
  REQUIRE(run.plan.claims.makespan);
  test::require_claims_hold(run);
  return run;
}

/// Two devices with memory for all, whose data is in `store`.
std::string loading_platform(const std::string& link) {
  return "platform: two\nmemories:\n  hbm0: {capacity: unlimited}\n  hbm1: {capacity: unlimited}\n"
         "  store: {capacity: unlimited}\nprocessors:\n  gpu0: {memory: hbm0}\n"
         "  gpu1: {memory: hbm1}\nlinks:\n  wire: {between: [hbm0, hbm1]}\n"
         "  bus: {between: [store, hbm0], " +
         link + "}\n";
}

constexpr const char* kInputOfTwo =
    "workload: w\ninput: 2 B\nchain:\n"
    "  - {name: s0, forward: 1 s, backward: 2 s, saved: 1 B}\n"
    "  - {name: s1, forward: 1 s, backward: 2 s, saved: 1 B}\n";

Played loaded(const std::string& policy) {
  const Workload workload = test::workload_of(kInputOfTwo);
  const Platform platform = test::platform_of(loading_platform("bandwidth: 1 B/s"));
  Played run = test::play_policy(policy, workload, platform);
  REQUIRE(run.execution.status == RunStatus::ok);
  REQUIRE(run.plan.claims.makespan);
  test::require_claims_hold(run);
  return run;
}

std::string step_error(const std::string& policy, const std::string& platform) {
  try {
    (void)test::planned(policy, test::workload_of(kInputOfTwo), test::platform_of(platform));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a flush ends with the optimizer of each stage where it is, and the host's overhead") {
  // Device i of gpipe and 1f1b ends its last backward i B before the first device does, at
  // (m+p-1)(F+B); then it runs its own optimizer, and what the host takes.
  Dice dice(20261121);
  for (int round = 0; round < 300; ++round) {
    const std::int64_t p = dice(2, 6), m = dice(1, 12);
    Costs costs{dice(1, 9), dice(1, 9), dice(0, 9), {}};
    for (std::int64_t i = 0; i < p; ++i) costs.optimizer.push_back(dice(0, 30));
    const char* name = dice(0, 1) == 0 ? "gpipe" : "1f1b";
    CAPTURE(p, m, costs.forward, costs.backward, costs.overhead, costs.optimizer, name);
    const Played run =
        played(fmt::format("{{name: pipeline/{}, microbatches: {}}}", name, m), costs);
    const std::int64_t flush = (m + p - 1) * (costs.forward + costs.backward);
    std::int64_t makespan = 0, span = 0;
    for (std::int64_t i = 0; i < p; ++i) {
      const std::int64_t end = flush - i * costs.backward +
                               costs.optimizer[static_cast<std::size_t>(i)] + costs.overhead;
      makespan = std::max(makespan, end);
      span = std::max(span, end - i * costs.forward);  // of the first forward's start
      REQUIRE(run.metrics.processors[static_cast<std::size_t>(i)].busy ==
              seconds(m * (costs.forward + costs.backward) +
                      costs.optimizer[static_cast<std::size_t>(i)] + costs.overhead));
    }
    REQUIRE(run.execution.makespan == seconds(makespan));
    REQUIRE(run.execution.period == seconds(span));
  }
}

TEST_CASE("pipedream pays optimizer and host with every microbatch, one processor once a step") {
  const Costs costs{1, 2, 4, {3, 3, 3}};
  // Each microbatch is a mini-batch: F + B + optimizer + host on every device.
  CHECK(played("{name: pipeline/pipedream, microbatches: 12}", costs).execution.period ==
        seconds(1 + 2 + 3 + 4));
  // 3 (F + B), three optimizers, and the host once.
  for (const char* policy : {"none", "remat/sqrt"}) {
    const Workload workload = test::workload_of(costs_chain(costs));
    const Platform platform = test::platform_of(test::row_yaml(1, "0 s"));
    const Played run = test::play_policy(policy, workload, platform);
    test::require_claims_hold(run);
    const std::int64_t again = run.metrics.processors[0].recomputed_ops;
    CHECK(run.execution.makespan == seconds(3 * 3 + again * 1 + 3 * 3 + 4));
  }
}

TEST_CASE("inputs are loaded when a device has nothing else to do, or ahead") {
  // gpipe, three microbatches of 2 B at 1 B/s. Ahead 0: loads [0,2), [3,5), [6,8) in front of
  // forwards [2,3), [5,6), [8,9); the second device's end at 4, 7, 10, its backwards at 12, 14, 16,
  // those of the first 2 s later.
  CHECK(loaded("{name: pipeline/gpipe, microbatches: 3, load_from: store, load_ahead: 0}")
            .execution.makespan == seconds(18));
  // Ahead 1: the second load begins with the first forward: [0,2), [2,4), [4,6), so the last
  // forward of the first device is [6,7), and all that follows 2 s earlier.
  CHECK(loaded("{name: pipeline/gpipe, microbatches: 3, load_from: store}").execution.makespan ==
        seconds(16));
  // In place from the start: (m+p-1)(F+B).
  CHECK(loaded("{name: pipeline/gpipe, microbatches: 3}").execution.makespan == seconds(12));
}

TEST_CASE("inputs that are loaded take room from their copy to their last reader") {
  // 1f1b, six microbatches: F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 B5 on the first device; each B leaves
  // 2 B of delta_0. With all inputs in place, B5 begins on 12 B of them, 12 B of delta_0 and 1 B
  // saved. Loaded, the most is at B4: delta_0 of five, inputs and saved of the two in flight.
  const auto peak = [](const Played& run) { return run.peak(MemoryId{0}); };
  CHECK(peak(loaded("{name: pipeline/1f1b, microbatches: 6}")) == 12 + 12 + 1);
  CHECK(peak(loaded("{name: pipeline/1f1b, microbatches: 6, load_from: store}")) == 10 + 4 + 2);
}

TEST_CASE("both devices of a bidirectional pipeline load their own microbatches") {
  // Chimera, one unit of two: one down, one up; each begins on its own device and reads a_0 there.
  const Workload workload = test::workload_of(kInputOfTwo);
  const Platform platform = test::platform_of(
      "platform: two\nmemories:\n  hbm0: {capacity: unlimited}\n  hbm1: {capacity: unlimited}\n"
      "  store: {capacity: unlimited}\nprocessors:\n  gpu0: {memory: hbm0}\n"
      "  gpu1: {memory: hbm1}\nlinks:\n  wire: {between: [hbm0, hbm1]}\n"
      "  bus0: {between: [store, hbm0], bandwidth: 1 B/s}\n"
      "  bus1: {between: [store, hbm1], bandwidth: 1 B/s}\n");
  const Played run = test::play_policy(
      "{name: pipeline/chimera, microbatches: 2, load_from: store}", workload, platform);
  test::require_claims_hold(run);
  const auto moved = [&](std::size_t link) { return run.metrics.links[link].bytes[0].count(); };
  CHECK(moved(1) == 2);
  CHECK(moved(2) == 2);
  // Without loading 2(F+B) = 6: the units of two devices idle p-2 = 0 slots.
  CHECK(run.execution.makespan == seconds(6 + 2));
}

TEST_CASE("networks load token ids, and pay for the host beside their optimizer") {
  // Of gpt2-small only the token embedding reads an input, so that only the first device loads.
  const auto workload = [](Time overhead) {
    return build(
        test::library_network("gpt2-small"),
        WorkloadOptions{
            .batch = 4, .microbatch = 1, .optimizer = Optimizer::adamw, .step_overhead = overhead});
  };
  const Platform platform = test::library_platform("dgx-1-v100");
  const Workload bare = workload(Time{}), with_host = workload(seconds(1));
  const std::string policy =
      "{name: pipeline/1f1b, microbatches: 4, devices: [gpu0, gpu1, gpu2, gpu3]";
  const Played without = test::play_policy(policy + "}", bare, platform);
  const Played with = test::play_policy(policy + "}", with_host, platform);
  test::require_claims_hold(with);
  // It comes last on every device.
  CHECK(with.execution.makespan == without.execution.makespan + seconds(1));
  for (std::size_t gpu = 0; gpu < 4; ++gpu)
    CHECK(with.metrics.processors[gpu].busy == without.metrics.processors[gpu].busy + seconds(1));
  const Played loaded = test::play_policy(policy + ", load_from: dram}", bare, platform);
  CHECK(loaded.execution.status == RunStatus::ok);
  CHECK(loaded.execution.makespan > without.execution.makespan);
  const auto copies_from = [&](const char* name) {
    const MemoryId from = *platform.find_memory(name);
    return std::ranges::count_if(loaded.plan.steps, [&](const Step& step) {
      return step.kind == StepKind::copy && loaded.plan[step.lane].from == from;
    });
  };
  CHECK(copies_from("dram") == 4);  // one for each microbatch
}

TEST_CASE("what cannot be loaded is refused") {
  using Catch::Matchers::Contains;
  const std::string platform = loading_platform("bandwidth: 1 B/s");
  CHECK_THAT(step_error("{name: pipeline/1f1b, load_from: stor}", platform),
             Contains("has no memory `stor`") && Contains("did you mean `store`"));
  CHECK_THAT(step_error("{name: pipeline/1f1b, load_ahead: 2}", platform),
             Contains("`load_ahead` belongs to `load_from`"));
  CHECK_THAT(step_error("{name: pipeline/1f1b, devices: [gpu1, gpu0], load_from: store}",
                        "platform: p\nmemories:\n  hbm0: {capacity: unlimited}\n"
                        "  hbm1: {capacity: unlimited}\n  store: {capacity: unlimited}\n"
                        "processors:\n  gpu0: {memory: hbm0}\n  gpu1: {memory: hbm1}\n"
                        "links:\n  wire: {between: [hbm0, hbm1]}\n"),
             Contains("no link joins `store` and `hbm1`"));
  CHECK_THAT(
      step_error("{name: pipeline/1f1b, data_parallel: 2, microbatches: 2, load_from: store}",
                 platform),
      Contains("copies from the host would meet") && Contains("`replicas: 2`"));
}

}  // namespace plimsoll
