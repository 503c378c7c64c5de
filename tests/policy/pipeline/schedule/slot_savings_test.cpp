// Recomputation and offload inside the slots of a pipeline, with every schedule.
#include "property/random_chains.hpp"
#include "support/library.hpp"
#include "support/oracles.hpp"
#include "support/policies.hpp"
#include "support/scheduled_pipelines.hpp"
#include "support/split_pipelines.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::Dice;
using test::kSchedules;
using test::Played;
using test::policy_of;
using test::random_split_chain;
using test::ring_with_host;
using test::Scheduled;
using test::seconds;

Played played_with_savings(const std::string& policy, const std::string& chain,
                           const Platform& platform) {
  WorkloadOptions options;
  options.split_backward = test::bound_policy(policy).splits_backward;
  Played run = test::play_policy(policy, test::workload_of(chain, options), platform);
  REQUIRE(run.execution.status == RunStatus::ok);
  test::require_claims_hold(run);
  return run;
}

std::int64_t recomputed(const Played& run) {
  std::int64_t sum = 0;
  for (const ProcessorMetrics& it : run.metrics.processors) sum += it.recomputed_ops;
  return sum;
}

/// Bytes that went to the host, and came back.
std::array<std::int64_t, 2> offloaded(const Played& run) {
  std::array<std::int64_t, 2> sums{};
  for (const LinkMetrics& link : run.metrics.links)
    if (link.name.starts_with("pcie"))
      for (const std::size_t way : {0U, 1U}) sums[way] += link.bytes[way].count();
  return sums;
}

