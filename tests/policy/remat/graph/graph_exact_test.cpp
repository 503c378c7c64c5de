// Instances with proven optima: tests/oracles/rematerialization_graphs.json; and random graphs.
#include "policy/remat/graph/oracle_graphs.hpp"
#include "policy/remat/graph/random_graphs.hpp"
#include "property/random_generators.hpp"
#include "support/policies.hpp"
#include "support/sample.hpp"
#include "support/split_pipelines.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace plimsoll {
namespace {

using nlohmann::json;
using test::compute_graph_yaml;
using test::rematerialization_oracle;

std::string exact(std::int64_t budget, const char* order) {
  return fmt::format("{{name: remat/graph-exact, budget: {} B, order: {}}}", budget, order);
}

Time total_time(const Workload& workload) {
  Time sum;
  for (const Operator& op : workload.operators) sum += *op.given_time;
  return sum;
}

}  // namespace

TEST_CASE("`none` on a compute graph has the peak of the order of its file") {
  const Platform platform = test::one_gpu({});
  const json graphs = rematerialization_oracle()["graphs"];
  for (const auto& [name, graph] : graphs.items())
    for (const auto& [convention, unread] : test::kConventions) {
      CAPTURE(name, convention);
      const Workload workload = test::workload_of(compute_graph_yaml(graph, unread));
      const test::Played run = test::play_policy("none", workload, platform);
      REQUIRE(run.execution.status == RunStatus::ok);
      test::require_claims_hold(run);
      CHECK(run.peak(MemoryId{0}) ==
            graph[convention]["no_recompute_index_order_peak"].get<std::int64_t>());
      CHECK(run.execution.makespan.count() == graph["total_dur"].get<std::int64_t>());
    }
}

TEST_CASE("remat/graph-exact meets every point of the proven fronts, free and staged") {
  const Platform platform = test::one_gpu({});
  const json graphs = rematerialization_oracle()["graphs"];
  int points = 0;
  for (const auto& [name, graph] : graphs.items())
    for (const auto& [convention, unread] : test::kConventions) {
      const Workload workload = test::workload_of(compute_graph_yaml(graph, unread));
      for (const auto& [front, order] : {std::pair("pareto_any_order", "free"),
                                         std::pair("pareto_staged_index_order", "file")}) {
        const json& optima = graph[convention][front];
        for (const json& optimum : optima) {
          const auto budget = optimum[0].get<std::int64_t>();
          CAPTURE(name, convention, front, budget);
          const test::Played run = test::play_policy(exact(budget, order), workload, platform);
          REQUIRE(run.execution.status == RunStatus::ok);
          test::require_claims_hold(run);
          CHECK(run.execution.makespan.count() == optimum[1].get<std::int64_t>());
          CHECK(run.plan.bounds.makespan == run.execution.makespan);
          CHECK(run.peak(MemoryId{0}) <= budget);
          ++points;
        }
        const auto least = optima[0][0].get<std::int64_t>();
        const Planned none = test::answer(exact(least - 1, order), workload, platform);
        REQUIRE(std::holds_alternative<Infeasible>(none));
        CHECK(std::get<Infeasible>(none).smallest_budget == Bytes{least});
      }
    }
  CHECK(points == 95);
}

TEST_CASE("on random graphs exact plans keep to their budget, and more of it never costs time") {
  test::Dice dice(20261124);
  const Platform platform = test::one_gpu({});
  int recomputing = 0;
  for (int round = 0; round < test::rounds(300); ++round) {
    const std::string yaml = test::random_compute_graph(dice, 7);
    CAPTURE(yaml, round);
    const Workload workload = test::with_generators(test::workload_of(yaml), round);
    const auto peak_of_none = test::play_policy("none", workload, platform).peak(MemoryId{0});
    std::optional<Time> before[2];
    for (std::int64_t budget = 0; budget <= peak_of_none; ++budget) {
      std::optional<Time> times[2];
      for (const bool staged : {false, true}) {
        const Planned planned =
            test::answer(exact(budget, staged ? "file" : "free"), workload, platform);
        if (const auto* no = std::get_if<Infeasible>(&planned)) {
          REQUIRE(no->smallest_budget > Bytes{budget});
          REQUIRE_FALSE(before[staged]);
          continue;
        }
        const test::Played run = test::play(std::get<Plan>(planned), workload, platform);
        REQUIRE(run.execution.status == RunStatus::ok);
        test::require_claims_hold(run);
        REQUIRE(run.peak(MemoryId{0}) <= budget);
        REQUIRE(run.plan.bounds.makespan == run.execution.makespan);
        times[staged] = run.execution.makespan;
        if (before[staged]) REQUIRE(*times[staged] <= *before[staged]);
        before[staged] = times[staged];
      }
      if (!times[1]) continue;
      REQUIRE(times[0]);
      REQUIRE(*times[0] <= *times[1]);
      recomputing += *times[0] > total_time(workload) ? 1 : 0;
    }
    REQUIRE(before[1] == total_time(workload));
  }
  CHECK(recomputing > 0);
}

TEST_CASE("remat/graph-exact refuses what it does not plan for") {
  const Platform platform = test::one_gpu({});
  std::string many = "workload: g\ngraph:\n";
  for (int v = 0; v < 21; ++v) many += fmt::format("  - {{name: o{}, time: 1 s}}\n", v);
  CHECK_THROWS_WITH(
      test::planned("remat/graph-exact", test::workload_of(many), platform),
      Catch::Contains("the graph has 21 operators; remat/graph-exact takes at most 20; "
                      "`remat/search` plans for every graph"));
  const Workload chain = test::workload_of(test::split_chain_yaml(4, {"1 s", "1 s", "1 s"}));
  CHECK_THROWS_WITH(test::planned("remat/graph-exact", chain, platform),
                    Catch::Contains("`remat/graph-exact` is for compute graphs"));
}

}  // namespace plimsoll
