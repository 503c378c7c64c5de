// The integer program of staged plans against proven fronts and against all sets of reruns; its
// relaxation and the rounding.
#include "policy/graph/computations.hpp"
#include "policy/graph/gap_bound.hpp"
#include "policy/remat/graph/graph_here.hpp"
#include "policy/remat/graph/oracle_graphs.hpp"
#include "policy/remat/graph/program/staged_rounding.hpp"
#include "policy/remat/graph/program/staged_solver.hpp"
#include "policy/remat/graph/random_graphs.hpp"
#include "property/random_generators.hpp"
#include "support/policies.hpp"
#include "support/sample.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::GraphHere;

constexpr int kAllNodes = 1'000'000;
constexpr std::size_t kMostSubsets = 14;

Platform unlimited_gpu() {
  return test::one_gpu({});
}

std::string checkmate(std::int64_t budget) {
  return fmt::format("{{name: remat/checkmate, budget: {} B}}", budget);
}

/// The least time of reruns within `room`, over all sets of them; nothing where there is none.
class AllStaged {
 public:
  explicit AllStaged(const GraphHere& it) : it_(it) {
    const StagedSchedule once(it.graph, it.groups, 0);
    for (std::uint32_t stage = 0; stage < it.graph.nodes.size(); ++stage)
      for (std::uint32_t group = 0; group < it.groups.groups.size(); ++group)
        if (once.may_run({stage, group})) all_.push_back({stage, group});
    if (is_small()) list();
  }

  [[nodiscard]] bool is_small() const { return all_.size() <= kMostSubsets; }
  [[nodiscard]] std::optional<std::int64_t> least(std::int64_t room) const {
    std::optional<std::int64_t> best;
    for (const auto& [peak, time] : plans_)
      if (peak <= room) best = std::min(best.value_or(time), time);
    return best;
  }
  [[nodiscard]] std::int64_t peak() const { return plans_.front().first; }  ///< without reruns

 private:
  void list() {
    for (std::size_t set = 0; set < std::size_t{1} << all_.size(); ++set) {
      std::vector<Rerun> chosen;
      for (std::size_t i = 0; i < all_.size(); ++i)
        if ((set >> i & 1) != 0) chosen.push_back(all_[i]);
      StagedSchedule plan(it_.graph, it_.groups, 0);
      plan.add(chosen);
      plans_.emplace_back(plan.peak(), plan.time());
    }
  }

  const GraphHere& it_;
  std::vector<Rerun> all_;
  std::vector<std::pair<std::int64_t, std::int64_t>> plans_;  ///< peak, time
};

/// Whether the program finds the optimum of `room` on its own, above its relaxation.
void require_optimum(const GraphHere& it, std::int64_t room, std::optional<std::int64_t> optimum) {
  const StagedProgram program(it.graph, it.groups, room);
  const StagedRelaxation relaxed = relax_staged_program(program, Work());
  const StagedOptimum found =
      solve_staged_program(it.graph, it.groups, room, {}, kAllNodes, Work());
  if (!optimum) {
    REQUIRE(found.is_impossible);
    return;
  }
  REQUIRE_FALSE(relaxed.is_impossible);
  REQUIRE(relaxed.bound <= *optimum);
  REQUIRE(found.is_closed);
  REQUIRE(found.bound == *optimum);
  REQUIRE(found.reruns);
  StagedSchedule plan(it.graph, it.groups, room);
  plan.add(*found.reruns);
  REQUIRE(plan.excess() == 0);
  REQUIRE(plan.time() == *optimum);
  // From the optimum down there is nothing more to find.
  const StagedOptimum again =
      solve_staged_program(it.graph, it.groups, room, optimum, kAllNodes, Work());
  REQUIRE(again.is_closed);
  REQUIRE_FALSE(again.reruns);
  REQUIRE(again.bound == *optimum);
}

/// How many graphs were small enough.
int compare_with_all(test::Dice& dice, int graphs,
                     const std::function<std::string(test::Dice&)>& draw) {
  int compared = 0;
  for (int round = 0; round < graphs; ++round) {
    const std::string yaml = draw(dice);
    CAPTURE(yaml, round);
    const GraphHere it(test::with_generators(test::workload_of(yaml), round), unlimited_gpu());
    if (StagedProgram::refusal(it.graph, it.groups)) continue;
    const AllStaged all(it);
    if (!all.is_small()) continue;
    ++compared;
    std::int64_t least = all.peak();
    while (all.least(least - 1)) --least;
    for (std::int64_t room = least; room < all.peak(); room += 1 + (all.peak() - least) / 4) {
      CAPTURE(room);
      require_optimum(it, room, all.least(room));
    }
    CAPTURE(least);
    if (least - 1 >= largest_step(it.graph)) require_optimum(it, least - 1, {});
  }
  return compared;
}

}  // namespace

