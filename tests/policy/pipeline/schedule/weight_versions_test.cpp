// Pipelines that update their parameters without a drain: versions, peaks and periods.
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

struct VersionedStage {
  std::int64_t forward = 1, backward = 2, saved = 1, parameters = 100;
};

std::string chain_yaml(const std::vector<VersionedStage>& stages) {
  std::string text = "workload: w\nchain:\n";
  for (std::size_t i = 0; i < stages.size(); ++i)
    text += fmt::format(
        "  - {{name: s{}, forward: {} s, backward: {} s, saved: {} B, parameters: {} B}}\n", i,
        stages[i].forward, stages[i].backward, stages[i].saved, stages[i].parameters);
  return text;
}

Played run_versions(const std::string& policy, const std::vector<VersionedStage>& stages,
                    const Platform& platform) {
  const Workload workload = test::workload_of(chain_yaml(stages));
  Played played = test::play_policy(policy, workload, platform);
  test::require_claims_hold(played);
  REQUIRE(played.plan.claims.period);
  return played;
}

Platform row(std::size_t devices) {
  return test::platform_of(test::row_yaml(static_cast<std::int64_t>(devices), "0 s"));
}

/// For every backward the stay of the parameters that it reads, and that of the forward.
bool backwards_read_what_forwards_read(const Played& it, const Workload& workload) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<BufferId>> forward, backward;
  for (const Step& step : it.plan.steps) {
    if (step.kind != StepKind::compute || workload[step.op].phase == Phase::optimizer) continue;
    const bool is_forward = workload[step.op].phase == Phase::forward;
    const OperatorId of = is_forward ? step.op : workload[step.op].forward;
    for (const BufferId buffer : it.plan.list(step.reads))
      if (workload[it.plan[buffer].tensor].tensor_class == TensorClass::parameter)
        (is_forward ? forward : backward)[{static_cast<std::uint32_t>(of), step.microbatch}]
            .push_back(buffer);
  }
  return std::ranges::all_of(backward, [&](const auto& entry) {
    const auto& read = forward.at(entry.first);
    return std::ranges::all_of(entry.second, [&](BufferId buffer) {
      return std::ranges::find(read, buffer) != read.end();
    });
  });
}

}  // namespace

TEST_CASE("pipedream: p-i versions and one gradient on device i, no idle time when steady") {
  // Equal stages of F = 1 s and BW = 2 s, each 1 B a microbatch and 100 B of parameters: device i
  // keeps p-i microbatches, p-i versions, and one gradient. The period is F + BW.
  for (std::size_t p = 1; p <= 6; ++p)
    for (const std::size_t m : {2 * p, 2 * p + 1, 3 * p}) {
      CAPTURE(p, m);
      const Played it =
          run_versions(fmt::format("{{name: pipeline/pipedream, microbatches: {}}}", m),
                       std::vector<VersionedStage>(p), row(p));
      CHECK(it.execution.period == seconds(3));
      for (std::uint32_t i = 0; i < p; ++i) {
        const auto kept = static_cast<std::int64_t>(p - i);
        CHECK(it.peak(MemoryId{i}) == kept * (1 + 100) + 100);
      }
    }
}

TEST_CASE("pipedream-2bw: two versions and one gradient on every device that fills") {
  // As above, but versions are two: that before the last update as long as the microbatches in
  // flight at it read it, which are p-i on device i, and the one after it. However many
  // microbatches an update takes, the one of the mini-batch before falls among the first that are
  // played.
  for (std::size_t p = 2; p <= 6; ++p)
    for (const auto& [every, m] : {std::pair(p, 4 * p),
                                   {p + 1, 4 * p + 4},
                                   {2 * p, 8 * p},
                                   {3 * p, 3 * p},
                                   {4 * p, 2 * p}}) {
      CAPTURE(p, every, m);
      const Played it = run_versions(
          fmt::format("{{name: pipeline/pipedream-2bw, microbatches: {}, accumulate: {}}}", m,
                      every),
          std::vector<VersionedStage>(p), row(p));
      CHECK(it.execution.period == seconds(3));
      for (std::uint32_t i = 0; i < p; ++i)
        CHECK(it.peak(MemoryId{i}) == static_cast<std::int64_t>(p - i) + 2 * 100 + 100);
    }
}

