#include "policy/remat/graph/rerun_groups.hpp"

#include <algorithm>
#include <numeric>

#include <boost/pending/disjoint_sets.hpp>

namespace plimsoll {

RerunGroups rerun_groups(const OperatorGraph& graph) {
  const std::size_t nodes = graph.nodes.size();
  std::vector<std::uint32_t> rank(nodes, 0), parent(nodes);
  std::iota(parent.begin(), parent.end(), 0u);
  boost::disjoint_sets<std::uint32_t*, std::uint32_t*> sets(rank.data(), parent.data());

  std::vector<std::uint32_t> last_change(graph.values.size(), OperatorGraph::kNone);
  for (std::uint32_t node = 0; node < nodes; ++node)
    for (const std::uint32_t value : graph.nodes[node].changes) last_change[value] = node;
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

}  // namespace plimsoll
