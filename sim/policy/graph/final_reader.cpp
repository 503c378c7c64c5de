#include "policy/graph/final_reader.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

/// Something of no bytes, by which the reader comes after a node that makes nothing to read.
std::uint32_t add_token(OperatorGraph& graph, std::uint32_t maker) {
  const auto token = static_cast<std::uint32_t>(graph.values.size());
  graph.nodes[maker].makes.push_back(token);
  graph.values.push_back({.maker = maker});
  return token;
}

}  // namespace

OperatorGraph with_final_reader(const OperatorGraph& graph) {
  if (std::ranges::none_of(graph.values, &OperatorGraph::Value::stays)) return graph;
  OperatorGraph ended = graph;
  OperatorGraph::Node last{.runs_once = true};
  for (std::uint32_t node = 0; node < graph.nodes.size(); ++node) {
    bool is_read = false;
    for (const std::uint32_t value : graph.nodes[node].makes) {
      is_read = is_read || graph.values[value].stays || !graph.values[value].readers.empty();
      if (graph.values[value].stays) last.reads.push_back(value);
    }
    if (!is_read) last.reads.push_back(add_token(ended, node));
  }
  for (const std::uint32_t value : last.reads) {
    ended.values[value].stays = false;
    ended.values[value].readers.push_back(static_cast<std::uint32_t>(graph.nodes.size()));
  }
  ended.nodes.push_back(std::move(last));
  return ended;
}

}  // namespace plimsoll
