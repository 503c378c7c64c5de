#include "policy/remat/graph/separators/run_units.hpp"

#include "workload/core/topological_order.hpp"

#include <algorithm>
#include <numeric>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>

namespace plimsoll {

namespace {

/// What a node reads, and what has to come before it where storages are changed in place.
std::vector<Need> needs_of_nodes(const OperatorGraph& graph, std::uint32_t end) {
  std::vector<Need> needs;
  std::vector<std::uint32_t> last_change(graph.values.size(), OperatorGraph::kNone);
  for (std::uint32_t node = 0; node < end; ++node)
    for (const std::uint32_t value : graph.nodes[node].changes) last_change[value] = node;
  for (std::uint32_t v = 0; v < graph.values.size(); ++v) {
    std::uint32_t before = graph.values[v].maker;
    for (const std::uint32_t reader : graph.values[v].readers) {
      if (reader >= end) break;
      needs.emplace_back(reader, before);
      if (last_change[v] != OperatorGraph::kNone && reader <= last_change[v]) before = reader;
    }
  }
  return needs;
}

/// By node: the group of one that may run again, else a number of its own.
std::vector<std::uint32_t> first_parts(const RerunGroups& groups, std::uint32_t end) {
  std::vector<std::uint32_t> parts;
  for (std::uint32_t node = 0; node < end; ++node) {
    const RerunGroups::Group& group = groups.groups[groups.of_node[node]];
    parts.push_back(group.runs_once ? node : group.nodes.front());
  }
  return parts;
}

/// By node: of its part or of those that need each other, the first node.
std::vector<std::uint32_t> joined_parts(const std::vector<std::uint32_t>& parts,
                                        const std::vector<Need>& needs) {
  boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS> graph(parts.size());
  for (const auto& [node, needed] : needs)
    if (parts[node] != parts[needed]) boost::add_edge(parts[node], parts[needed], graph);
  std::vector<std::uint32_t> component(parts.size());
  const auto index = boost::get(boost::vertex_index, graph);
  boost::strong_components(graph, boost::make_iterator_property_map(component.begin(), index));
  std::vector<std::uint32_t> first(parts.size(), OperatorGraph::kNone), joined;
  for (const std::uint32_t part : parts)
    first[component[part]] = std::min(first[component[part]], part);
  for (const std::uint32_t part : parts) joined.push_back(first[component[part]]);
  return joined;
}

}  // namespace

std::vector<RunUnit> run_units(const OperatorGraph& graph, const RerunGroups& groups,
                               std::uint32_t end) {
  const std::vector<Need> needs = needs_of_nodes(graph, end);
  std::vector<std::uint32_t> of_node = joined_parts(first_parts(groups, end), needs);
  std::vector<Need> between;
  for (const auto& [node, needed] : needs)
    if (of_node[node] != of_node[needed]) between.emplace_back(of_node[node], of_node[needed]);
  // Numbers of nodes that are no first of a unit stay without nodes.
  std::vector<std::uint32_t> place(end, OperatorGraph::kNone);
  std::vector<RunUnit> units;
  for (const std::uint32_t first : topological_order(end, between).order)
    if (of_node[first] == first) {
      place[first] = static_cast<std::uint32_t>(units.size());
      units.emplace_back();
    }
  for (std::uint32_t node = 0; node < end; ++node) {
    RunUnit& unit = units[place[of_node[node]]];
    unit.nodes.push_back(node);
    unit.runs_once = unit.runs_once || groups.groups[groups.of_node[node]].runs_once;
  }
  for (const auto& [first, needed] : between) units[place[first]].needs.push_back(place[needed]);
  for (RunUnit& unit : units) {
    std::ranges::sort(unit.needs);
    const auto rest = std::ranges::unique(unit.needs);
    unit.needs.erase(rest.begin(), rest.end());
  }
  return units;
}

}  // namespace plimsoll
