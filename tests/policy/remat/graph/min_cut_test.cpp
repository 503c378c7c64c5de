// What a minimum cut keeps of small chains, and its plans as the engine plays them.
#include "policy/remat/graph/graph_here.hpp"
#include "policy/remat/graph/oracle_graphs.hpp"
#include "policy/remat/graph/random_graphs.hpp"
#include "policy/remat/graph/rules/forward_cut.hpp"
#include "property/random_generators.hpp"
#include "support/library.hpp"
#include "support/policies.hpp"
#include "support/sample.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

/// A product, two element-wise operators and a product: the last backward reads what they leave,
/// the second one what the first product leaves, which is `wide`; between the two are `narrow` B.
std::string four_operators(int wide, int narrow) {
  return fmt::format(R"(
workload: p
batch: 1
profile:
  version: 1
  inputs: {{x: 8 B}}
  operators:
    - {{name: a, class: matmul, forward: {{time: 4 ps, reads: [x], makes: {{y0: {0} B}}}},
       backward: {{time: 8 ps, reads: [g0, x], makes: {{gx: 8 B}}}}}}
    - {{name: b, class: elementwise, forward: {{time: 1 ps, reads: [y0], makes: {{y1: {1} B}}}},
       backward: {{time: 1 ps, reads: [g1], makes: {{g0: {0} B}}}}}}
    - {{name: c, class: elementwise, forward: {{time: 2 ps, reads: [y1], makes: {{y2: {0} B}}}},
       backward: {{time: 1 ps, reads: [g2], makes: {{g1: {1} B}}}}}}
    - {{name: d, class: matmul, forward: {{time: 4 ps, reads: [y2], makes: {{z: 1 B}}}},
       backward: {{time: 8 ps, reads: [y2], makes: {{g2: {0} B}}}}}}
)",
                     wide, narrow);
}

std::string cut_runs(const std::string& yaml, const std::string& parameters) {
  const Workload workload = test::workload_of(yaml);
  const auto it = std::get<test::Played>(test::played_or_smallest(
      "{name: remat/min-cut" + parameters + "}", workload, test::one_gpu({})));
  return test::runs_of(it.plan, workload);
}

const std::string kForwards = "a.forward b.forward c.forward d.forward ";
const std::string kBackwards = "d.backward c.backward b.backward a.backward";

}  // namespace

TEST_CASE("the default cut keeps what a backward reads as it is") {
  CHECK(cut_runs(four_operators(100, 50), "") == kForwards + kBackwards);
}

TEST_CASE("below that a cut keeps the narrowest value, and what follows runs again") {
  CHECK(cut_runs(four_operators(100, 40), ", activation_budget: 0.6") ==
        kForwards + "c.forward " + kBackwards);
}

// A tenth more for each operator between a value and the backwards, and twice as much where kernels
// that are joined would never write it: 1.21 x 2 x 45 B and less are below 1.1 x 100 B.
TEST_CASE("the price of a value is its bytes, its distance, and whether it would be written") {
  for (const int narrow : {45, 46}) {
    const test::GraphHere it(test::workload_of(four_operators(100, narrow)), test::one_gpu({}));
    const ForwardNetwork network(it.problem, it.graph, it.groups);
    const ForwardCut cut = network.cut({.for_fusion = false});
    CHECK(network.kept_bytes(cut) == Bytes{narrow == 45 ? 45 : 100});
    CHECK(network.kept_bytes(network.cut({})) == Bytes{100});
  }
}

TEST_CASE("the knapsack lets an expensive operator run again, too") {
  for (const char* solver : {"dp", "greedy", "ilp"}) {
    CAPTURE(solver);
    const std::string more = fmt::format(", solver: {}", solver);
    CHECK(cut_runs(four_operators(100, 50), ", activation_budget: 0.3" + more) ==
          kForwards + "a.forward b.forward c.forward " + kBackwards);
  }
  CHECK(cut_runs(four_operators(100, 50), ", activation_budget: 0") ==
        kForwards + "a.forward b.forward c.forward " + kBackwards);
}

TEST_CASE("dropout and products do not run again before the knapsack says so") {
  const test::GraphHere it(build(test::library_network("vgg16"), {.batch = 2}),
                           test::library_platform("v100-sxm2-host"));
  const ForwardNetwork network(it.problem, it.graph, it.groups);
  const ForwardCut cut = network.cut({.for_fusion = false, .for_list = false});
  int random = 0, products = 0;
  for (std::uint32_t node = 0; node < it.workload.forwards; ++node) {
    const Operator& op = it.workload.operators[node];
    random += op.is_random ? 1 : 0;
    products += op.operator_class == OperatorClass::matmul ? 1 : 0;
    if (op.is_random || op.operator_class == OperatorClass::matmul)
      CHECK(cut.is_banned[it.groups.of_node[node]]);
  }
  CHECK(random == 2);
  CHECK(products == 3);
}

TEST_CASE("min-cut plans of random steps and chains are claimed as they are played") {
  test::Dice dice(20261130);
  const Platform platform = test::one_gpu({});
  for (int round = 0; round < test::rounds(1000); ++round) {
    const std::string yaml = round % 3 == 0 ? test::chain_yaml(test::random_chain(dice))
                                            : test::random_recorded_step(dice, 9);
    const char* const solvers[] = {"dp", "greedy", "ilp"};
    const std::string policy =
        fmt::format("{{name: remat/min-cut, activation_budget: {} %, solver: {}}}", dice(0, 100),
                    solvers[round % 3]);
    CAPTURE(yaml, policy, round);
    const Workload workload = test::with_generators(test::workload_of(yaml), round / 3);
    (void)std::get<test::Played>(test::played_or_smallest(policy, workload, platform));
  }
}

TEST_CASE("remat/min-cut keeps less for less, whatever that does to the peak") {
  const Platform platform = test::library_platform("v100-sxm2-host");
  for (const char* network : {"gpt2-small", "resnet50", "densenet121", "vgg16"}) {
    const test::GraphHere it(
        build(test::library_network(network), {.batch = 4, .optimizer = Optimizer::sgd_momentum}),
        platform);
    const ForwardNetwork cuts(it.problem, it.graph, it.groups);
    CAPTURE(network);
    const Bytes all = cuts.kept_bytes(cuts.cut({}));
    const Bytes fewer = cuts.kept_bytes(cuts.cut({.for_fusion = false}));
    const Bytes fewest = cuts.kept_bytes(cuts.cut({.for_fusion = false, .for_list = false}));
    CHECK(fewer <= all);
    CHECK(fewest <= fewer);
  }
}

TEST_CASE("remat/min-cut refuses what has no backwards, and shares above one") {
  const Platform platform = test::one_gpu({});
  const Workload graph = test::workload_of("workload: g\ngraph:\n  - {name: o, time: 1 s}\n");
  CHECK_THROWS_WITH(test::planned("remat/min-cut", graph, platform),
                    Catch::Contains("`g` has no backwards, or nothing says which"));
  CHECK_THROWS_WITH(test::planned("{name: remat/min-cut, activation_budget: 110 %}",
                                  test::workload_of(four_operators(1, 1)), platform),
                    Catch::Contains("expected a share of at most 1"));
}

}  // namespace plimsoll
