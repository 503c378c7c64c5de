#include "policy/graph/rerun_groups.hpp"

#include <algorithm>
#include <numeric>

#include <boost/pending/disjoint_sets.hpp>

namespace plimsoll {

namespace {

/// By value, the last node that changes it in place, or kNone.
std::vector<std::uint32_t> last_changes(const OperatorGraph& graph) {
  std::vector<std::uint32_t> last(graph.values.size(), OperatorGraph::kNone);
  for (std::uint32_t node = 0; node < graph.nodes.size(); ++node)
    for (const std::uint32_t value : graph.nodes[node].changes) last[value] = node;
  return last;
}

}  // namespace

RerunGroups rerun_groups(const OperatorGraph& graph) {
  const std::size_t nodes = graph.nodes.size();
  std::vector<std::uint32_t> rank(nodes, 0), parent(nodes);
  std::iota(parent.begin(), parent.end(), 0u);
  boost::disjoint_sets<std::uint32_t*, std::uint32_t*> sets(rank.data(), parent.data());

  const std::vector<std::uint32_t> last_change = last_changes(graph);
  for (std::uint32_t v = 0; v < graph.values.size(); ++v) {
    if (last_change[v] == OperatorGraph::kNone) continue;
    for (const std::uint32_t reader : graph.values[v].readers)
      if (reader <= last_change[v]) sets.union_set(graph.values[v].maker, reader);
  }

  RerunGroups all;
  all.of_node.resize(nodes);
  std::vector<std::uint32_t> number(nodes, OperatorGraph::kNone);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    std::uint32_t& group = number[sets.find_set(node)];
    if (group == OperatorGraph::kNone) {
      group = static_cast<std::uint32_t>(all.groups.size());
      all.groups.emplace_back();
    }
    all.of_node[node] = group;
    RerunGroups::Group& it = all.groups[group];
    it.nodes.push_back(node);
    it.time += graph.nodes[node].time.count();
    it.runs_once = it.runs_once || graph.nodes[node].runs_once;
  }
  return all;
}

void add_returns(RerunGroups& groups, const OperatorGraph& graph,
                 std::span<const std::int64_t> prices) {
  const std::vector<std::uint32_t> last_change = last_changes(graph);
  groups.of_value.assign(graph.values.size(), OperatorGraph::kNone);
  for (std::uint32_t value = 0; value < graph.values.size(); ++value) {
    if (prices[value] <= 0) continue;
    groups.of_value[value] = static_cast<std::uint32_t>(groups.groups.size());
    const std::uint32_t changed = last_change[value];
    groups.groups.push_back(
        {.time = prices[value],
         .returns = value,
         .after = changed == OperatorGraph::kNone ? graph.values[value].maker : changed});
  }
}

}  // namespace plimsoll
