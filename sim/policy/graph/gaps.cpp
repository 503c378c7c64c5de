#include "policy/graph/gaps.hpp"

#include "engine/wide.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

/// Pairs of gaps and runs, beyond which fewer runs are taken.
constexpr std::size_t kMostPairs = 1'000'000;
constexpr std::size_t kLeastRuns = 64;

/// A part of another value counts nothing, as it needs nothing where that is kept; nor does what
/// only a form leaves that nothing needs.
std::int64_t counted_bytes(const OperatorGraph::Value& value) {
  const bool is_needless = value.is_kept_only && value.readers.empty();
  return value.inside == OperatorGraph::kNone && !is_needless ? value.bytes.count() : 0;
}

std::uint32_t end_of(const OperatorGraph& graph, const OperatorGraph::Value& value) {
  if (value.stays) return static_cast<std::uint32_t>(graph.nodes.size());
  return value.readers.empty() ? value.maker : value.readers.back();
}

std::vector<Gap> find_gaps(const OperatorGraph& graph, const RerunGroups& groups, bool all) {
  std::vector<std::int64_t> made(graph.nodes.size(), 0);
  for (const OperatorGraph::Value& value : graph.values) made[value.maker] += counted_bytes(value);
  std::vector<Gap> gaps;
  for (std::uint32_t v = 0; v < graph.values.size(); ++v) {
    const OperatorGraph::Value& value = graph.values[v];
    const bool may_rerun = !groups.groups[groups.of_node[value.maker]].runs_once;
    const std::int64_t bytes = counted_bytes(value);
    if (bytes == 0 || (!may_rerun && !all)) continue;
    const Signed128 share =
        Signed128{graph.nodes[value.maker].time.count()} * bytes / made[value.maker];
    std::uint32_t last = value.maker;
    const auto add = [&](std::uint32_t use) {
      const std::uint32_t first = last + (value.is_kept_only && last == value.maker ? 0 : 1);
      const bool reruns = may_rerun && use <= groups.end_of(v);
      if (use > first && (reruns || all))
        gaps.push_back({v, last, use, first, bytes, static_cast<std::int64_t>(share), reruns});
      last = use;
    };
    for (const std::uint32_t reader : value.readers) add(reader);
    if (value.stays) add(end_of(graph, value));
  }
  return gaps;
}

std::vector<TightRun> find_runs(const OperatorGraph& graph, std::int64_t room) {
  std::vector<std::int64_t> change(graph.nodes.size() + 2, 0);
  for (const OperatorGraph::Value& value : graph.values) {
    change[value.maker] += counted_bytes(value);
    change[end_of(graph, value) + 1] -= counted_bytes(value);
  }
  std::vector<TightRun> runs;
  std::int64_t alive = 0;
  for (std::uint32_t node = 0; node < graph.nodes.size(); ++node) {
    alive += change[node];
    const std::int64_t needs = alive + graph.nodes[node].workspace.count();
    if (needs > room) runs.push_back({node, needs - room});
  }
  return runs;
}

/// One run of a group makes all its values again, so that each stands for a share of its time. Those
/// without gaps around the runs stand for none.
void share_time_of_groups(Gaps& found, const OperatorGraph& graph, const RerunGroups& groups) {
  const auto group_of = [&](std::uint32_t value) {
    return groups.of_node[graph.values[value].maker];
  };
  std::vector<bool> is_wanted(graph.values.size(), false);
  for (const Gap& gap : found.gaps)
    if (std::ranges::any_of(found.runs, [&](const TightRun& run) { return is_around(gap, run); }))
      is_wanted[gap.value] = true;
  std::vector<std::int64_t> made(groups.groups.size(), 0);
  for (std::uint32_t value = 0; value < graph.values.size(); ++value)
    if (is_wanted[value]) made[group_of(value)] += counted_bytes(graph.values[value]);
  for (Gap& gap : found.gaps) {
    const std::uint32_t group = group_of(gap.value);
    gap.time = 0;
    if (is_wanted[gap.value])
      gap.time =
          static_cast<std::int64_t>(Signed128{groups.groups[group].time} * gap.bytes / made[group]);
  }
}

}  // namespace

bool Gaps::is_impossible() const {
  return std::ranges::any_of(runs, [&](const TightRun& run) {
    std::int64_t most = 0;
    for (const Gap& gap : gaps)
      if (is_around(gap, run)) most += gap.bytes;
    return most < run.above;
  });
}

std::int64_t Gaps::most_bytes() const {
  std::int64_t most = 1;
  for (const Gap& gap : gaps) most = std::max(most, gap.bytes);
  return most;
}

Gaps gaps_of(const OperatorGraph& graph, const RerunGroups& groups, std::int64_t room, bool all,
             RunsAgain again) {
  Gaps found{find_gaps(graph, groups, all), find_runs(graph, room)};
  const std::size_t most = std::max(kLeastRuns, kMostPairs / (found.gaps.size() + 1));
  if (found.runs.size() > most) {
    std::ranges::stable_sort(found.runs, std::ranges::greater{}, &TightRun::above);
    found.runs.resize(most);
    std::ranges::sort(found.runs, {}, &TightRun::node);
  }
  if (again == RunsAgain::group) share_time_of_groups(found, graph, groups);
  return found;
}

}  // namespace plimsoll
