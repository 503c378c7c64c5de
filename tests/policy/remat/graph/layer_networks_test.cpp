// Checkmate's public training graphs, made from layers: sizes, edges, peaks, and the two budgets
// whose optima are proven.
#include "support/layer_networks.hpp"

#include "policy/graph/gap_bound.hpp"
#include "policy/remat/graph/graph_here.hpp"
#include "support/oracles.hpp"
#include "support/policies.hpp"

#include <numeric>

namespace plimsoll {
namespace {

using test::GraphHere;
using test::TrainingGraph;

/// A picosecond for each operation.
std::string yaml_of(const TrainingGraph& graph) {
  std::string yaml = "workload: g\ngraph:\n  operators:\n";
  for (std::size_t v = 0; v < graph.bytes.size(); ++v) {
    std::string inputs;
    for (const std::uint32_t read : graph.reads[v])
      inputs += fmt::format("{}v{}", inputs.empty() ? "" : ", ", read);
    yaml +=
        fmt::format("    - {{name: o{0}, inputs: [{1}], time: {2} ps, outputs: {{v{0}: {3} B}}}}\n",
                    v, inputs, graph.operations[v], graph.bytes[v]);
  }
  return yaml;
}

TrainingGraph graph_of(const std::string& name) {
  if (name == "VGG16") return test::vgg_graph(test::kVgg16);
  if (name == "VGG19") return test::vgg_graph(test::kVgg19);
  if (name == "FCN-8") return test::fcn8_graph();
  if (name == "SegNet") return test::segnet_graph();
  if (name == "U-Net") return test::unet_graph();
  if (name == "MobileNet") return test::mobilenet_graph();
  REQUIRE(name == "ResNet-50");
  return test::resnet50_graph();
}

}  // namespace

TEST_CASE("training graphs made from layers have the sizes of Checkmate's public ones") {
  const nlohmann::json oracle = test::oracle("checkmate_graphs.json");
  REQUIRE(oracle.at("graphs").size() == 7);
  for (const nlohmann::json& row : oracle.at("graphs")) {
    const auto name = row.at("name").get<std::string>();
    CAPTURE(name);
    const TrainingGraph graph = graph_of(name);
    CHECK(graph.bytes.size() == row.at("operators"));
    CHECK(graph.edges() == row.at("edges"));
    const GraphHere it(test::workload_of(yaml_of(graph)), test::one_gpu({}));
    CHECK(largest_step(it.graph) == row.at("largest_step"));
    CHECK(test::play_policy("none", it.workload, it.platform).peak(MemoryId{0}) ==
          row.at("order_peak"));
  }
}

TEST_CASE("FCN-8 within nine and eight tenths of its memory takes the proven least time") {
  const TrainingGraph graph = test::fcn8_graph();
  const GraphHere it(test::workload_of(yaml_of(graph)), test::one_gpu({}));
  const auto peak = test::play_policy("none", it.workload, it.platform).peak(MemoryId{0});
  const std::int64_t once =
      std::accumulate(graph.operations.begin(), graph.operations.end(), std::int64_t{0});
  const nlohmann::json oracle = test::oracle("checkmate_graphs.json");
  REQUIRE(oracle.at("fcn8_optima").size() == 2);
  for (const nlohmann::json& optimum : oracle.at("fcn8_optima")) {
    const auto tenths = optimum.at("budget_tenths").get<std::int64_t>();
    CAPTURE(tenths);
    const std::string budget = fmt::format(", budget: {} B", (peak * tenths + 9) / 10);
    const auto played = [&](const char* policy) {
      return test::play_policy(test::with_parameters(policy, budget), it.workload, it.platform);
    };
    const test::Played searched = played("remat/search"), proven = played("remat/checkmate");
    // Percent, with four digits.
    const double more = 100 * static_cast<double>(searched.execution.makespan.count() - once) /
                        static_cast<double>(once);
    CHECK(more == Approx(optimum.at("more_time_percent").get<double>()).margin(0.00005));
    CHECK(proven.execution.makespan == searched.execution.makespan);
    // Proven to these digits: a solver in floats leaves less than a ten-thousandth of the reruns.
    const std::int64_t time = searched.execution.makespan.count();
    CHECK((time - proven.plan.bounds.makespan->count()) * 10'000 <= time - once);
  }
}

}  // namespace plimsoll
