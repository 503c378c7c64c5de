// Runs of many microbatches, worked out from runs of few, against runs that play them all.
#include "scenario/run/long_run.hpp"

#include "report/run/reported.hpp"
#include "scenario/document/scenario.hpp"
#include "support/dice.hpp"
#include "support/random_pipeline.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::devices;
using test::Dice;
using test::random_chain;
using test::reported;

bool is_worked_out(const RunResult& result) {
  for (const std::string& note : result.notes)
    if (note.find("were played: each further") != std::string::npos) return true;
  return false;
}

/// How many of the policies were worked out; each is checked against a run that plays all.
int compare(const std::string& document) {
  const Scenario scenario = read_scenario(parse_document(document, "long.yaml"), ".");
  int worked_out = 0;
  for (const Node& policy : scenario.policies) {
    const RunResult all = run_policy(scenario, policy, RunOptions{});
    const RunResult few = run_policy(scenario, policy, {.sums_only = true});
    CAPTURE(document, as_written(policy), few.notes);
    REQUIRE(reported(few) == reported(all));
    worked_out += is_worked_out(few) ? 1 : 0;
    CHECK(is_worked_out(few) == few.execution.start.empty());
  }
  return worked_out;
}

}  // namespace

TEST_CASE("a pipeline of many microbatches is worked out from one of few, exactly") {
  Dice dice(20'26);
  int worked_out = 0, runs = 0;
  for (int round = 0; round < 100; ++round) {
    const std::int64_t count = dice(2, 5);
    std::string document = random_chain(dice, count) + "policy:\n";
    for (const char* name :
         {"1f1b", "gpipe", "zb-h1", "1f1b, recompute: full", "interleaved-1f1b"}) {
      const bool takes_multiples = std::string_view(name) == "interleaved-1f1b";
      const std::int64_t rest = takes_multiples ? 0 : dice(0, count - 1);
      document += fmt::format("  - {{name: pipeline/{}, devices: [{}], microbatches: {}}}\n", name,
                              devices(count), (15 + dice(0, 15)) * count + rest);
      ++runs;
    }
    worked_out += compare(document);
  }
  CAPTURE(worked_out, runs);
  CHECK(worked_out > runs / 2);
}

TEST_CASE("a pipeline of many ranks is worked out, too") {
  constexpr const char* kMesh =
      "scenario: s\n"
      "platform: {{platform: p, memories: {{hbm: {{capacity: unlimited}}}},\n"
      "  processors: {{gpu: {{memory: hbm, compute: {{fp32: 1 TFLOP/s}}, launch_overhead: 5 "
      "us}}}},\n"
      "  cluster: {{count: 16, topology: switch, link: {{name: nvswitch, bandwidth: 1 GB/s, "
      "latency: 2 us}}}}}}\n"
      "workload: {{workload: w, batch: {}, optimizer: adam, input: {{shape: [{}]}}, loss: sum,\n"
      "  blocks: {{one: {{layers: [{{linear: {{features: 64}}}}, relu]}}}}, layers: [{{one: "
      "{{repeat: 8}}}}]}}\n"
      "parallel: {{data: {}, pipeline: {}}}\n"
      "sharding: {{stage: {}}}\n"
      "policy: [{{name: pipeline/1f1b, microbatches: {}}}, {{name: pipeline/1f1b, microbatches: "
      "{},\n"
      "  recompute: full}}, {{name: pipeline/1f1b, microbatches: {}, recompute: {{policy: "
      "remat/blocks}}}}]\n";
  Dice dice(7);
  int worked_out = 0;
  for (int round = 0; round < 12; ++round) {
    const std::int64_t data = dice(1, 2) * 2, stages = 4 * dice(1, 4 / data),
                       few = 50 + dice(0, 60);
    const std::string document =
        fmt::format(kMesh, few * data * 4, 64, data, stages, dice(0, 3), few, few, few);
    worked_out += compare(document);
  }
  CHECK(worked_out > 12);
}

TEST_CASE("memory that many microbatches exceed is not overlooked") {
  // The gradient of each microbatch's input stays: 200 kB each.
  constexpr const char* kChain =
      "scenario: s\n"
      "platform: {{platform: p, memories: {{hbm0: {{capacity: {}}}, hbm1: {{capacity: "
      "unlimited}}}},\n"
      "  processors: {{gpu0: {{memory: hbm0}}, gpu1: {{memory: hbm1}}}},\n"
      "  links: {{l: {{between: [hbm0, hbm1], bandwidth: 1 GB/s}}}}}}\n"
      "workload: {{workload: w, input: 200 kB, chain: [\n"
      "  {{name: a, forward: 1 ms, backward: 2 ms, saved: 300 kB, output: 100 kB}},\n"
      "  {{name: b, forward: 1 ms, backward: 2 ms, saved: 300 kB, output: 100 kB}}]}}\n"
      "policy: {{name: pipeline/1f1b, devices: [gpu0, gpu1], microbatches: 100}}\n";
  CHECK(compare(fmt::format(kChain, "unlimited")) == 1);
  CHECK(compare(fmt::format(kChain, "100 MB")) == 1);
  CHECK(compare(fmt::format(kChain, "30 MB")) == 0);
  CHECK(compare(fmt::format(kChain, "10 MB")) == 0);
}

TEST_CASE("schedules that grow with their microbatches are played whole") {
  Dice dice(3);
  CHECK(
      compare(random_chain(dice, 3) +
              "policy: {name: pipeline/gpipe, devices: [gpu0, gpu1, gpu2], microbatches: 90}\n") ==
      0);
}

}  // namespace plimsoll