TEST_CASE("the steady period is the busiest stage's, whatever the times") {
  // Without message latency p-i microbatches on device i hide every round trip, so the period is
  // the largest F + BW; the steady part begins late enough here for every transient to be over.
  Dice dice(20251121);
  for (int round = 0; round < 100; ++round) {
    std::vector<VersionedStage> stages(static_cast<std::size_t>(dice(1, 6)));
    std::int64_t longest = 0;
    for (VersionedStage& stage : stages) {
      stage = {dice(1, 6), dice(1, 9), dice(1, 5), dice(0, 50)};
      longest = std::max(longest, stage.forward + stage.backward);
    }
    const char* name = dice(0, 1) == 0 ? "pipedream" : "pipedream-2bw";
    CAPTURE(name, chain_yaml(stages));
    const Played it = run_versions(fmt::format("{{name: pipeline/{}, microbatches: 120}}", name),
                                   stages, row(stages.size()));
    REQUIRE(it.execution.period == seconds(longest));
    REQUIRE(backwards_read_what_forwards_read(it, test::workload_of(chain_yaml(stages))));
    for (std::uint32_t i = 0; i < stages.size(); ++i) {
      const auto kept = static_cast<std::int64_t>(stages.size()) - i;
      const std::int64_t versions = std::string_view(name) == "pipedream" ? kept : std::int64_t{2};
      REQUIRE(it.peak(MemoryId{i}) <=
              kept * stages[i].saved + (versions + 1) * stages[i].parameters);
    }
  }
}

TEST_CASE("throughput of a periodic plan counts a period for each microbatch") {
  // One device, F + BW = 3 s: two mini-batches of four microbatches take 12 s each.
  Workload workload = test::workload_of(
      "workload: w\nbatch: 8\nchain:\n"
      "  - {name: s, forward: 1 s, backward: 2 s, "
      "saved: 1 B}\n");
  workload.microbatches = 4;
  const Platform platform = row(1);
  const Played it =
      test::play(test::planned("{name: pipeline/pipedream, microbatches: 4}", workload, platform),
                 workload, platform, 2);
  CHECK(*it.metrics.throughput == Approx(2 * 8 / 24.0));
}

