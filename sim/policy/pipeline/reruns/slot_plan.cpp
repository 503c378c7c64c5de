#include "policy/pipeline/reruns/slot_plan.hpp"

#include "policy/graph/gap_bound.hpp"
#include "policy/pipeline/reruns/attention_cores.hpp"
#include "policy/pipeline/reruns/block_reruns.hpp"
#include "policy/remat/graph/program/checkmate_planner.hpp"
#include "policy/remat/graph/program/staged_solver.hpp"

#include <algorithm>

namespace plimsoll {

SlotPlanner::SlotPlanner(SlotGraph slot, const OperatorReruns& reruns, Work work)
    : slot_(std::move(slot)),
      groups_(rerun_groups(slot_.graph, ChangesByOnce::join)),
      reruns_(reruns),
      work_(work),
      once_(judge_computations(slot_.graph, all_once(slot_.graph))->time.count()) {}

std::optional<SlotPlan> SlotPlanner::first_plan(const SlotRoom& room) {
  return plan(room, {.iterations = 0, .restarts = 0});
}

std::optional<SlotPlan> SlotPlanner::best_plan(const SlotRoom& room) {
  return plan(room, {.iterations = reruns_.iterations});
}

std::optional<SlotPlan> SlotPlanner::plan(const SlotRoom& room, RerunSearchOptions options) {
  slot_.graph.nodes[slot_.pause].workspace =
      Bytes{std::max<std::int64_t>(0, room.running - room.kept)};
  if (room.running < largest_step(slot_.graph)) return std::nullopt;
  const auto bound = gap_bound(slot_.graph, groups_, room.running, work_);
  if (!bound) return std::nullopt;
  options.seed = static_cast<std::uint64_t>(reruns_.seed);
  if (reruns_.computations) options.computations = static_cast<std::size_t>(*reruns_.computations);
  RerunSearch search(slot_.graph, groups_, options, work_);
  std::optional<StagedSchedule> best =
      search.run(room.running, *bound, std::vector<std::vector<Rerun>>{all_again()});
  const bool is_best = best && best->time() == *bound;
  if (reruns_.planner == OperatorReruns::Planner::checkmate && options.iterations != 0 && !is_best)
    solve(best, room.running);
  if (!best) return std::nullopt;
  return measured(best->computations());
}

std::optional<std::string> SlotPlanner::program_refusal(const std::string& of) const {
  return plimsoll::program_refusal(slot_.graph, groups_, of, "remat/checkmate");
}

SlotPlan SlotPlanner::plain() const {
  return measured(all_once(slot_.graph));
}

std::optional<SlotPlan> SlotPlanner::selective(const Workload& workload) const {
  const std::vector<Rerun> reruns = attention_reruns(workload, slot_, groups_);
  return with(reruns);
}

std::optional<SlotPlan> SlotPlanner::by_block(const Workload& workload,
                                              std::span<const ForwardRange> blocks) const {
  return with(block_reruns(workload, slot_, groups_, blocks));
}

std::optional<SlotPlan> SlotPlanner::full() const {
  return with(all_again());
}

std::optional<SlotPlan> SlotPlanner::with(const std::vector<Rerun>& reruns) const {
  StagedSchedule schedule(slot_.graph, groups_, 0);
  std::vector<Rerun> valid;
  for (const Rerun& it : reruns)
    if (schedule.may_run(it)) valid.push_back(it);
  if (valid.empty()) return std::nullopt;
  schedule.add(valid);
  return measured(schedule.computations());
}

/// The pause needs no workspace of its own.
SlotPlan SlotPlanner::measured(std::vector<std::uint32_t> computations) const {
  const ComputationCost cost = *judge_computations(slot_.graph, computations);
  const auto workspace = slot_.graph.nodes[slot_.pause].workspace;
  SlotPlan plan{std::move(computations)};
  for (std::size_t i = 0; i < plan.computations.size(); ++i) {
    const bool is_pause = plan.computations[i] == slot_.pause;
    const Bytes bytes = is_pause ? cost.bytes[i] - workspace : cost.bytes[i];
    if (is_pause) plan.kept = bytes.count();
    plan.peak = std::max(plan.peak, bytes.count());
  }
  plan.time = cost.time.count() - once_;
  return plan;
}

std::vector<Rerun> SlotPlanner::all_again() const {
  std::vector<Rerun> all;
  if (slot_.first_backward() >= slot_.graph.nodes.size()) return all;
  for (std::uint32_t group = 0; group < groups_.groups.size(); ++group)
    if (!groups_.groups[group].runs_once && groups_.groups[group].nodes.back() < slot_.pause)
      all.push_back({slot_.first_backward(), group});
  return all;
}

void SlotPlanner::solve(std::optional<StagedSchedule>& best, std::int64_t room) const {
  const auto known = best ? std::optional(best->time()) : std::nullopt;
  const StagedOptimum found = solve_staged_program(slot_.graph, groups_, room, known,
                                                   static_cast<int>(reruns_.nodes), work_);
  if (!found.reruns) return;
  StagedSchedule schedule(slot_.graph, groups_, room);
  schedule.add(*found.reruns);
  if (schedule.excess() == 0 && (!best || schedule.time() < best->time()))
    best = std::move(schedule);
}

}  // namespace plimsoll
