// Plans whose first runs come in another order than that of the graph.
#include "policy/budget/claims_with_room.hpp"
#include "policy/graph/computations.hpp"
#include "policy/graph/gap_bound.hpp"
#include "policy/graph/staged_schedule.hpp"
#include "policy/remat/graph/graph_here.hpp"
#include "policy/remat/graph/random_graphs.hpp"
#include "policy/remat/graph/search/exact_search.hpp"
#include "policy/remat/graph/search/free_order_search.hpp"
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

TEST_CASE("on small graphs remat/search is as fast as the optimum, and hybrid/graph no slower") {
  Dice dice(20261201);
  const Platform platform = test::one_gpu({});
  int faster = 0, rerun = 0, none = 0;
  for (int round = 0; round < test::rounds(2000); ++round) {
    const std::string yaml = test::random_compute_graph(dice, 10);
    CAPTURE(yaml);
    const Workload workload = test::workload_of(yaml);
    const auto peak = test::play_policy("none", workload, platform).peak(MemoryId{0});
    const std::string budget = fmt::format(", budget: {} B", peak * dice(50, 95) / 100);
    const auto found = [&](const char* policy) {
      return test::played_or_smallest(test::with_parameters(policy, budget), workload, platform);
    };
    const auto time_of = [](const std::variant<test::Played, Bytes>& answer) {
      const auto* played = std::get_if<test::Played>(&answer);
      return played == nullptr ? Time::unlimited() : played->execution.makespan;
    };
    const auto optimum = found("remat/graph-exact"), any = found("remat/search");
    REQUIRE(time_of(any) == time_of(optimum));
    if (const auto* least = std::get_if<Bytes>(&optimum)) {
      REQUIRE(std::get<Bytes>(any) == *least);
      ++none;
      continue;
    }
    REQUIRE(std::get<test::Played>(any).plan.claims.optimal == true);
    REQUIRE(time_of(found("{name: hybrid/graph, iterations: 0}")) <= time_of(optimum));
    const Time listed = time_of(found("{name: remat/search, order: file, iterations: 10}"));
    REQUIRE(listed >= time_of(optimum));
    faster += time_of(optimum) < listed ? 1 : 0;
    rerun += std::get<test::Played>(any).metrics.processors[0].recomputed_ops > 0 ? 1 : 0;
  }
  CHECK(faster > test::rounds(100));
  CHECK(rerun > test::rounds(100));
  CHECK(none > test::rounds(100));
}

TEST_CASE("the search alone finds most optima in any order, also of what is retained") {
  Dice dice(20261204);
  int all[2] = {}, found[2] = {}, best[2] = {};
  for (int round = 0; round < test::rounds(1500); ++round) {
    const std::string yaml = test::random_compute_graph(dice, 9);
    CAPTURE(yaml);
    const GraphHere it(test::workload_of(yaml), test::one_gpu({}));
    const StagedSchedule once(it.graph, it.groups, 0);
    const std::int64_t room = once.peak() * dice(50, 95) / 100;
    const auto optimum = fastest_sequence(it.graph, Bytes{room}, FirstRuns::free, Work());
    if (!optimum) continue;
    const bool stays = std::ranges::any_of(it.graph.values, &OperatorGraph::Value::stays);
    ++all[stays];
    const auto bound = best_gap_bound(it.graph, it.groups, room, Work());
    const auto plan = FreeOrderSearch(it.graph, {.iterations = 10}, Work()).run(room, bound);
    if (!plan) continue;
    ++found[stays];
    const auto cost = judge_computations(it.graph, plan->computations);
    REQUIRE(cost);
    REQUIRE(cost->peak.count() <= room);
    REQUIRE(cost->time.count() == it.graph.time().count() + plan->time);
    REQUIRE(cost->time >= optimum->time);
    best[stays] += cost->time == optimum->time ? 1 : 0;
  }
  for (const bool stays : {false, true}) {
    CAPTURE(stays, all[stays], found[stays], best[stays]);
    CHECK(found[stays] > all[stays] * 9 / 10);
    CHECK(best[stays] > all[stays] * 8 / 10);
  }
}

