// What running one policy of a scenario makes of its parameters, and of a limit of work.
#include "scenario/run/run.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

Scenario scenario_of(const std::string& policy, const Overrides& overrides = {}) {
  const std::string text =
      "scenario: s\n"
      "platform:\n"
      "  platform: p\n"
      "  memories: {hbm: {capacity: 20 B, reserved: 2 B}, dram: {capacity: 1 kB}}\n"
      "  processors: {gpu: {memory: hbm}}\n"
      "  links: {pcie: {between: [hbm, dram], bandwidth: 1 B/s}}\n"
      "workload:\n"
      "  workload: w\n"
      "  input: 1 B\n"
      "  chain:\n"
      "    - {repeat: 6, items: [{name: \"s{i}\", forward: 1 s, backward: 2 s, output: 1 B, saved: "
      "3 B}]}\n"
      "policy: " +
      policy + "\n";
  return read_scenario(parse_document(text, "s.yaml"), ".", overrides);
}

std::vector<std::string> notes_of_only(const Scenario& scenario) {
  return run_policy(scenario, scenario.policies.front()).notes;
}

}  // namespace

TEST_CASE("numbers of the platform are listed for reports only, and nothing else differs") {
  const Scenario scenario = scenario_of("none");
  const RunResult reported = run_policy(scenario, scenario.policies.front());
  const RunResult other = run_policy(scenario, scenario.policies.front(), {.is_reported = false});
  // Two capacities, what is reserved, and a bandwidth; nobody says where they are from.
  const auto& estimates = reported.numbers_of[static_cast<std::size_t>(Quality::estimate)];
  CHECK(estimates.size() == 4);
  for (const auto& of_quality : other.numbers_of) CHECK(of_quality.empty());
  CHECK(other.worst_quality == reported.worst_quality);
  CHECK(other.metrics.makespan == reported.metrics.makespan);
}

TEST_CASE("a policy that is chosen by its name tells which parameters it has from the scenario") {
  const std::string given = "[none, {name: remat/rotor, budget: 15 B}]";
  CHECK(notes_of_only(scenario_of("{name: remat/rotor, budget: 15 B}")).empty());
  CHECK(notes_of_only(scenario_of(given, {.policies = {"none"}, .set = {}})).empty());
  CHECK(notes_of_only(scenario_of(given, {.policies = {"remat/sqrt"}, .set = {}})).empty());
  CHECK(notes_of_only(
            scenario_of(given, {.policies = {"{name: remat/rotor, budget: 16 B}"}, .set = {}}))
            .empty());
  CHECK(notes_of_only(scenario_of(given, {.policies = {"remat/rotor"}, .set = {}})) ==
        std::vector<std::string>{
            "the scenario has a policy `remat/rotor`, and its parameters hold: budget: 15 B"});
}

TEST_CASE("a budget beyond the memory is told to be cut") {
  // Of 20 B plans have 18.
  CHECK(notes_of_only(scenario_of("{name: remat/rotor, budget: 18 B}")).empty());
  CHECK(
      notes_of_only(scenario_of("{name: remat/rotor, budget: 19 B}")) ==
      std::vector<std::string>{
          "a budget of 19 B is more than the 18 B that `hbm` has for plans; 18 B is what counts"});
}

TEST_CASE("planning that takes more work than its limit is refused, and says how much that is") {
  const Scenario scenario = scenario_of("{name: remat/rotor, budget: 15 B}");
  WorkMeter ample, scarce(10);
  const RunResult free = run_policy(scenario, scenario.policies.front());
  const RunResult counted = run_policy(scenario, scenario.policies.front(), {.work = Work(&ample)});
  CHECK(counted.execution.makespan == free.execution.makespan);
  CHECK(ample.steps() > 10);
  CHECK_THROWS_WITH(run_policy(scenario, scenario.policies.front(), {.work = Work(&scarce)}),
                    Catch::Contains("planning with `remat/rotor` takes ") &&
                        Catch::Contains(" steps of work or more; the limit is 10"));
  // Just as much is enough, on every machine.
  WorkMeter just(ample.steps()), less(ample.steps() - 1);
  CHECK_NOTHROW(run_policy(scenario, scenario.policies.front(), {.work = Work(&just)}));
  CHECK_THROWS_AS(run_policy(scenario, scenario.policies.front(), {.work = Work(&less)}),
                  InputError);
}

