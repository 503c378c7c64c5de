// Compute graphs as published instances have them: tests/oracles/rematerialization_graphs.json.
#include "support/chains.hpp"
#include "support/policies.hpp"

#include <fstream>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace plimsoll {
namespace {

using nlohmann::json;

/// Node v is operator `v`, which makes the value `v` and reads those of its predecessors.
std::string compute_graph_yaml(const json& graph, const char* unread) {
  const auto n = graph["n"].get<std::size_t>();
  std::vector<std::string> inputs(n);
  for (const json& edge : graph["edges"]) {
    std::string& of = inputs[edge[1].get<std::size_t>()];
    of += fmt::format("{}v{}", of.empty() ? "" : ", ", edge[0].get<int>());
  }
  std::string yaml = fmt::format("workload: g\ngraph:\n  unread: {}\n  operators:\n", unread);
  for (std::size_t v = 0; v < n; ++v)
    yaml +=
        fmt::format("    - {{name: o{0}, inputs: [{1}], time: {2} ps, outputs: {{v{0}: {3} B}}}}\n",
                    v, inputs[v], graph["dur"][v].get<int>(), graph["mem"][v].get<int>());
  return yaml;
}

}  // namespace

TEST_CASE("`none` on a compute graph has the peak of the order of its file") {
  std::ifstream file(std::string(PLIMSOLL_SOURCE_DIR) +
                     "/tests/oracles/rematerialization_graphs.json");
  const json oracle = json::parse(file);
  const Platform platform = test::one_gpu({});
  int checked = 0;
  for (const auto& [name, graph] : oracle["graphs"].items())
    for (const auto& [convention, unread] :
         {std::pair("sink_free_after_step", "free"), std::pair("sink_retained_to_end", "retain")}) {
      CAPTURE(name, convention);
      const Workload workload = test::workload_of(compute_graph_yaml(graph, unread));
      const test::Played run = test::play_policy("none", workload, platform);
      REQUIRE(run.execution.status == RunStatus::ok);
      test::require_claims_hold(run);
      CHECK(run.peak(MemoryId{0}) ==
            graph[convention]["no_recompute_index_order_peak"].get<std::int64_t>());
      CHECK(run.execution.makespan.count() == graph["total_dur"].get<std::int64_t>());
      ++checked;
    }
  CHECK(checked == 16);
}

}  // namespace plimsoll
