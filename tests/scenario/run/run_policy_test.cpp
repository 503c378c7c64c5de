// What running one policy of a scenario makes of its parameters, and of a limit of work.
#include "scenario/run/run.hpp"

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

}  // namespace plimsoll
