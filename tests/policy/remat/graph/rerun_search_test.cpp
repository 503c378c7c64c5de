// The judge of sequences, staged schedules that change step by step, and the search on them.
#include "policy/remat/graph/search/rerun_search.hpp"

#include "base/dense_id.hpp"
#include "policy/graph/computations.hpp"
#include "policy/graph/gap_bound.hpp"
#include "policy/graph/gaps.hpp"
#include "policy/remat/graph/graph_here.hpp"
#include "policy/remat/graph/oracle_graphs.hpp"
#include "policy/remat/graph/random_graphs.hpp"
#include "policy/remat/graph/search/exact_search.hpp"
#include "policy/remat/graph/search/rerun_annealing.hpp"
#include "property/random_generators.hpp"
#include "support/library.hpp"
#include "support/policies.hpp"
#include "support/sample.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::GraphHere;

constexpr std::int64_t kEnough = std::int64_t{1} << 50;

std::int64_t excess_of(const ComputationCost& cost, std::int64_t room) {
  std::int64_t sum = 0;
  for (const Bytes bytes : cost.bytes) sum += std::max<std::int64_t>(0, bytes.count() - room);
  return sum;
}

void require_judged_alike(const GraphHere& it, const StagedSchedule& plan) {
  const auto cost = judge_computations(it.graph, plan.computations());
  REQUIRE(cost);
  REQUIRE(cost->time.count() == it.graph.time().count() + plan.time());
  REQUIRE(cost->peak.count() == plan.peak());
  REQUIRE(excess_of(*cost, plan.room()) == plan.excess());
}

void require_played_alike(const GraphHere& it, const StagedSchedule& plan) {
  const auto cost = judge_computations(it.graph, plan.computations());
  const test::Played run = test::play(
      plan_of_computations(it.problem, it.graph, ProcessorId{0}, "reruns", plan.computations()),
      it.workload, it.platform);
  REQUIRE(run.execution.status == RunStatus::ok);
  REQUIRE(run.execution.makespan == cost->time);
  REQUIRE(run.peak(MemoryId{0}) == (cost->peak + it.graph.resident).count());
}

/// Some that may run and are not there, each once.
std::vector<Rerun> some_reruns(const GraphHere& it, const StagedSchedule& plan, test::Dice& dice) {
  std::vector<Rerun> added;
  for (std::int64_t i = 0, tries = dice(1, 4); i < tries; ++i) {
    const Rerun rerun{static_cast<std::uint32_t>(dice(0, std::ssize(it.graph.nodes) - 1)),
                      static_cast<std::uint32_t>(dice(0, std::ssize(it.groups.groups) - 1))};
    if (plan.may_run(rerun) && !plan.has(rerun) && std::ranges::find(added, rerun) == added.end())
      added.push_back(rerun);
  }
  return added;
}

/// Adds, removes and exchanges at random, and compares each prediction with what comes of it.
void change_at_random(const GraphHere& it, test::Dice& dice, int changes) {
  const StagedSchedule once(it.graph, it.groups, kEnough);
  StagedSchedule plan(it.graph, it.groups, dice(0, once.peak()));
  for (int change = 0; change < changes; ++change) {
    const std::int64_t excess = plan.excess(), time = plan.time();
    std::vector<Rerun> removed, added;
    std::vector<Rerun> all = plan.all();
    const std::int64_t kind = dice(0, 2);
    for (std::int64_t left = kind == 0 ? 1 : dice(0, 2); left > 0 && !all.empty(); --left) {
      const auto taken = all.begin() + dice(0, std::ssize(all) - 1);
      removed.push_back(*taken);
      all.erase(taken);
    }
    if (kind != 0 || removed.empty()) added = some_reruns(it, plan, dice);
    const RerunEffect effect = plan.effect_of(removed, added);
    require_judged_alike(it, plan);
    if (dice(0, 1) == 0)
      plan.take(removed, added);
    else
      plan.change(removed, added);
    REQUIRE(plan.excess() == excess + effect.excess);
    REQUIRE(plan.time() == time + effect.time);
    require_judged_alike(it, plan);
  }
  require_played_alike(it, plan);
}

