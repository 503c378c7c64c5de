#include "policy/hybrid/graph/stage_bound.hpp"

#include "policy/graph/gap_bound.hpp"
#include "policy/hybrid/graph/link_bound.hpp"

#include <utility>

namespace plimsoll {

namespace {

/// The forwards of each stage, and every other operator alone.
RerunGroups groups_of_stages(const OperatorGraph& graph, const ChainView& chain) {
  RerunGroups all;
  all.of_node.assign(graph.nodes.size(), OperatorGraph::kNone);
  const auto add = [&](std::uint32_t begin, std::uint32_t end, bool runs_once) {
    RerunGroups::Group group{.runs_once = runs_once};
    for (std::uint32_t node = begin; node < end; ++node) {
      all.of_node[node] = static_cast<std::uint32_t>(all.groups.size());
      group.nodes.push_back(node);
      group.time += graph.nodes[node].time.count();
    }
    all.groups.push_back(std::move(group));
  };
  for (const ChainStage& stage : chain.stages) add(stage.forward_begin, stage.forward_end, false);
  for (std::uint32_t node = 0; node < graph.nodes.size(); ++node)
    if (all.of_node[node] == OperatorGraph::kNone) add(node, node + 1, graph.nodes[node].runs_once);
  return all;
}

}  // namespace

Time stage_bound(const Problem& problem, ProcessorId processor, Bytes budget,
                 const std::optional<OffloadMemories>& memories) {
  const OperatorGraph graph = operator_graph(problem, processor);
  if (budget.is_unlimited()) return graph.time();
  const RerunGroups groups = groups_of_stages(graph, problem.chain);
  const std::int64_t room = budget.count() - graph.resident.count();
  if (room < largest_step(graph)) return Time::unlimited();
  if (memories) return link_bound(problem, *memories, graph, groups, room, RunsAgain::group);
  const auto reruns = gap_bound(graph, groups, room, problem.work, RunsAgain::group);
  return reruns ? graph.time() + Time{*reruns} : Time::unlimited();
}

}  // namespace plimsoll
