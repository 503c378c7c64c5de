// Plans whose first runs come in another order than that of the graph.
#include "policy/graph/computations.hpp"
#include "policy/graph/staged_schedule.hpp"
#include "policy/remat/graph/graph_here.hpp"
#include "policy/remat/graph/random_graphs.hpp"
#include "policy/remat/graph/search/run_order.hpp"
#include "support/policies.hpp"
#include "support/sample.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::Dice;
using test::GraphHere;

/// Two wide values, each of which leads to a narrow one.
const char* const kTwoBranches =
    "workload: g\n"
    "graph:\n"
    "  unread: free\n"
    "  operators:\n"
    "    - {name: a, inputs: [], time: 3 ps, outputs: {x: 10 B}}\n"
    "    - {name: b, inputs: [], time: 4 ps, outputs: {y: 10 B}}\n"
    "    - {name: c, inputs: [x], time: 5 ps, outputs: {u: 1 B}}\n"
    "    - {name: d, inputs: [y], time: 6 ps, outputs: {v: 1 B}}\n"
    "    - {name: e, inputs: [u, v], time: 7 ps, outputs: {w: 1 B}}\n";

test::Played planned(const Workload& workload, const std::string& policy, std::int64_t budget) {
  return test::play_policy(test::with_parameters(policy, fmt::format(", budget: {} B", budget)),
                           workload, test::one_gpu({}));
}

/// Every node once, and some of those that may run again after all that they read.
std::vector<std::uint32_t> some_computations(const GraphHere& it, Dice& dice) {
  const StagedSchedule once(it.graph, it.groups, 0);
  StagedSchedule plan = once;
  for (int i = 0; i < 6; ++i) {
    const Rerun rerun{static_cast<std::uint32_t>(dice(0, std::ssize(it.graph.nodes) - 1)),
                      static_cast<std::uint32_t>(dice(0, std::ssize(it.groups.groups) - 1))};
    if (plan.may_run(rerun) && !plan.has(rerun)) plan.add({&rerun, 1});
  }
  return plan.computations();
}

}  // namespace

TEST_CASE("remat/search runs a graph in another order where that needs less") {
  const Workload workload = test::workload_of(kTwoBranches);
  // In 12 B, x and y cannot both be there. As listed, x waits for c while b runs, and y for d while c
  // does, so a and b run again: 25 + 3 + 4 ps. With c before b nothing does; most is there at d, 12 B.
  const test::Played listed = planned(workload, "{name: remat/search, order: file}", 12);
  CHECK(listed.execution.makespan == Time{32});
  CHECK(*listed.plan.bounds.makespan == Time{32});
  CHECK(listed.plan.claims.optimal == true);
  CHECK(planned(workload, "remat/moccasin", 12).execution.makespan == Time{32});
  for (const char* policy : {"remat/search", "hybrid/graph"}) {
    const test::Played any = planned(workload, policy, 12);
    CAPTURE(policy);
    CHECK(any.execution.makespan == Time{25});
    CHECK(any.peak(MemoryId{0}) == 12);
    CHECK(*any.plan.bounds.makespan == Time{25});
    CHECK(any.plan.claims.optimal == true);
  }
}

TEST_CASE("the runs of a plan in a leaner order are the same, and need less") {
  Dice dice(20261130);
  int leaner = 0;
  for (int round = 0; round < test::rounds(2000); ++round) {
    const std::string yaml = test::random_compute_graph(dice, 10);
    CAPTURE(yaml);
    const GraphHere it(test::workload_of(yaml), test::one_gpu({}));
    std::vector<std::uint32_t> runs = some_computations(it, dice);
    const auto order = leaner_order(it.graph, runs, Work());
    if (!order) continue;
    ++leaner;
    const auto before = judge_computations(it.graph, runs),
               after = judge_computations(it.graph, *order);
    REQUIRE(after);
    REQUIRE(after->peak < before->peak);
    const RenumberedGraph renumbered = numbered_as_run(it.graph, *order);
    std::vector<std::uint32_t> as_numbered;
    for (const std::uint32_t node : *order) as_numbered.push_back(renumbered.new_number[node]);
    REQUIRE(judge_computations(renumbered.graph, as_numbered)->bytes == after->bytes);
    std::vector<std::uint32_t> sorted = *order;
    std::ranges::sort(sorted);
    std::ranges::sort(runs);
    REQUIRE(sorted == runs);
  }
  CHECK(leaner > test::rounds(200));
}

TEST_CASE("in any order remat/search is between the optimum and its plan in the given order") {
  Dice dice(20261201);
  int faster = 0, best = 0, all = 0;
  for (int round = 0; round < test::rounds(4000); ++round) {
    const std::string yaml = test::random_compute_graph(dice, 9);
    CAPTURE(yaml);
    const Workload workload = test::workload_of(yaml);
    const auto peak = test::play_policy("none", workload, test::one_gpu({})).peak(MemoryId{0});
    const std::string budget = fmt::format(", budget: {} B", peak * dice(50, 95) / 100);
    const auto time_of = [&](const char* policy) {
      const auto answer = test::played_or_smallest(test::with_parameters(policy, budget), workload,
                                                   test::one_gpu({}));
      const auto* played = std::get_if<test::Played>(&answer);
      return played == nullptr ? Time::unlimited() : played->execution.makespan;
    };
    const Time any = time_of("{name: remat/search, iterations: 10}"),
               listed = time_of("{name: remat/search, iterations: 10, order: file}"),
               optimum = time_of("remat/graph-exact");
    REQUIRE(any <= listed);
    REQUIRE(any >= optimum);
    faster += any < listed ? 1 : 0;
    if (optimum.is_unlimited()) continue;
    ++all;
    best += any == optimum ? 1 : 0;
  }
  CHECK(faster > test::rounds(100));
  CHECK(best > all * 3 / 4);
}

}  // namespace plimsoll