/// Over all sets of gaps.
std::int64_t least_time_of_gaps(const Gaps& gaps) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  REQUIRE(gaps.gaps.size() < 16);
  for (std::uint32_t set = 0; set < 1u << gaps.gaps.size(); ++set) {
    const auto sum_of = [&](auto&& counted, std::int64_t Gap::*what) {
      std::int64_t sum = 0;
      for (std::size_t i = 0; i < gaps.gaps.size(); ++i)
        if ((set >> i & 1) != 0 && counted(gaps.gaps[i])) sum += gaps.gaps[i].*what;
      return sum;
    };
    const bool suffices = std::ranges::all_of(gaps.runs, [&](const TightRun& run) {
      return sum_of([&](const Gap& gap) { return is_around(gap, run); }, &Gap::bytes) >= run.above;
    });
    if (suffices) least = std::min(least, sum_of([](const Gap&) { return true; }, &Gap::time));
  }
  return least;
}

Platform roomy() {
  return test::one_gpu({});
}

}  // namespace

TEST_CASE("a staged schedule that changes at random is judged as the engine plays it") {
  test::Dice dice(20261125);
  for (int round = 0; round < test::rounds(1000); ++round) {
    const std::string yaml =
        round % 2 == 0 ? test::random_compute_graph(dice, 12) : test::random_recorded_step(dice, 8);
    CAPTURE(yaml, round);
    const Workload workload = test::with_generators(test::workload_of(yaml), round / 2);
    change_at_random(GraphHere(workload, roomy()), dice, 8);
  }
}

TEST_CASE("a staged schedule of a chain is judged as the engine plays it") {
  test::Dice dice(20261126);
  for (int round = 0; round < test::rounds(200); ++round) {
    const std::string yaml = test::chain_yaml(test::random_chain(dice));
    CAPTURE(yaml);
    change_at_random(GraphHere(test::workload_of(yaml), roomy()), dice, 8);
  }
}

TEST_CASE("a staged schedule of a network is judged as the engine plays it") {
  test::Dice dice(20261128);
  Platform platform = test::library_platform("v100-sxm2-host");
  platform.memories[index(*platform.find_memory("hbm"))].capacity = Bytes::unlimited();
  for (const char* network : {"lenet", "resnet18-cifar", "mobilenet-v2", "gpt2-small", "vit-s-16"})
    for (const bool is_autocast : {false, true}) {
      CAPTURE(network, is_autocast);
      WorkloadOptions options{.batch = 2, .optimizer = Optimizer::adamw};
      if (is_autocast) options.autocast = DType::fp16;
      const GraphHere it(build(test::library_network(network), options), platform);
      for (int round = 0; round < test::rounds(20); ++round) change_at_random(it, dice, 30);
    }
}

TEST_CASE("annealing finds plans within the room, never slower ones than it began from") {
  test::Dice dice(20261129);
  for (int round = 0; round < test::rounds(300); ++round) {
    const std::string yaml = test::random_compute_graph(dice, 12);
    CAPTURE(yaml, round);
    const GraphHere it(test::with_generators(test::workload_of(yaml), round), roomy());
    const StagedSchedule once(it.graph, it.groups, kEnough);
    const StagedSchedule start(it.graph, it.groups, dice(once.peak() / 2, once.peak()));
    const auto most = static_cast<std::size_t>(dice(1, 3));
    const Work work;
    const RerunMoves moves{it.graph, it.groups, most, work};
    const auto first = RerunAnnealing(moves, 7).run(start, 0, 2, 2000);
    REQUIRE((first || start.excess() > 0));
    if (!first) continue;
    const auto second = RerunAnnealing(moves, 8).run(*first, 0, 0.2, 2000);
    REQUIRE(second);
    REQUIRE(second->time() <= first->time());
    for (const StagedSchedule& plan : {*first, *second}) {
      REQUIRE(plan.excess() == 0);
      require_judged_alike(it, plan);
      for (std::uint32_t group = 0; group < it.groups.groups.size(); ++group)
        REQUIRE(plan.stages_of(group).size() + 1 <= most);
    }
    REQUIRE(RerunAnnealing(moves, 7).run(start, 0, 2, 2000)->all() == first->all());
  }
}

