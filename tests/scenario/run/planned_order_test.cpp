// Order, then addresses (`static: {method: olla}`): against order/peak and the exact placement apart.
#include "property/random_graphs.hpp"
#include "scenario/run/run.hpp"
#include "support/sample.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

/// x 6 B and y 4 B are made one after the other, each is read once by what leaves 1 B: as it is
/// written, x, y and u are alive together, 11 B; x read first, at most 6 + 1, then 1 + 4 + 1 B.
constexpr const char* kTwoBranches =
    "workload: branches\n"
    "graph:\n"
    "  operators:\n"
    "    - {name: a, time: 1 s, outputs: {x: 6 B}}\n"
    "    - {name: b, time: 1 s, outputs: {y: 4 B}}\n"
    "    - {name: c, inputs: [x], time: 1 s, outputs: {u: 1 B}}\n"
    "    - {name: d, inputs: [y], time: 1 s, outputs: {v: 1 B}}\n"
    "    - {name: e, inputs: [u, v], time: 1 s, outputs: {w: 1 B}}\n";

Scenario scenario_with(const std::string& workload, const std::string& allocator,
                       const std::string& capacity = "unlimited") {
  std::string text = fmt::format(
      "scenario: s\n"
      "platform:\n"
      "  platform: p\n"
      "  memories: {{hbm: {{capacity: {}, allocator: {}}}}}\n"
      "  processors: {{gpu: {{memory: hbm}}}}\n"
      "workload:\n  ",
      capacity, allocator);
  for (const char c : workload) text += c == '\n' ? std::string("\n  ") : std::string(1, c);
  return read_scenario(
      parse_document(text + "\npolicy: [none, order/peak, remat/sqrt]\n", "s.yaml"), ".");
}

RunResult run_with(const Scenario& scenario, std::size_t policy) {
  return run_policy(scenario, scenario.policies.at(policy));
}

Bytes end_of_run(const RunResult& run) {
  REQUIRE(run.execution.status == RunStatus::ok);
  return run.execution.memories[0].peak.reserved;
}

constexpr std::size_t kOfNone = 0, kOfOrderPeak = 1, kOfSqrt = 2;

}  // namespace

TEST_CASE("the allocator olla plans the order of a run that has none of its own") {
  const RunResult exact =
      run_with(scenario_with(kTwoBranches, "{static: {method: exact}}"), kOfNone);
  CHECK(end_of_run(exact) == Bytes{11});
  const Scenario scenario = scenario_with(kTwoBranches, "{static: {method: olla}}", "7 B");
  const RunResult olla = run_with(scenario, kOfNone);
  CHECK(end_of_run(olla) == Bytes{7});
  CHECK(olla.policy == "none");
  CHECK(olla.overhead == 0.0);
  CHECK(olla.notes == std::vector<std::string>{"the order of the workload needs 11 B of hbm, this "
                                               "one 7 B; no order needs less"});
  // A policy that orders itself is placed alone, and is told so where that may surprise.
  const RunResult ordered = run_with(scenario, kOfOrderPeak);
  CHECK(end_of_run(ordered) == Bytes{7});
  CHECK(ordered.notes == olla.notes);
}

TEST_CASE("the allocator olla keeps the order of other policies, and says so") {
  const std::string chain =
      "workload: w\ninput: 1 B\nchain:\n"
      "  - {repeat: 4, items: [{name: \"s{i}\", forward: 1 s, backward: 2 s, output: 1 B, saved: 3 "
      "B}]}\n";
  const RunResult olla = run_with(scenario_with(chain, "{static: {method: olla}}"), kOfSqrt);
  const RunResult exact = run_with(scenario_with(chain, "{static: {method: exact}}"), kOfSqrt);
  CHECK(end_of_run(olla) == end_of_run(exact));
  CHECK(olla.execution.end == exact.execution.end);
  CHECK(exact.notes.empty());
  CHECK(olla.notes ==
        std::vector<std::string>{
            "`olla` of hbm keeps the order that `remat/sqrt` plans, and places what it keeps; it "
            "plans the order of runs with the policy `none`"});
}

TEST_CASE("order and placement together end where the better of both orders ends") {
  test::Dice dice(20270311);
  int below_given = 0, ordered_stays = 0;
  for (int round = 0; round < test::rounds(400); ++round) {
    const std::string graph = test::random_graph(dice);
    INFO("round " << round << "\n" << graph);
    const Scenario exact = scenario_with(graph, "{static: {method: exact}}");
    const Bytes given = end_of_run(run_with(exact, kOfNone));
    const Bytes ordered = end_of_run(run_with(exact, kOfOrderPeak));
    const Bytes olla =
        end_of_run(run_with(scenario_with(graph, "{static: {method: olla}}"), kOfNone));
    const Bytes greedy =
        end_of_run(run_with(scenario_with(graph, "{static: {method: greedy-by-size}}"), kOfNone));
    REQUIRE(olla == std::min(given, ordered));
    REQUIRE(olla <= greedy);
    if (olla < given) ++below_given;
    if (olla == ordered) ++ordered_stays;
  }
  CHECK(below_given > 0);
  CHECK(ordered_stays > 0);
}

}  // namespace plimsoll