TEST_CASE("what is retained is made again at the end, in staged plans before the last operator") {
  // u stays, x is read by b, v by c. As listed b needs u, x, v and 8 B, which are 18 B, and c needs
  // u, v, w and 6 B, which are 16 B.
  const Workload workload = test::workload_of(
      "workload: g\n"
      "graph:\n"
      "  unread: retain\n"
      "  operators:\n"
      "    - {name: a, inputs: [], time: 1 ps, outputs: {u: 8 B, x: 1 B}}\n"
      "    - {name: b, inputs: [x], time: 2 ps, outputs: {v: 1 B}, workspace: 8 B}\n"
      "    - {name: c, inputs: [v], time: 3 ps, outputs: {w: 1 B}, workspace: 6 B}\n");
  // In 16 B u is made again between b and c: 6 + 1 ps.
  for (const char* policy : {"{name: remat/search, order: file}", "remat/moccasin",
                             "{name: remat/graph-exact, order: file}"}) {
    CAPTURE(policy);
    const test::Played staged = planned(workload, policy, 16);
    CHECK(test::runs_of(staged.plan, workload) == "a b a c");
    CHECK(staged.execution.makespan == Time{7});
    const Planned none =
        test::answer(test::with_parameters(policy, ", budget: 15 B"), workload, test::one_gpu({}));
    CHECK(std::get<Infeasible>(none).smallest_budget == Bytes{16});
  }
  // In 10 B, which b needs without u, it is made again at the end. Nothing is faster, since u is not
  // there at b.
  for (const char* policy : {"{name: remat/search, iterations: 0}", "remat/search",
                             "remat/graph-exact", "hybrid/graph"}) {
    CAPTURE(policy);
    const test::Played any = planned(workload, policy, 10);
    CHECK(test::runs_of(any.plan, workload) == "a b c a");
    CHECK(any.execution.makespan == Time{7});
  }
  CHECK(planned(workload, "remat/search", 10).plan.claims.optimal == true);
  CHECK(std::holds_alternative<Infeasible>(
      test::answer("{name: remat/search, budget: 9 B}", workload, test::one_gpu({}))));
}

TEST_CASE("staged plans of what is retained are as fast as the optimum among them") {
  Dice dice(20261205);
  int all = 0, best = 0, rerun = 0;
  for (int round = 0; round < test::rounds(3000); ++round) {
    std::string yaml = test::random_compute_graph(dice, 8);
    if (const auto at = yaml.find("unread: free"); at != std::string::npos)
      yaml.replace(at, 12, "unread: retain");
    CAPTURE(yaml);
    const Workload workload = test::workload_of(yaml);
    const GraphHere it(workload, test::one_gpu({}));
    const StagedSchedule once(it.graph, it.groups, 0);
    const std::int64_t room = once.peak() * dice(70, 99) / 100;
    const auto optimum = fastest_sequence(it.graph, Bytes{room}, FirstRuns::in_order, Work());
    const auto plan = RerunSearch(it.graph, it.groups, {}, Work()).run(room, 0, {});
    REQUIRE((optimum || !plan));
    if (!optimum) continue;
    ++all;
    rerun += optimum->time > it.graph.time() ? 1 : 0;
    best += plan && plan->time() == (optimum->time - it.graph.time()).count() ? 1 : 0;
  }
  CAPTURE(all, best, rerun);
  CHECK(rerun > test::rounds(100));
  CHECK(best >= all * 99 / 100);
}

TEST_CASE("an exact search without reruns finds the least peak of all orders") {
  Dice dice(20261206);
  for (int round = 0; round < test::rounds(500); ++round) {
    const std::string yaml = test::random_compute_graph(dice, 10);
    CAPTURE(yaml);
    const Workload workload = test::workload_of(yaml);
    const GraphHere it(workload, test::one_gpu({}));
    const Plan order = test::planned("{name: order/peak, method: exact}", workload, it.platform);
    const ExactLimits once{.may_rerun = false, .states = kQuickStates};
    const auto least = least_room_within(it.graph, Bytes{}, once, Work());
    REQUIRE(least);
    REQUIRE(claimed_peak(order.claims, MemoryId{0}) == it.graph.resident + *least);
    if (*least == Bytes{}) continue;
    const auto none = fastest_sequence_within(it.graph, *least - Bytes{1}, once, Work());
    REQUIRE((none.is_closed && !none.sequence));
    REQUIRE_FALSE(fastest_sequence_within(it.graph, *least, {.states = 0}, Work()).is_closed);
  }
}

TEST_CASE("where each operator runs once and in its order, what is infeasible is proven") {
  const Workload workload = test::workload_of(kTwoBranches);
  // As listed most is there at c: x, y and u, 21 B. With c before b it is 12 B, at d: y, v and u.
  const auto none = [&](const char* policy, std::int64_t budget) {
    return std::get<Infeasible>(
        test::answer(test::with_parameters(policy, fmt::format(", budget: {} B", budget)), workload,
                     test::one_gpu({})));
  };
  for (const auto& [policy, least] :
       {std::pair("{name: remat/search, computations: 1, order: file}", 21),
        std::pair("{name: remat/moccasin, computations: 1}", 21),
        std::pair("{name: remat/search, computations: 1}", 12)}) {
    CAPTURE(policy);
    const Infeasible no = none(policy, least - 1);
    CHECK(no.smallest_budget == Bytes{least});
    CHECK_FALSE(no.is_found);
    CHECK(no.why.find("no proof") == std::string::npos);
    CHECK(planned(workload, policy, least).execution.makespan == Time{25});
  }
}

}  // namespace plimsoll
