#include "policy/graph/rerun_groups.hpp"

#include <algorithm>
#include <numeric>

#include <boost/pending/disjoint_sets.hpp>

namespace plimsoll {

namespace {

/// Who changes a value in place.
struct ChangesOfValue {
  std::uint32_t last = OperatorGraph::kNone;  ///< of those that are part of its making
  std::vector<std::uint32_t> later = {};      ///< others, that end what may run again; ascending
};

/// By value. What only nodes that run once make or change has no state that is made again.
std::vector<ChangesOfValue> changes_of_values(const OperatorGraph& graph, ChangesByOnce changes) {
  std::vector<ChangesOfValue> of(graph.values.size());
  for (std::uint32_t node = 0; node < graph.nodes.size(); ++node)
    for (const std::uint32_t value : graph.nodes[node].changes) {
      const bool is_later = changes == ChangesByOnce::end && graph.nodes[node].runs_once &&
                            !graph.nodes[graph.values[value].maker].runs_once;
      if (is_later)
        of[value].later.push_back(node);
      else
        of[value].last = node;
    }
  return of;
}

/// Sets until when groups may run again.
void limit_groups(RerunGroups& all, const OperatorGraph& graph,
                  std::span<const ChangesOfValue> changes) {
  all.changed_by_once.assign(graph.values.size(), OperatorGraph::kNone);
  for (std::uint32_t v = 0; v < graph.values.size(); ++v) {
    const std::vector<std::uint32_t>& later = changes[v].later;
    if (later.empty()) continue;
    all.changed_by_once[v] = later.front();
    const OperatorGraph::Value& value = graph.values[v];
    const auto limit = [&](std::uint32_t node, std::uint32_t end) {
      std::uint32_t& until = all.groups[all.of_node[node]].until;
      until = std::min(until, end);
    };
    for (const std::uint32_t reader : value.readers)
      if (const auto next = std::ranges::upper_bound(later, reader); next != later.end())
        limit(reader, *next);
    if (value.stays || value.readers.back() > later.front()) limit(value.maker, later.front());
  }
}

}  // namespace

RerunGroups rerun_groups(const OperatorGraph& graph, ChangesByOnce by_once) {
  const std::size_t nodes = graph.nodes.size();
  std::vector<std::uint32_t> rank(nodes, 0), parent(nodes);
  std::iota(parent.begin(), parent.end(), 0u);
  boost::disjoint_sets<std::uint32_t*, std::uint32_t*> sets(rank.data(), parent.data());

  const std::vector<ChangesOfValue> changes = changes_of_values(graph, by_once);
  for (std::uint32_t v = 0; v < graph.values.size(); ++v) {
    if (changes[v].last == OperatorGraph::kNone) continue;
    for (const std::uint32_t reader : graph.values[v].readers)
      if (reader <= changes[v].last) sets.union_set(graph.values[v].maker, reader);
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
  limit_groups(all, graph, changes);
  return all;
}

void add_returns(RerunGroups& groups, const OperatorGraph& graph,
                 std::span<const std::int64_t> prices) {
  const std::vector<ChangesOfValue> changes = changes_of_values(graph, ChangesByOnce::end);
  groups.of_value.assign(graph.values.size(), OperatorGraph::kNone);
  for (std::uint32_t value = 0; value < graph.values.size(); ++value) {
    if (prices[value] <= 0) continue;
    groups.of_value[value] = static_cast<std::uint32_t>(groups.groups.size());
    const auto& [last, later] = changes[value];
    groups.groups.push_back(
        {.time = prices[value],
         .returns = value,
         .after = last == OperatorGraph::kNone ? graph.values[value].maker : last,
         .until = later.empty() ? OperatorGraph::kNone : later.front()});
  }
}

}  // namespace plimsoll