TEST_CASE("the program of staged plans reaches the proven fronts on its own") {
  const nlohmann::json graphs = test::rematerialization_oracle()["graphs"];
  int points = 0;
  for (const auto& [name, graph] : graphs.items())
    for (const auto& [convention, unread] : test::kConventions) {
      const GraphHere it(test::workload_of(test::compute_graph_yaml(graph, unread)),
                         unlimited_gpu());
      const auto& front = graph[convention]["pareto_staged_index_order"];
      for (const auto& optimum : front) {
        const auto room = optimum[0].get<std::int64_t>();
        CAPTURE(name, convention, room);
        require_optimum(it, room, optimum[1].get<std::int64_t>() - it.graph.time().count());
        ++points;
      }
      const auto least = front[0][0].get<std::int64_t>();
      CAPTURE(name, convention, least);
      if (least - 1 >= largest_step(it.graph)) require_optimum(it, least - 1, {});
    }
  CHECK(points == 52);
}

TEST_CASE("remat/checkmate proves every staged point of the fronts") {
  const nlohmann::json graphs = test::rematerialization_oracle()["graphs"];
  for (const auto& [name, graph] : graphs.items())
    for (const auto& [convention, unread] : test::kConventions) {
      const Workload workload = test::workload_of(test::compute_graph_yaml(graph, unread));
      const auto& front = graph[convention]["pareto_staged_index_order"];
      for (const auto& optimum : front) {
        const auto budget = optimum[0].get<std::int64_t>();
        CAPTURE(name, convention, budget);
        const test::Played run = test::play_policy(checkmate(budget), workload, unlimited_gpu());
        test::require_claims_hold(run);
        CHECK(run.peak(MemoryId{0}) <= budget);
        CHECK(run.execution.makespan.count() == optimum[1].get<std::int64_t>());
        CHECK(run.plan.bounds.makespan == run.execution.makespan);
        CHECK(run.plan.claims.optimal == true);
        CHECK(run.plan.notes.empty());
      }
      const auto least = front[0][0].get<std::int64_t>();
      const Planned none = test::answer(checkmate(least - 1), workload, unlimited_gpu());
      REQUIRE(std::holds_alternative<Infeasible>(none));
      CHECK(std::get<Infeasible>(none).smallest_budget == Bytes{least});
      CHECK(std::get<Infeasible>(none).why.find("no proof") == std::string::npos);
    }
}

TEST_CASE("remat/checkmate equals remat/graph-exact on random compute graphs") {
  test::Dice dice(20261201);
  const Platform platform = unlimited_gpu();
  for (int round = 0; round < test::rounds(400); ++round) {
    const std::string yaml = test::random_compute_graph(dice, 8);
    CAPTURE(yaml, round);
    const Workload workload = test::with_generators(test::workload_of(yaml), round);
    const auto peak = test::play_policy("none", workload, platform).peak(MemoryId{0});
    for (std::int64_t budget = peak / 2; budget < peak; budget += 1 + peak / 8) {
      CAPTURE(budget);
      const auto exact = test::played_or_smallest(
          fmt::format("{{name: remat/graph-exact, order: file, budget: {} B}}", budget), workload,
          platform);
      const auto found = test::played_or_smallest(checkmate(budget), workload, platform);
      REQUIRE(exact.index() == found.index());
      if (const auto* run = std::get_if<test::Played>(&found)) {
        REQUIRE(run->execution.makespan == std::get<test::Played>(exact).execution.makespan);
        REQUIRE(run->plan.claims.optimal == true);
      }
    }
  }
}

TEST_CASE(
    "the program is exact on steps that change values in place and keep more than they make") {
  test::Dice dice(20261202);
  const int compared = compare_with_all(dice, test::rounds(1000), [](test::Dice& draws) {
    return test::random_recorded_step(draws, 5);
  });
  CHECK(compared > 10);
}

TEST_CASE("the program is exact on chains, whose outputs are parts of what they keep") {
  test::Dice dice(20261203);
  const int compared = compare_with_all(dice, test::rounds(1000), [](test::Dice& draws) {
    return test::chain_yaml(test::random_chain(draws));
  });
  CHECK(compared > 3);
}

