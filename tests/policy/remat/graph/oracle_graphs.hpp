/// The small graphs with proven fronts: tests/oracles/rematerialization_graphs.json.
#pragma once

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace plimsoll::test {

/// Node v is operator `v`, which makes the value `v` and reads those of its predecessors.
inline std::string compute_graph_yaml(const nlohmann::json& graph, const char* unread) {
  const auto n = graph["n"].get<std::size_t>();
  std::vector<std::string> inputs(n);
  for (const nlohmann::json& edge : graph["edges"]) {
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

/// Fronts of 12 small graphs, by graph and convention.
inline nlohmann::json rematerialization_oracle() {
  std::ifstream file(std::string(PLIMSOLL_SOURCE_DIR) +
                     "/tests/oracles/rematerialization_graphs.json");
  return nlohmann::json::parse(file);
}

/// What the oracle calls what the workload calls `unread`.
inline constexpr std::pair<const char*, const char*> kConventions[] = {
    {"sink_free_after_step", "free"}, {"sink_retained_to_end", "retain"}};

}  // namespace plimsoll::test
