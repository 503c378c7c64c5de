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

}  // namespace plimsoll