TEST_CASE("the relaxation is no less than the gap bound") {
  test::Dice dice(20261204);
  for (int round = 0; round < test::rounds(300); ++round) {
    const std::string yaml = test::random_compute_graph(dice, 12);
    CAPTURE(yaml, round);
    const GraphHere it(test::with_generators(test::workload_of(yaml), round), unlimited_gpu());
    const std::int64_t peak = StagedSchedule(it.graph, it.groups, 0).peak();
    for (std::int64_t room = largest_step(it.graph); room < peak; room += 1 + peak / 5) {
      const auto gaps = gap_bound(it.graph, it.groups, room, Work());
      const StagedProgram program(it.graph, it.groups, room);
      const StagedRelaxation relaxed = relax_staged_program(program, Work());
      if (gaps && !relaxed.is_impossible) REQUIRE(relaxed.bound >= *gaps);
      if (!gaps) REQUIRE(relaxed.is_impossible);
    }
  }
}

TEST_CASE("remat/checkmate says what it has not proven") {
  test::Dice dice(20261205);
  for (int round = 0; round < test::rounds(400); ++round) {
    const std::string yaml = test::random_compute_graph(dice, 14);
    CAPTURE(yaml);
    const Workload workload = test::workload_of(yaml);
    const auto peak = test::play_policy("none", workload, unlimited_gpu()).peak(MemoryId{0});
    std::int64_t budget = peak * 7 / 10;
    const test::Played run = test::played_within(
        budget, MemoryId{0}, "{name: remat/checkmate, nodes: 0}", workload, unlimited_gpu());
    const bool is_tight = run.plan.bounds.makespan == run.execution.makespan;
    REQUIRE(run.plan.claims.optimal == is_tight);
    REQUIRE(run.plan.notes.empty() == is_tight);
  }
}

TEST_CASE("remat/checkmate-rounding is within the budget or names one in which it is") {
  test::Dice dice(20261206);
  int none = 0;
  for (int round = 0; round < test::rounds(600); ++round) {
    const std::string yaml = test::random_compute_graph(dice, 10);
    CAPTURE(yaml, round);
    const Workload workload = test::with_generators(test::workload_of(yaml), round);
    const auto peak = test::play_policy("none", workload, unlimited_gpu()).peak(MemoryId{0});
    std::int64_t budget = peak * 4 / 5;
    const std::int64_t asked = budget;
    const test::Played run = test::played_within(budget, MemoryId{0}, "remat/checkmate-rounding",
                                                 workload, unlimited_gpu());
    none += budget > asked ? 1 : 0;
    const test::Played best = test::play_policy(checkmate(budget), workload, unlimited_gpu());
    REQUIRE(best.execution.makespan <= run.execution.makespan);
    REQUIRE(*run.plan.bounds.makespan <= best.execution.makespan);
  }
  CHECK(none > 0);
}

TEST_CASE("the rounding runs again whatever a reader misses") {
  // a -> b -> c -> d; d reads a, too. Carried into the stage of d is neither a nor b.
  const GraphHere it(
      test::workload_of("workload: g\ngraph:\n  operators:\n"
                        "    - {name: a, time: 1 ps, outputs: {p: 4 B}}\n"
                        "    - {name: b, inputs: [p], time: 1 ps, outputs: {q: 4 B}}\n"
                        "    - {name: c, inputs: [q], time: 1 ps, outputs: {r: 4 B}}\n"
                        "    - {name: d, inputs: [q, r], time: 1 ps, outputs: {s: 1 B}}\n"),
      unlimited_gpu());
  const StagedProgram program(it.graph, it.groups, 12);
  std::vector<double> columns(program.columns().size(), 0);
  const auto carry = [&](std::uint32_t stage, std::uint32_t value) {
    for (const auto& [of, v, column] : program.carried_columns())
      if (of == stage && v == value && column >= 0) columns[static_cast<std::size_t>(column)] = 0.5;
  };
  carry(1, 0);
  carry(2, 1);
  carry(3, 2);
  const auto rounded = [&](double threshold) {
    return rounded_reruns(it.graph, it.groups, program, columns, threshold);
  };
  CHECK(rounded(0.4) == std::vector<Rerun>{{3, 0}, {3, 1}});
  // Nothing is carried at all.
  CHECK(rounded(0.6) == std::vector<Rerun>{{1, 0}, {2, 0}, {2, 1}, {3, 0}, {3, 1}, {3, 2}});
}

TEST_CASE("remat/checkmate refuses what is too large") {
  std::string many = "workload: g\ngraph:\n";
  for (int v = 0; v < 257; ++v) many += fmt::format("  - {{name: o{}, time: 1 s}}\n", v);
  for (const char* policy : {"remat/checkmate", "remat/checkmate-rounding"})
    CHECK_THROWS_WITH(test::planned(policy, test::workload_of(many), unlimited_gpu()),
                      Catch::Contains(fmt::format(
                          "the workload has 257 operators; {} takes at most 256", policy)));
}

}  // namespace plimsoll