TEST_CASE("what a computation reads has to be there, in the state that it was in") {
  const GraphHere it(test::workload_of("workload: p\nbatch: 1\nprofile:\n  version: 1\n"
                                       "  inputs: {x: 2 B}\n  operators:\n"
                                       "    - name: a\n"
                                       "      forward: {time: 1 ps, reads: [x], makes: {y: 4 B}}\n"
                                       "    - name: b\n"
                                       "      forward: {time: 1 ps, reads: [y], makes: {z: 4 B}}\n"
                                       "    - name: c\n"
                                       "      forward: {time: 1 ps, reads: [y], updates: [y]}\n"),
                     roomy());
  const auto judge = [&](std::vector<std::uint32_t> nodes) {
    return judge_computations(it.graph, nodes).has_value();
  };
  CHECK(judge({0, 1, 2}));
  CHECK_FALSE(judge({1, 0, 2}));     // y is not there yet
  CHECK_FALSE(judge({0, 2, 1}));     // y has been changed
  CHECK_FALSE(judge({0, 1, 2, 1}));  // likewise
  CHECK(judge({0, 1, 2, 0, 1}));
  CHECK_FALSE(judge({0, 1, 2, 2}));  // twice
  CHECK_FALSE(judge({0, 1}));        // c does not run
  // b reads y before c changes it, so the three run again together.
  REQUIRE(it.groups.groups.size() == 1);
}

TEST_CASE("what a backward changes in place may be made again before, and is not read after") {
  // b's backward turns y into what a's backward reads, or into nothing that is read.
  const auto here = [](const std::string& read_by_a) {
    return GraphHere(
        test::workload_of(
            "workload: p\nbatch: 1\nprofile:\n  version: 1\n  inputs: {x: 2 B}\n  operators:\n"
            "    - name: a\n"
            "      forward: {time: 1 ps, reads: [x], makes: {y: 4 B}, keeps: {k: 1 B}}\n"
            "      backward: {time: 1 ps, reads: [" +
            read_by_a +
            "]}\n"
            "    - name: b\n"
            "      forward: {time: 1 ps, reads: [y], makes: {z: 4 B}}\n"
            "      backward: {time: 1 ps, reads: [y, z], updates: [y]}\n"),
        roomy());
  };
  // Nodes: the forwards of a and b are 0 and 1, the backwards of b and a are 2 and 3.
  const auto judges = [](const GraphHere& it, std::vector<std::uint32_t> nodes) {
    return judge_computations(it.graph, nodes).has_value();
  };
  const auto may_run = [](const GraphHere& it, std::uint32_t stage, std::uint32_t node) {
    return StagedSchedule(it.graph, it.groups, kEnough).may_run({stage, it.groups.of_node[node]});
  };
  const GraphHere changed = here("y");
  REQUIRE(changed.groups.groups.size() == 4);
  CHECK(judges(changed, {0, 1, 0, 1, 2, 3}));
  CHECK_FALSE(judges(changed, {0, 1, 2, 0, 3}));  // a's backward would find y as a made it
  CHECK(may_run(changed, 2, 0));
  CHECK(may_run(changed, 2, 1));
  CHECK_FALSE(may_run(changed, 3, 0));
  CHECK_FALSE(may_run(changed, 3, 1));

  const GraphHere spent = here("k");
  CHECK(judges(spent, {0, 1, 2, 0, 3}));
  CHECK_FALSE(judges(spent, {0, 1, 2, 1, 3}));  // z of another y
  CHECK(may_run(spent, 3, 0));
  CHECK_FALSE(may_run(spent, 3, 1));

  const RerunGroups joined = rerun_groups(changed.graph, ChangesByOnce::join);
  REQUIRE(joined.groups.size() == 2);  // all but a's backward
  CHECK(joined.groups.front().runs_once);
}

