// XLA's greedy rule: hand-made sequences, and its plans as the engine plays them.
#include "policy/remat/graph/graph_here.hpp"
#include "policy/remat/graph/oracle_graphs.hpp"
#include "policy/remat/graph/random_graphs.hpp"
#include "policy/remat/graph/rules/block_rematerialization.hpp"
#include "property/random_generators.hpp"
#include "support/library.hpp"
#include "support/policies.hpp"
#include "support/sample.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

std::string xla_runs(const std::string& yaml, const std::string& parameters) {
  const Workload workload = test::workload_of(yaml);
  const auto it =
      test::played_or_smallest("{name: remat/xla" + parameters + "}", workload, test::one_gpu({}));
  if (const auto* smallest = std::get_if<Bytes>(&it)) return fmt::format("{} B", smallest->count());
  return test::runs_of(std::get<test::Played>(it).plan, workload);
}

/// `a` is read at once and at the end, and `d` needs much in between.
const std::string kOneRun = R"(
workload: g
graph:
  - {name: a, time: 1 ps, outputs: {va: 10 B}}
  - {name: b, inputs: [va], time: 1 ps, outputs: {vb: 1 B}, recompute: false}
  - {name: d, time: 1 ps, outputs: {vd: 15 B}}
  - {name: e, inputs: [vd], time: 1 ps, outputs: {ve: 1 B}}
  - {name: f, inputs: [va, vb, ve], time: 1 ps}
)";

/// To run `c` again alone would keep as much alive as it frees: what `b` made.
const std::string kTwoRuns = R"(
workload: g
graph:
  - {name: b, time: 1 ps, outputs: {vb: 10 B}}
  - {name: c, inputs: [vb], time: 1 ps, outputs: {vc: 10 B}}
  - {name: g, inputs: [vc], time: 1 ps, outputs: {vg: 1 B}, recompute: false}
  - {name: d, time: 1 ps, outputs: {vd: 15 B}}
  - {name: e, inputs: [vd], time: 1 ps, outputs: {ve: 1 B}}
  - {name: f, inputs: [vc, vg, ve], time: 1 ps}
)";

}  // namespace

TEST_CASE("remat/xla runs again what frees most where the budget is exceeded") {
  CHECK(xla_runs(kOneRun, ", budget: 27 B") == "a b d e f");
  CHECK(xla_runs(kOneRun, ", budget: 20 B") == "a b d e a f");
  CHECK(xla_runs(kOneRun, ", budget: 16 B") == "17 B");
}

TEST_CASE("remat/xla moves what nobody has read yet, at no cost") {
  std::string yaml = kOneRun;
  yaml.replace(yaml.find("inputs: [va], "), 14, "");
  CHECK(xla_runs(yaml, ", budget: 20 B") == "b d e a f");
}

TEST_CASE("remat/xla looks at blocks of twice as many runs where none of fewer helps") {
  CHECK(xla_runs(kTwoRuns, ", budget: 22 B, block_limit: 2") == "b c g d e b c f");
  CHECK(xla_runs(kTwoRuns, ", budget: 22 B") == "27 B");
}

TEST_CASE("xla plans of random graphs and steps keep to the budget, or to the one they name") {
  test::Dice dice(20261231);
  const Platform platform = test::one_gpu({});
  int planned = 0;
  for (int round = 0; round < test::rounds(1000); ++round) {
    const std::string yaml = round % 3 == 0   ? test::random_compute_graph(dice, 14)
                             : round % 3 == 1 ? test::random_recorded_step(dice, 9)
                                              : test::chain_yaml(test::random_chain(dice));
    const Workload workload = test::with_generators(test::workload_of(yaml), round / 3);
    const auto peak = test::play_policy("none", workload, platform).peak(MemoryId{0});
    const std::string policy = fmt::format("{{name: remat/xla, block_limit: {}}}", dice(1, 8));
    CAPTURE(yaml, policy, round);
    for (int tenths = 9; tenths >= 5; tenths -= 2) {
      const std::int64_t asked = peak * tenths / 10;
      std::int64_t budget = asked;
      (void)test::played_within(budget, MemoryId{0}, policy, workload, platform);
      REQUIRE(budget <= std::max(asked, peak));
      planned += budget == asked ? 1 : 0;
    }
  }
  CHECK(planned > test::rounds(500));
}

TEST_CASE("remat/xla is never below the least of the proven fronts") {
  const Platform platform = test::one_gpu({});
  const nlohmann::json graphs = test::rematerialization_oracle()["graphs"];
  for (const auto& [name, graph] : graphs.items()) {
    const Workload workload = test::workload_of(test::compute_graph_yaml(graph, "free"));
    const auto& front = graph["sink_free_after_step"]["pareto_any_order"];
    for (const auto& optimum : front) {
      std::int64_t budget = optimum[0].get<std::int64_t>();
      CAPTURE(name, budget);
      const test::Played it = test::played_within(
          budget, MemoryId{0}, "{name: remat/xla, block_limit: 4}", workload, platform);
      if (budget == optimum[0].get<std::int64_t>())
        CHECK(it.execution.makespan.count() >= optimum[1].get<std::int64_t>());
      CHECK(it.peak(MemoryId{0}) >= front[0][0].get<std::int64_t>());
    }
  }
}

}  // namespace plimsoll