TEST_CASE("throughput and energy of a periodic plan count the microbatches of all replicas") {
  // Two devices at 1 W share four microbatches of 3 s, without a gradient to reduce: a mini-batch
  // takes each of them 6 s, and a microbatch of both ends every 1.5 s.
  Workload workload = test::workload_of(
      "workload: w\nbatch: 8\nchain:\n  - {name: s, forward: 1 s, backward: 2 s, saved: 1 B}\n");
  workload.microbatches = 4;
  const Platform platform = test::platform_of(
      "platform: two\nmemories: {hbm: {capacity: unlimited}}\nprocessors: {gpu: {memory: hbm, "
      "power: {idle: 0 W, active: 1 W}}}\ncluster: {count: 2, topology: mesh, link: {name: l}}\n");
  for (const char* how : {"data_parallel", "replicas"}) {
    const Played it = test::play(
        test::planned(fmt::format("{{name: pipeline/pipedream, microbatches: 4, {}: 2}}", how),
                      workload, platform),
        workload, platform, 3);
    CHECK(it.execution.period * std::int64_t{2} == seconds(3));
    CHECK(*it.metrics.throughput == Approx(3 * 8 / 18.0));
    CHECK(it.metrics.energy->per_sample ==
          Energy{Energy::Count{1'500'000'000} * 1'000'000'000'000});
  }
}

TEST_CASE("replicas read in their backwards what their forwards read") {
  Dice dice(20261122);
  for (int round = 0; round < 40; ++round) {
    std::vector<VersionedStage> stages(static_cast<std::size_t>(dice(1, 4)));
    for (VersionedStage& stage : stages) stage = {dice(1, 6), dice(1, 9), dice(1, 5), dice(0, 50)};
    const auto replicas = static_cast<std::size_t>(dice(2, 3));
    const char* name = dice(0, 1) == 0 ? "pipedream" : "pipedream-2bw";
    CAPTURE(name, replicas, chain_yaml(stages));
    const Platform platform = test::platform_of(fmt::format(
        "platform: c\nmemories: {{hbm: {{capacity: unlimited}}}}\nprocessors: {{gpu: {{memory: "
        "hbm}}}}\ncluster: {{count: {}, topology: mesh, link: {{name: l, bandwidth: {} B/s}}}}\n",
        stages.size() * replicas, dice(5, 50)));
    const Played it =
        run_versions(fmt::format("{{name: pipeline/{}, microbatches: {}, replicas: {}}}", name,
                                 20 * replicas, replicas),
                     stages, platform);
    REQUIRE(it.execution.status == RunStatus::ok);
    REQUIRE(backwards_read_what_forwards_read(it, test::workload_of(chain_yaml(stages))));
    for (std::uint32_t d = 0; d < stages.size() * replicas; ++d) {
      const std::size_t i = d / replicas;
      const auto kept = static_cast<std::int64_t>(stages.size() - i);
      const std::int64_t versions = std::string_view(name) == "pipedream" ? kept : std::int64_t{2};
      REQUIRE(it.peak(MemoryId{d}) <=
              kept * stages[i].saved + (versions + 1) * stages[i].parameters);
    }
  }
}

TEST_CASE(
    "energy per sample and steps of a battery are those of a mini-batch, however much is played") {
  // One device at 1 W, F + BW = 3 s a microbatch: 12 J for a mini-batch of four microbatches and
  // eight samples, of which 1f1b-star plays 8 + 36 microbatches.
  Workload workload = test::workload_of(
      "workload: w\nbatch: 8\nchain:\n  - {name: s, forward: 1 s, backward: 2 s, saved: 1 B}\n");
  workload.microbatches = 4;
  const Platform platform = test::platform_of(
      "platform: one\nmemories:\n  hbm: {capacity: unlimited}\n"
      "processors:\n  gpu: {memory: hbm, power: {idle: 0 W, active: 1 W}}\n"
      "battery: {energy: 30 J}\n");
  const Played it =
      test::play(test::planned("{name: pipeline/1f1b-star, microbatches: 4}", workload, platform),
                 workload, platform);
  REQUIRE(it.plan.microbatches == 44);
  CHECK(it.metrics.energy->per_sample == Energy{Energy::Count{1'500'000'000} * 1'000'000'000'000});
  CHECK(*it.metrics.energy->steps_per_battery == 2);
}

TEST_CASE("pipedream runs networks with their optimizer after each backward") {
  const Platform platform = test::library_platform("dgx-1-v100");
  WorkloadOptions options;
  options.optimizer = Optimizer::sgd_momentum;
  for (const char* network : {"gpt2-small", "resnet50"})
    for (const char* name : {"pipedream", "pipedream-2bw"}) {
      INFO(network << " " << name);
      const Workload workload = build(test::library_network(network), options);
      const Played it = test::play_policy(
          fmt::format("{{name: pipeline/{}, microbatches: 12, devices: [gpu0, gpu1, gpu2, gpu3]}}",
                      name),
          workload, platform);
      REQUIRE(it.execution.status == RunStatus::ok);
      test::require_claims_hold(it);
      CHECK(backwards_read_what_forwards_read(it, workload));
      const auto updates = std::ranges::count_if(it.plan.steps, [&](const Step& step) {
        return step.kind == StepKind::compute && workload[step.op].phase == Phase::optimizer;
      });
      const auto once = static_cast<std::ptrdiff_t>(workload.operators.size()) -
                        static_cast<std::ptrdiff_t>(workload.optimizer_begin);
      // A tied weight is updated on both of its devices.
      CHECK(updates >= once * (std::string_view(name) == "pipedream" ? 12 : 3));
    }
}

TEST_CASE("what never gets steady or needs more versions is refused") {
  const Workload workload = test::workload_of(chain_yaml(std::vector<VersionedStage>(3)));
  const Platform platform = row(3);
  CHECK_THROWS_WITH(
      test::play_policy("{name: pipeline/pipedream, microbatches: 3}", workload, platform),
      Catch::Contains("more microbatches than devices; microbatches is 3"));
  CHECK_THROWS_WITH(
      test::play_policy("{name: pipeline/pipedream-2bw, microbatches: 9, accumulate: 2}", workload,
                        platform),
      Catch::Contains("as there are devices, 3; accumulate is 2"));
}

}  // namespace plimsoll
