#include "policy/remat/graph/search/rerun_moves.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

constexpr std::size_t kMostInClosure = 25;

}  // namespace

bool RerunMoves::can_add(const StagedSchedule& plan, const Rerun& rerun) const {
  if (!plan.may_run(rerun) || plan.has(rerun)) return false;
  return !is_used_up(plan, rerun.group);
}

bool RerunMoves::is_used_up(const StagedSchedule& plan, std::uint32_t group) const {
  return groups.groups[group].returns == OperatorGraph::kNone &&
         plan.stages_of(group).size() + 1 >= computations;
}

bool RerunMoves::is_after(StagedSchedule::Key step, const Rerun& rerun) const {
  const std::vector<std::uint32_t>& nodes = groups.groups[rerun.group].nodes;
  return StagedSchedule::key(rerun.stage, nodes.empty() ? 0 : nodes.front()) > step;
}

std::vector<Rerun> RerunMoves::closure(const StagedSchedule& plan, StagedSchedule::Key step,
                                       const Rerun& rerun) const {
  std::vector<Rerun> all{rerun};
  for (std::size_t next = 0; next < all.size(); ++next)
    for (const std::uint32_t node : groups.groups[all[next].group].nodes)
      for (const std::uint32_t value : graph.nodes[node].reads) {
        const std::uint32_t maker = graph.values[value].maker;
        const Rerun input{rerun.stage, groups.of_node[maker]};
        if (std::ranges::find(all, input) != all.end() || !can_add_after(plan, step, input))
          continue;
        const auto source = plan.latest_source(value, StagedSchedule::key(rerun.stage, node));
        if (plan.made_at(value, source) > step) continue;
        if (plan.last_use(value, source) >= StagedSchedule::key(rerun.stage, 0)) continue;
        if (all.size() == kMostInClosure) return {};
        all.push_back(input);
      }
  return all;
}

std::optional<Rerun> RerunMoves::early(const StagedSchedule& plan, StagedSchedule::Key step,
                                       const Rerun& rerun) const {
  std::uint32_t stage = rerun.stage;
  for (const std::uint32_t node : groups.groups[rerun.group].nodes)
    for (const std::uint32_t value : graph.nodes[node].reads) {
      const std::uint32_t maker = graph.values[value].maker;
      if (groups.of_node[maker] == rerun.group) continue;
      const auto source = plan.latest_source(value, StagedSchedule::key(rerun.stage, node));
      stage = std::min(stage, StagedSchedule::stage_of(plan.last_use(value, source)));
    }
  const Rerun it{stage, rerun.group};
  if (stage >= rerun.stage || stage <= StagedSchedule::stage_of(step) || !can_add(plan, it))
    return std::nullopt;
  return it;
}

}  // namespace plimsoll