std::string savings_error(const std::string& policy, const std::string& platform) {
  try {
    (void)played_with_savings(policy, test::split_chain_yaml(4, {"1 s", "1 s", "1 s"}),
                              test::platform_of(platform));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("1f1b with full recomputation: (p-1)(F+BW) + m(2F+BW), one saved beside the inputs") {
  // A device's recomputation needs no gradient, so it fills the time in which the device waits for
  // one, and the drain is p-1 backwards. Device i > 0 holds the inputs of the p-i microbatches in
  // flight, the one that has arrived, and what the one that is recomputed keeps; device 0's inputs
  // are those of the step, 0 B here. A recomputation starts when a forward has ended, whose output
  // is there for another round, until its message has left.
  Dice dice(20251121);
  for (int round = 0; round < 200; ++round) {
    const std::int64_t p = dice(1, 6), m = dice(1, 12), F = dice(1, 9), B = dice(1, 9);
    const std::int64_t output = dice(1, 3), saved = output + dice(0, 4);
    CAPTURE(p, m, F, B, output, saved);
    std::string chain = "workload: w\nchain:\n";
    for (std::int64_t i = 0; i < p; ++i)
      chain += fmt::format(
          "  - {{name: s{}, forward: {} s, backward: {} s, output: {} B, saved: {} "
          "B, gradient: 0 B}}\n",
          i, F, B, output, saved);
    const Played run = played_with_savings(
        fmt::format("{{name: pipeline/1f1b, microbatches: {}, recompute: full}}", m), chain,
        test::platform_of(test::row_yaml(p, "0 s")));
    REQUIRE(run.plan.claims.makespan == seconds((p - 1) * (F + B) + m * (2 * F + B)));
    for (std::int64_t i = 0; i < p; ++i) {
      const auto device = static_cast<std::uint32_t>(i);
      REQUIRE(run.metrics.processors[device].busy == seconds(m * (2 * F + B)));
      REQUIRE(run.metrics.processors[device].recomputed_ops == m);
      const std::int64_t inputs = i == 0 ? 0 : std::min(m, p - i + 1);
      const std::int64_t outputs = i + 1 < p ? 1 : 0;
      REQUIRE(run.peak(MemoryId{device}) == (inputs + outputs) * output + saved);
    }
  }
}

TEST_CASE("slots that are listed recompute, the others keep") {
  const std::string chain = test::split_chain_yaml(4, {"1 s", "1 s", "1 s", 3, 3});
  const Played run =
      played_with_savings("{name: pipeline/1f1b, microbatches: 5, recompute: [0, 2]}", chain,
                          test::platform_of(test::row_yaml(4, "0 s")));
  for (const std::uint32_t device : {0U, 1U, 2U, 3U})
    CHECK(run.metrics.processors[device].recomputed_ops == (device % 2 == 0 ? 5 : 0));
  // Without outputs, what recomputes keeps nothing until then; device 1 keeps three microbatches.
  CHECK(run.peak(MemoryId{0}) == 3);
  CHECK(run.peak(MemoryId{1}) == 9);
}

TEST_CASE("offload by hand: four chunks of one device leave and come back") {
  // F = BW = 2 s, 2 B each, 1 B/s. F(0..3) [0,8). What slot s keeps is first read by the backward
  // of slot s+1, so that at a distance of 1 slots 0 to 2 go, and 3 stays. Out: [2,4), [4,6), [6,8),
  // beside the forwards that read them. Slot 2 is sent for at the start of F3, 6, but is gone only
  // at 8: back [8,10). So B3 [10,12), slot 1 back [10,12); B2 [12,14), slot 0 back; B1, B0 until
  // 18. At most three are there from 10 on: 6 B.
  const std::string chain = test::split_chain_yaml(4, {"2 s", "1 s", "1 s", 2, 2});
  const Platform platform = test::platform_of(ring_with_host(1, "bandwidth: 1 B/s"));
  const std::string policy = "{name: pipeline/looped-bfs, virtual_stages: 4";
  const Played run = played_with_savings(policy + ", offload: all, distance: 1}", chain, platform);
  CHECK(run.execution.makespan == seconds(18));
  CHECK(run.plan.claims.makespan == seconds(18));
  CHECK(run.peak(MemoryId{1}) == 6);
  CHECK(offloaded(run) == std::array<std::int64_t, 2>{6, 6});
  CHECK(played_with_savings(policy + "}", chain, platform).peak(MemoryId{1}) == 8);
  // A slot alone, at the same times: 16 s and 6 B, as slot 0 is away while slots 2 and 3 are made.
  const Played one = played_with_savings(policy + ", offload: [0], distance: 1}", chain, platform);
  CHECK(one.execution.makespan == seconds(16));
  CHECK(one.peak(MemoryId{1}) == 6);
  CHECK(offloaded(one) == std::array<std::int64_t, 2>{2, 2});
}

TEST_CASE("a share of the microbatches is offloaded, evenly spread") {
  const std::string chain = test::split_chain_yaml(4, {"2 s", "1 s", "1 s", 3, 3});
  const Platform platform = test::platform_of(ring_with_host(4, "bandwidth: unlimited"));
  const auto moved = [&](const std::string& offload) {
    return offloaded(played_with_savings(
        "{name: pipeline/gpipe, microbatches: 12, offload: " + offload + "}", chain, platform))[0];
  };
  // GPipe: 12 forwards, then 12 backwards, so at a distance of 2 the eleventh and all before it go:
  // the last one's backward is 23 - 11 > 2 tasks after its forward, too.
  CHECK(moved("all") == 4 * 12 * 3);
  CHECK(moved("25 %") == 4 * 3 * 3);
  CHECK(moved("0.5") == 4 * 6 * 3);
  CHECK(moved("none") == 0);
  CHECK(moved("[1, 3]") == 2 * 12 * 3);
}

TEST_CASE("offload lowers peaks without a cost where links are fast") {
  // 1F1B on four devices: device i keeps 4-i. At F = BW = 2 s and copies of 1 s, what is sent for
  // when the task before its backward starts is back in time. At most three are there: what a
  // backward reads, what is back for the next one, and what the forward before leaves behind.
  const std::string chain = test::split_chain_yaml(4, {"2 s", "1 s", "1 s", 2, 2});
  const Platform platform = test::platform_of(ring_with_host(4, "bandwidth: 2 B/s"));
  const Played kept =
      played_with_savings("{name: pipeline/1f1b, microbatches: 12}", chain, platform);
  const Played run = played_with_savings(
      "{name: pipeline/1f1b, microbatches: 12, offload: all, distance: 1}", chain, platform);
  CHECK(run.execution.makespan == kept.execution.makespan);
  CHECK(kept.peak(MemoryId{1}) == 8);
  CHECK(run.peak(MemoryId{1}) == 6);
  CHECK(run.peak(MemoryId{4}) == 2);
}

TEST_CASE("every schedule recomputes and offloads, as claimed") {
  Dice dice(20251123);
  int claims = 0, runs = 0;
  for (int round = 0; round < 12; ++round)
    for (const Scheduled& schedule : kSchedules) {
      const std::string chain = random_split_chain(dice, schedule.slots + dice(0, 2));
      const std::string half = dice(0, 3) == 0 ? ", duplex: half" : "";
      const Platform platform = test::platform_of(
          ring_with_host(4, fmt::format("bandwidth: {} B/s{}", dice(1, 4), half)));
      CAPTURE(schedule.name, chain, half);
      // One cut, whatever is saved.
      const std::string cut = ", partition: pipedream";
      const Played plain = played_with_savings(policy_of(schedule, cut), chain, platform);
      for (const char* recompute : {"none", "full", "[1, 2]"})
        for (const char* offload : {"none", "all", "40 %"}) {
          CAPTURE(recompute, offload);
          const Played run = played_with_savings(
              policy_of(schedule, fmt::format("{}, recompute: {}, offload: {}, distance: {}", cut,
                                              recompute, offload, dice(1, 3))),
              chain, platform);
          const auto [out, back] = offloaded(run);
          CHECK(out == back);
          if (offload == std::string("none")) CHECK(out == 0);
          if (recompute == std::string("none")) {
            CHECK(recomputed(run) == 0);
            // Nothing but waits is added.
            CHECK(run.execution.makespan >= plain.execution.makespan);
            for (std::size_t d = 0; d < 4; ++d)
              CHECK(run.metrics.processors[d].busy == plain.metrics.processors[d].busy);
          }
          claims += run.plan.claims.makespan.has_value() ? 1 : 0;
          ++runs;
        }
    }
  // Where the two ways of a link share a direction, an order of copies may be uncertain.
  CHECK(claims > runs * 3 / 4);
}

TEST_CASE("full recomputation runs every forward once more") {
  Dice dice(20251124);
  for (const Scheduled& schedule : kSchedules) {
    const std::int64_t stages = schedule.slots + dice(0, 2);
    const std::string chain = random_split_chain(dice, stages);
    INFO(schedule.name);
    const Played run =
        played_with_savings(policy_of(schedule, ", recompute: full"), chain,
                            test::platform_of(ring_with_host(4, "bandwidth: 1 B/s")));
    CHECK(recomputed(run) == 8 * stages);
  }
}

TEST_CASE("networks recompute and offload in a pipeline, as claimed") {
  // Each GPU has a link to the host of its own.
  const Platform platform = test::library_platform("dgx-a100");
  for (const char* network : {"gpt2-small", "resnet50"})
    for (const char* name : {"1f1b", "interleaved-1f1b", "zb-h1", "1f1b-v", "dualpipe-v"}) {
      WorkloadOptions options{.batch = 8, .microbatch = 1, .optimizer = Optimizer::adam};
      const Scheduled schedule{
          name, 4 * (name == std::string("1f1b") || name == std::string("zb-h1") ? 1 : 2)};
      CAPTURE(network, name);
      options.split_backward = test::bound_policy(policy_of(schedule, "")).splits_backward;
      const Workload workload = build(test::library_network(network), options);
      const auto play = [&](const std::string& more) {
        Played run = test::play_policy(policy_of(schedule, more), workload, platform);
        REQUIRE(run.execution.status == RunStatus::ok);
        test::require_claims_hold(run);
        return run;
      };
      const MemoryId first = platform[*platform.find_processor("gpu0")].memory;
      const Played kept = play("");
      const Played full = play(", recompute: full");
      CHECK(full.peak(first) < kept.peak(first));
      CHECK(recomputed(full) == std::int64_t{8} * workload.forwards);
      const Played away = play(", offload: all");
      CHECK(away.peak(first) < kept.peak(first));
      (void)play(", recompute: full, offload: all");
    }
}

TEST_CASE("overhead is against the same schedule without recomputation and offload") {
  // Two devices, four microbatches, F = 1 s, BW = 2 s: (m+p-1)(F+BW) = 15 s; with recomputation
  // (p-1)(F+BW) + m(2F+BW) = 19 s.
  const std::string chain = test::split_chain_yaml(2, {"1 s", "1 s", "1 s"});
  const auto overhead = [&](const std::string& policy) {
    return test::run_scenario(test::row_yaml(2, "0 s"), chain, policy).at("overhead").get<double>();
  };
  CHECK(overhead("{name: pipeline/1f1b, microbatches: 4, recompute: full}") == Approx(4.0 / 15));
  CHECK(overhead("{name: pipeline/1f1b, microbatches: 4, recompute: none}") == 0);
  CHECK(overhead("{name: pipeline/1f1b, microbatches: 4}") == 0);
}

TEST_CASE("what recomputation and offload cannot do, they say") {
  const std::string row = ring_with_host(4, "bandwidth: 1 B/s");
  const auto says = [&](const std::string& more, const std::string& text) {
    const std::string error =
        savings_error("{name: pipeline/1f1b, microbatches: 4" + more + "}", row);
    INFO(error);
    return error.find(text) != std::string::npos;
  };
  CHECK(says(", recompute: [4]", "there is no slot 4; the pipeline has 4, from 0"));
  CHECK(says(", offload: [1, 7]", "there is no slot 7; the pipeline has 4, from 0"));
  CHECK(says(", offload: 120 %", "found `120 %`; expected"));
  CHECK(says(", offload: some", "found `some`; expected"));
  CHECK(says(", recompute: all", "full"));
  CHECK(says(", distance: 3", "`distance` belongs to `offload`, which is not given"));
  CHECK(says(", offload: all, to: drum", "has no memory `drum`"));
  CHECK_THAT(savings_error("{name: pipeline/1f1b, offload: all}", test::row_yaml(4, "0 s")),
             Catch::Contains("links no storage to `hbm0`"));
  CHECK_THAT(savings_error("{name: pipeline/bpipe, offload: all}", row),
             Catch::Contains("moves what slots keep to the memories of partners already"));
  for (const char* name : {"pipeline/1f1b-star", "pipeline/periodic"}) {
    const auto error = [&](const std::string& keys) {
      return savings_error(fmt::format("{{name: {}{}}}", name, keys), row);
    };
    CHECK_THAT(error(", offload: 50 %"), Catch::Contains("moves every microbatch of a slot"));
    CHECK_THAT(error(", offload: [1, 7]"), Catch::Contains("there is no slot 7"));
    CHECK_THAT(error(", to: store"), Catch::Contains("`to` belongs to `offload`"));
    CHECK_THAT(error(", offload: all, distance: 3"), Catch::Contains("unknown key `distance`"));
  }
  CHECK_THAT(savings_error("{name: pipeline/periodic, partition: madpipe, offload: [0]}", row),
             Catch::Contains("expected `all` or `none`"));
  const std::string shared =
      "platform: p\nmemories:\n  hbm: {capacity: unlimited}\n  dram: {capacity: unlimited}\n"
      "processors:\n  gpu0: {memory: hbm}\n  gpu1: {memory: hbm}\n"
      "links:\n  pcie: {between: [hbm, dram], bandwidth: 1 B/s}\n";
  CHECK_THAT(savings_error("{name: pipeline/1f1b, offload: all}", shared),
             Catch::Contains("`gpu0` and `gpu1` share the memory `hbm`"));
}

}  // namespace plimsoll
