#include "policy/remat/graph/rules/graph_segments.hpp"

#include "policy/graph/staged_sequence.hpp"

#include <algorithm>
#include <cmath>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/biconnected_components.hpp>
#include <fmt/format.h>

namespace plimsoll {

GraphSegments::GraphSegments(const Problem& problem, const OperatorGraph& graph,
                             const RerunGroups& groups, SegmentCandidates candidates)
    : graph_(graph), groups_(groups), forwards_(problem.workload.forwards) {
  while (forward_groups_ < groups.groups.size() &&
         groups.groups[forward_groups_].nodes.front() < forwards_)
    ++forward_groups_;
  is_candidate_.assign(forward_groups_, candidates == SegmentCandidates::all);
  if (candidates == SegmentCandidates::articulation) find_articulation();
}

/// With a vertex in front of what reads no forward, and one behind what no forward reads.
void GraphSegments::find_articulation() {
  using Graph = boost::adjacency_list<boost::setS, boost::vecS, boost::undirectedS>;
  Graph graph(forward_groups_ + 2);
  std::vector<bool> reads(forward_groups_, false), is_read(forward_groups_, false);
  for (const OperatorGraph::Value& value : graph_.values) {
    if (value.maker >= forwards_) break;
    const std::uint32_t maker = groups_.of_node[value.maker];
    for (const std::uint32_t reader : value.readers) {
      if (reader >= forwards_ || groups_.of_node[reader] == maker) continue;
      boost::add_edge(maker, groups_.of_node[reader], graph);
      reads[groups_.of_node[reader]] = is_read[maker] = true;
    }
  }
  for (std::uint32_t group = 0; group < forward_groups_; ++group) {
    if (!reads[group]) boost::add_edge(group, forward_groups_, graph);
    if (!is_read[group]) boost::add_edge(group, forward_groups_ + 1, graph);
  }
  std::vector<std::uint32_t> points;
  boost::articulation_points(graph, std::back_inserter(points));
  for (const std::uint32_t point : points)
    if (point < forward_groups_) is_candidate_[point] = true;
}

Bytes GraphSegments::made_by(std::uint32_t group) const {
  Bytes bytes;
  for (const std::uint32_t node : groups_.groups[group].nodes)
    for (const std::uint32_t value : graph_.nodes[node].makes) bytes += graph_.values[value].bytes;
  return bytes;
}

std::vector<std::uint32_t> GraphSegments::root_checkpoints() const {
  const auto count = std::ranges::count(is_candidate_, true);
  auto every = static_cast<std::int64_t>(std::sqrt(static_cast<double>(count)));
  every = std::max<std::int64_t>(every, 1);
  std::vector<std::uint32_t> checkpoints;
  std::int64_t seen = 0;
  for (std::uint32_t group = 0; group < forward_groups_; ++group)
    if (is_candidate_[group] && ++seen % every == 0) checkpoints.push_back(group);
  return checkpoints;
}

std::vector<std::uint32_t> GraphSegments::greedy_checkpoints(Bytes threshold) const {
  std::vector<std::uint32_t> checkpoints;
  Bytes counter;
  for (std::uint32_t group = 0; group < forward_groups_; ++group) {
    counter += made_by(group);
    if (!is_candidate_[group] || counter <= threshold) continue;
    checkpoints.push_back(group);
    counter = Bytes{};
  }
  return checkpoints;
}

std::vector<Bytes> GraphSegments::thresholds(std::size_t most) const {
  std::vector<Bytes> sums{Bytes{}};
  for (std::uint32_t group = 0; group < forward_groups_; ++group)
    if (const Bytes made = made_by(group); made > Bytes{}) sums.push_back(sums.back() + made);
  if (sums.size() <= most) return sums;
  std::vector<Bytes> spaced;
  for (std::size_t i = 0; i < most; ++i) spaced.push_back(sums[i * (sums.size() - 1) / (most - 1)]);
  return spaced;
}

/// By group, the first backward that reads what it makes.
std::vector<std::uint32_t> GraphSegments::first_readers() const {
  std::vector<std::uint32_t> first(forward_groups_, OperatorGraph::kNone);
  for (const OperatorGraph::Value& value : graph_.values) {
    if (value.maker >= forwards_) break;
    std::uint32_t& of_group = first[groups_.of_node[value.maker]];
    const auto reader = std::ranges::lower_bound(value.readers, forwards_);
    if (reader != value.readers.end()) of_group = std::min(of_group, *reader);
  }
  return first;
}

void GraphSegments::add_segment(std::uint32_t begin, std::uint32_t end,
                                const std::vector<std::uint32_t>& first_readers,
                                std::vector<Rerun>& reruns) const {
  std::uint32_t stage = OperatorGraph::kNone;
  for (std::uint32_t group = begin; group < end; ++group)
    stage = std::min(stage, first_readers[group]);
  if (stage == OperatorGraph::kNone) return;
  std::vector<bool> is_needed(end - begin, false);
  for (std::uint32_t group = end; group-- > begin;) {
    if (groups_.groups[group].runs_once) continue;
    if (first_readers[group] == OperatorGraph::kNone && !is_needed[group - begin]) continue;
    reruns.push_back({stage, group});
    for (const std::uint32_t node : groups_.groups[group].nodes)
      for (const std::uint32_t value : graph_.nodes[node].reads)
        if (const std::uint32_t maker = groups_.of_node[graph_.values[value].maker];
            maker >= begin && maker < end)
          is_needed[maker - begin] = true;
  }
}

std::vector<std::uint32_t> GraphSegments::sequence(
    std::span<const std::uint32_t> checkpoints) const {
  const std::vector<std::uint32_t> readers = first_readers();
  std::vector<Rerun> reruns;
  std::uint32_t begin = 0;
  for (const std::uint32_t checkpoint : checkpoints) {
    add_segment(begin, checkpoint, readers, reruns);
    begin = checkpoint + 1;
  }
  // What follows the last checkpoint is read at once.
  return staged_sequence(groups_, std::move(reruns));
}

void refuse_without_backwards(const Problem& problem, const SingleProcessorParameters& parameters) {
  if (problem.workload.forwards != problem.workload.operators.size()) return;
  refuse(parameters.where,
         fmt::format("`{}` needs forwards and backwards; `{}` has no backwards, or nothing says "
                     "which operators they are",
                     parameters.name, problem.workload.name),
         "`remat/search`, `remat/xla` and `remat/treewidth` plan for compute graphs");
}

}  // namespace plimsoll
