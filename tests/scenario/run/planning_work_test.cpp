// Planners that may take long count their work, and a limit ends them at the same point each time.
#include "scenario/run/in_words.hpp"
#include "scenario/run/run.hpp"

#include <cstdint>
#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

/// Stages that are unlike each other, whatever their number.
std::string chain_of(int stages) {
  std::string text;
  for (int s = 0; s < stages; ++s)
    text += fmt::format(
        "    - {{name: s{}, forward: {} us, backward: {} us, output: {} KiB, saved: {} KiB, "
        "parameters: {} KiB}}\n",
        s, 100 + s * 37 % 89, 200 + s * 53 % 97, 10 + s * 31 % 83, 100 + s * 41 % 79,
        5 + s * 29 % 71);
  return text;
}

Scenario scenario_of(int devices, int stages, const std::string& policy) {
  const std::string cluster = fmt::format(
      "  cluster: {{count: {}, topology: chain, shared: [dram], link: {{name: nvlink, bandwidth: "
      "20 "
      "GB/s}}}}\n",
      devices);
  const std::string text =
      "scenario: s\n"
      "platform:\n"
      "  platform: p\n"
      "  memories: {hbm: {capacity: 16 GiB}, dram: {capacity: unlimited}}\n"
      "  processors: {gpu: {memory: hbm}}\n"
      "  links: {pcie: {between: [hbm, dram], bandwidth: 12 GB/s}}\n" +
      (devices > 1 ? cluster : std::string{}) +
      "workload:\n"
      "  workload: w\n"
      "  batch: 64\n"
      "  input: 1 KiB\n"
      "  chain:\n" +
      chain_of(stages) + "policy: " + policy + "\n";
  return read_scenario(parse_document(text, "s.yaml"), ".", {});
}

std::string refusal(const Scenario& scenario, std::int64_t limit) {
  WorkMeter meter(limit);
  try {
    (void)run_policy(scenario, scenario.policies.front(), {.work = Work(&meter)});
  } catch (const InputError& error) {
    return error.diagnostics().front().message;
  }
  return {};
}

/// How many steps are counted; and any fewer are refused, in the same words each time.
std::int64_t steps_of(int devices, int stages, const std::string& policy) {
  CAPTURE(policy);
  const Scenario scenario = scenario_of(devices, stages, policy);
  WorkMeter ample;
  const RunResult counted = run_policy(scenario, scenario.policies.front(), {.work = Work(&ample)});
  const RunResult free = run_policy(scenario, scenario.policies.front());
  CHECK(counted.execution.makespan == free.execution.makespan);
  CHECK(refusal(scenario, ample.steps()).empty());
  for (const std::int64_t limit :
       {ample.steps() / 100, ample.steps() / 3, ample.steps() / 2, ample.steps() - 1}) {
    const std::string words = refusal(scenario, limit);
    CHECK_THAT(words, Catch::Contains(fmt::format("the limit is {}", limit)));
    CHECK(refusal(scenario, limit) == words);
  }
  return ample.steps();
}

TEST_CASE("a plan that is too large to be checked is refused at its mesh, or its policy") {
  const auto refused = [](const std::string& parallel) {
    const Scenario scenario = read_scenario(
        parse_document("scenario: s\nplatform: h100-cluster\nworkload: {model: resnet18-cifar, "
                       "batch: 1024}\npolicy: none\n" +
                           parallel,
                       "s.yaml"),
        ".", {});
    try {
      in_words(scenario, scenario.policies.front(), []() -> int { throw PlanUndecided("large"); });
    } catch (const InputError& error) {
      return to_text(error.diagnostics().front());
    }
    return std::string();
  };
  CHECK(refused("") == "s.yaml:4:9: error: large; fewer microbatches or stages make it smaller");
  CHECK(refused("parallel: {data: 16}\n") ==
        "s.yaml:5:11: error: large; `collectives: auto`, fewer ranks or microbatches make it "
        "smaller");
  CHECK(refused("parallel: {data: 16, collectives: auto, play: all}\n") ==
        "s.yaml:5:11: error: large; fewer ranks or microbatches make it smaller; without "
        "`play: all` one rank may stand for all");
}

}  // namespace

TEST_CASE("searches for cuts count their work") {
  CHECK(steps_of(4, 128, "{name: pipeline/gpipe, microbatches: 2, partition: balanced-memory}") >
        100'000);
  CHECK(steps_of(4, 128, "{name: pipeline/gpipe, microbatches: 2, partition: pipedream}") >
        100'000);
  CHECK(
      steps_of(4, 128, "{name: pipeline/gpipe, microbatches: 2, partition: pipedream-replicated}") >
      100'000);
  CHECK(steps_of(4, 128, "{name: pipeline/looped-bfs, microbatches: 4, virtual_stages: 4}") >
        1'000'000);
}

TEST_CASE("searches for a period count their work, and the solver's") {
  CHECK(steps_of(4, 96, "{name: pipeline/1f1b-star, microbatches: 2, partition: 1f1b-star}") >
        1'000'000);
  CHECK(
      steps_of(4, 24, "{name: pipeline/periodic, microbatches: 2, partition: madpipe, nodes: 50}") >
      1'000'000);
  CHECK(steps_of(2, 8,
                 "{name: pipeline/periodic, microbatches: 2, placement: [0, 1, 0, 1, 0, 1, 0, 1], "
                 "nodes: 30}") > 1'000'000);
}

TEST_CASE("rules that look for a set or a threshold count their work") {
  CHECK(steps_of(1, 400, "{name: offload/autoswap, budget: 36 MiB}") > 100'000);
  CHECK(steps_of(1, 100, "{name: remat/chen-greedy, budget: 12 MiB}") > 100'000);
  CHECK(steps_of(1, 100, "{name: offload/greedy, budget: 12 MiB, release: progressive}") > 50'000);
}

}  // namespace plimsoll