TEST_CASE("remat/search reaches every staged point of the proven fronts, above a valid bound") {
  const nlohmann::json graphs = test::rematerialization_oracle()["graphs"];
  int points = 0, tight = 0;
  for (const auto& [name, graph] : graphs.items())
    for (const auto& [convention, unread] : test::kConventions) {
      const Workload workload = test::workload_of(test::compute_graph_yaml(graph, unread));
      for (const auto& optimum : graph[convention]["pareto_staged_index_order"]) {
        const auto budget = optimum[0].get<std::int64_t>();
        CAPTURE(name, convention, budget);
        const test::Played run = test::play_policy(
            fmt::format("{{name: remat/search, order: file, budget: {} B}}", budget), workload,
            roomy());
        REQUIRE(run.execution.status == RunStatus::ok);
        test::require_claims_hold(run);
        CHECK(run.peak(MemoryId{0}) <= budget);
        CHECK(run.execution.makespan.count() == optimum[1].get<std::int64_t>());
        CHECK(*run.plan.bounds.makespan <= run.execution.makespan);
        if (*run.plan.bounds.makespan == run.execution.makespan) ++tight;
        ++points;
      }
    }
  CHECK(points == 52);
  CHECK(tight == 42);  // as is the integer program of these gaps in the oracle
}

TEST_CASE("the bound of whole gaps is their least time, and below that of every staged plan") {
  test::Dice dice(20261130);
  int positive = 0;
  for (int round = 0; round < test::rounds(3000); ++round) {
    const std::string yaml = test::random_compute_graph(dice, 8);
    CAPTURE(yaml, round);
    const GraphHere it(test::with_generators(test::workload_of(yaml), round), roomy());
    const std::int64_t peak = StagedSchedule(it.graph, it.groups, kEnough).peak();
    const std::int64_t room = dice(peak / 2, peak);
    const auto bound = best_gap_bound(it.graph, it.groups, room, Work());
    const auto linear = gap_bound(it.graph, it.groups, room, Work());
    REQUIRE(bound.has_value() == linear.has_value());
    const auto fastest = fastest_sequence(it.graph, Bytes{room}, FirstRuns::in_order, Work());
    if (!bound) REQUIRE_FALSE(fastest);
    if (!bound) continue;
    REQUIRE(*bound >= *linear);
    REQUIRE(*bound == least_time_of_gaps(gaps_of(it.graph, it.groups, room, false)));
    if (fastest) REQUIRE(it.graph.time().count() + *bound <= fastest->time.count());
    if (*bound > 0) ++positive;
  }
  CHECK(positive > 0);
}

TEST_CASE("what the largest operator needs is the smallest budget, however it was found") {
  // b's forward reads 4 B and makes 5 B, beside the input's 2 B.
  const Workload workload = test::workload_of(
      "workload: p\nbatch: 1\nprofile:\n  version: 1\n  inputs: {x: 2 B}\n  operators:\n"
      "    - name: a\n"
      "      forward: {time: 1 ps, reads: [x], makes: {y: 4 B}}\n"
      "      backward: {time: 1 ps, reads: [y]}\n"
      "    - name: b\n"
      "      forward: {time: 1 ps, reads: [y], makes: {z: 5 B}}\n"
      "      backward: {time: 1 ps, reads: [z]}\n");
  for (const char* policy : {"remat/search", "remat/checkmate", "hybrid/graph"}) {
    CAPTURE(policy);
    const Planned planned =
        test::answer(test::with_parameters(policy, ", budget: 10 B"), workload, roomy());
    const auto* no = std::get_if<Infeasible>(&planned);
    REQUIRE(no != nullptr);
    CHECK(no->smallest_budget == Bytes{2 + 4 + 5});
    CHECK_FALSE(no->is_found);
  }
}

TEST_CASE("remat/search names a budget that it can meet where it meets none") {
  test::Dice dice(20261127);
  for (int round = 0; round < test::rounds(100); ++round) {
    const std::string yaml = test::random_compute_graph(dice, 10);
    CAPTURE(yaml, round);
    const Workload workload = test::with_generators(test::workload_of(yaml), round);
    const auto peak = test::play_policy("none", workload, roomy()).peak(MemoryId{0});
    for (std::int64_t budget = 0; budget < peak; budget += 1 + peak / 5) {
      const std::string policy = "{{name: remat/search, iterations: 5, budget: {} B}}";
      const auto it =
          test::played_or_smallest(fmt::format(fmt::runtime(policy), budget), workload, roomy());
      const Bytes* smallest = std::get_if<Bytes>(&it);
      if (smallest == nullptr) continue;
      REQUIRE(*smallest > Bytes{budget});
      const auto again = test::played_or_smallest(
          fmt::format(fmt::runtime(policy), smallest->count()), workload, roomy());
      REQUIRE(std::holds_alternative<test::Played>(again));
    }
  }
}

}  // namespace plimsoll