TEST_CASE("a planner of chains answers with no plan above its budget") {
  // The first backward reads gradients that are made two stages later: no chain has that.
  constexpr const char* kProfile =
      "scenario: s\n"
      "platform: {platform: p, memories: {hbm: {capacity: 1 MB}}, processors: {gpu: {memory: "
      "hbm}}}\n"
      "workload:\n"
      "  workload: w\n"
      "  profile:\n"
      "    version: 1\n"
      "    inputs: {x: 11000 B}\n"
      "    parameters: {w: 5000 B}\n"
      "    operators:\n"
      "      - {name: o0, forward: {time: 444 us, reads: [x], makes: {a: 24000 B}, keeps: {k: "
      "40000 B}},\n"
      "         backward: {time: 69 us, reads: [x, a, d1, d2], makes: {d0: 7000 B}}}\n"
      "      - {name: o1, forward: {time: 805 us, reads: [a], makes: {b: 28000 B, c: 31000 B}},\n"
      "         backward: {time: 891 us, reads: [c], makes: {d1: 5000 B}}}\n"
      "      - {name: o2, forward: {time: 681 us, reads: [b, w], makes: {e: 15000 B}, keeps: {l: "
      "6000 B}},\n"
      "         backward: {time: 898 us, reads: [e, w], makes: {d2: 9000 B}, gradients: [w]}}\n"
      "policy: [{name: remat/rotor, budget: 108000 B}, {name: remat/chen-greedy, budget: 108000 "
      "B},\n"
      "  {name: remat/rotor, budget: 114000 B}]\n";
  const Scenario scenario = read_scenario(parse_document(kProfile, "s.yaml"), ".", {});
  const std::vector<RunResult> results = run(scenario);
  for (std::size_t i = 0; i < 2; ++i) {
    REQUIRE(results[i].infeasible);
    CHECK(results[i].infeasible->smallest_budget == Bytes{113'000});
  }
  CHECK(!results[2].infeasible);
}

TEST_CASE("remat/search is not behind the planners that it begins from in an arena") {
  constexpr const char* kArena =
      "scenario: s\n"
      "platform: v100-pcie-16gb\n"
      "set: {memories.hbm.allocator: best-fit}\n"
      "workload: {model: resnet8, batch: 64, optimizer: sgd-momentum}\n"
      "policy: [none, remat/rotor, remat/xla, remat/search]\n";
  Scenario scenario = read_scenario(parse_document(kArena, "s.yaml"), ".", {});
  const RunResult all = run_policy(scenario, scenario.policies.front());
  const Bytes budget{all.metrics.memories.front().peak_requested.count() / 10 * 8};
  std::optional<Time> fastest;
  for (const char* name : {"remat/rotor", "remat/xla", "remat/search"}) {
    const RunResult result = run_policy(
        scenario,
        parse_value("{name: " + std::string(name) + ", budget: " + std::to_string(budget.count()) +
                        " B" + (std::string(name) == "remat/search" ? ", iterations: 0}" : "}"),
                    "test"));
    CAPTURE(name);
    const auto makespan = result.metrics.makespan;
    if (std::string(name) == "remat/search") {
      REQUIRE(makespan);
      CHECK(*makespan <= fastest.value_or(*makespan));
    } else if (makespan) {
      fastest = std::min(fastest.value_or(*makespan), *makespan);
    }
  }
  CHECK(fastest);
}

TEST_CASE("overlapping schedules take gradients that are divided among ranks") {
  constexpr const char* kDualPipe =
      "scenario: s\n"
      "platform: {platform: four, memories: {hbm: {capacity: unlimited}},\n"
      "  processors: {gpu: {memory: hbm, compute: {fp32: 20 TFLOP/s}}},\n"
      "  cluster: {count: 4, topology: switch, link: {name: net, bandwidth: 46 GB/s}}}\n"
      "workload: {model: gpt2-small, batch: 8, optimizer: sgd}\n"
      "parallel: {data: 2, pipeline: 2}\n"
      "sharding: {stage: 2}\n"
      "policy: [{name: pipeline/dualpipe, microbatches: 4}, {name: pipeline/dualpipe-v, "
      "microbatches: 4,\n"
      "  recompute: full}]\n";
  const Scenario scenario = read_scenario(parse_document(kDualPipe, "s.yaml"), ".", {});
  for (const RunResult& result : run(scenario)) CHECK(std::string(status_text(result)) == "ok");
}

}  // namespace plimsoll
