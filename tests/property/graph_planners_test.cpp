// Every planner of graphs, on random compute graphs and on steps with changes in place.
#include "policy/remat/graph/random_graphs.hpp"
#include "property/random_generators.hpp"
#include "support/chains.hpp"
#include "support/policies.hpp"
#include "support/sample.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::Dice;

/// A planner; `budgeted`: it keeps to a budget.
struct GraphPlanner {
  std::string policy;
  bool budgeted = true;
  bool for_steps = true;   ///< takes what is no compute graph
  bool for_graphs = true;  ///< takes compute graphs
};

const std::vector<GraphPlanner> kGraphPlanners{
    {"{name: remat/search, iterations: 10}"},
    {"{name: remat/moccasin, iterations: 10}"},
    {"{name: remat/checkmate, nodes: 5}"},
    {"{name: remat/checkmate-rounding}"},
    {"{name: remat/graph-exact}", true, false},
    {"{name: remat/xla}"},
    {"{name: remat/treewidth}", false},
    {"{name: remat/chen-sqrt}", false, true, false},
    {"{name: remat/chen-greedy, candidates: all}", true, true, false},
    {"{name: remat/min-cut, activation_budget: 0.5}", false, true, false},
    {"{name: order/peak}", false},
    {"{name: hybrid/graph, iterations: 2}"},
};

class GraphCase {
 public:
  GraphCase(Dice& dice, int round)
      : is_step_(round % 2 == 1),
        round_(round),
        yaml_(is_step_ ? test::random_recorded_step(dice, 8) : test::random_compute_graph(dice, 9)),
        workload_(test::with_generators(test::workload_of(yaml_), round / 2)),
        platform_(
            test::one_gpu({.bandwidth_out = 2'000'000'000'000, .bandwidth_in = 2'000'000'000'000})),
        peak_(test::play_policy("none", workload_, platform_).peak(MemoryId{0})),
        budget_(peak_ * dice(55, 100) / 100) {}

  /// What the planner claims is what the engine measures; whether it has a plan.
  bool play(const GraphPlanner& planner) const {
    if (is_step_ ? !planner.for_steps : !planner.for_graphs) return false;
    const std::string budget =
        planner.budgeted ? fmt::format(", budget: {} B", budget_) : std::string();
    const std::string policy = test::with_parameters(planner.policy, budget);
    CAPTURE(policy, yaml_, round_);
    const auto answer = test::played_or_smallest(policy, workload_, platform_);
    if (const auto* smallest = std::get_if<Bytes>(&answer)) {
      CHECK(smallest->count() > budget_);
      return false;
    }
    if (planner.budgeted) CHECK(std::get<test::Played>(answer).peak(MemoryId{0}) <= budget_);
    return true;
  }

 private:
  const bool is_step_;
  const int round_;
  const std::string yaml_;
  const Workload workload_;
  const Platform platform_;
  const std::int64_t peak_, budget_;
};

}  // namespace

TEST_CASE("every planner of graphs claims what the engine measures") {
  // All planners on each graph, or in turn.
  Dice dice(20261126);
  std::vector<int> plans(kGraphPlanners.size(), 0);
  for (int round = 0; round < test::rounds(10'000, 30); ++round) {
    const GraphCase it(dice, round);
    for (std::size_t p = 0; p < kGraphPlanners.size(); ++p)
      if (test::runs_all() || (static_cast<std::size_t>(round) / 2 + p) % kGraphPlanners.size() < 2)
        plans[p] += it.play(kGraphPlanners[p]) ? 1 : 0;
  }
  for (std::size_t p = 0; p < kGraphPlanners.size(); ++p) {
    CAPTURE(kGraphPlanners[p].policy);
    CHECK(plans[p] > test::rounds(50, 30));
  }
}

TEST_CASE("steps whose backwards change activations: remat/search is never behind remat/rotor") {
  // In-place ABN: each backward turns the output of its operator back into its input (see
  // policy/graph/rerun_groups.hpp). All times are drawn.
  Dice dice(20261128);
  const Platform platform = test::one_gpu({});
  int plans = 0, faster = 0;
  for (int round = 0; round < test::rounds(600, 20); ++round) {
    const std::int64_t operators = dice(2, 10);
    std::string yaml = "workload: abn\nprofile:\n  version: 1\n  inputs: {x: 1 B}\n  operators:\n";
    for (std::int64_t i = 0; i < operators; ++i) {
      const std::string input = i == 0 ? "x" : fmt::format("y{}", i - 1);
      const std::string skip = i > 2 && dice(0, 4) == 0 ? fmt::format(", y{}", dice(0, i - 2)) : "";
      const bool inverts = dice(0, 2) > 0;
      yaml += fmt::format(
          "    - {{name: o{0}, forward: {{time: {1} ps, reads: [{2}{3}], makes: {{y{0}: {4} B}}}}, "
          "backward: {{time: {5} ps, reads: [{6}{7}], updates: [{8}], makes: {{d{0}: {4} B}}}}}}\n",
          i, dice(1, 5), input, skip, dice(1, 9), dice(1, 9),
          inverts ? fmt::format("y{}", i) : input,
          i + 1 < operators ? fmt::format(", d{}", i + 1) : "",
          inverts ? fmt::format("y{}", i) : "");
    }
    const Workload workload = test::workload_of(yaml);
    const std::int64_t all = test::play_policy("none", workload, platform).peak(MemoryId{0});
    const std::int64_t budget = all * dice(50, 95) / 100;
    CAPTURE(round, yaml, budget);
    const auto time_of = [&](const char* policy) {
      const auto it = test::played_or_smallest(
          test::with_parameters(policy, fmt::format(", budget: {} B", budget)), workload, platform);
      const auto* run = std::get_if<test::Played>(&it);
      if (run != nullptr) REQUIRE(run->peak(MemoryId{0}) <= budget);
      return run == nullptr ? Time::unlimited() : run->execution.makespan;
    };
    const Time rotor = time_of("remat/rotor"), search = time_of("remat/search");
    CHECK(search <= rotor);
    plans += search.is_unlimited() ? 0 : 1;
    faster += search < rotor ? 1 : 0;
    if (round % 4 == 0) CHECK(time_of("hybrid/graph") <= rotor);
  }
  CHECK(plans > test::rounds(200, 20));
  CHECK(faster > test::rounds(60, 20));
}

}  // namespace plimsoll
