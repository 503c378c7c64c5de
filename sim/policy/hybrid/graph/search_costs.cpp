#include "policy/hybrid/graph/search_costs.hpp"

#include "base/dense_id.hpp"
#include "policy/hybrid/graph/energy_costs.hpp"
#include "policy/offload/copies/storage_room.hpp"
#include "policy/offload/copies/swap_timing.hpp"

#include <algorithm>
#include <numeric>

namespace plimsoll {

namespace {

/// Of the time of its copies, what the return of a value costs where nothing waits for it: what
/// moves less is preferred.
constexpr std::int64_t kTimeParts = 64;

/// Which values hold no part of another and are none.
std::vector<bool> whole_values(const OperatorGraph& graph) {
  std::vector<bool> is_whole(graph.values.size(), true);
  for (std::uint32_t value = 0; value < graph.values.size(); ++value)
    if (const std::uint32_t around = graph.values[value].inside; around != OperatorGraph::kNone)
      is_whole[value] = is_whole[around] = false;
  return is_whole;
}

/// By value, the time of its copies out and back; 0 where it cannot leave.
std::vector<std::int64_t> times_of_copies(const Problem& problem, const OffloadMemories& memories,
                                          const OperatorGraph& graph) {
  const std::vector<bool> is_whole = whole_values(graph);
  const SwapTiming timing(problem, memories);
  std::vector<std::int64_t> times(graph.values.size(), 0);
  std::vector<std::uint32_t> by_size(graph.values.size());
  std::iota(by_size.begin(), by_size.end(), 0u);
  std::ranges::stable_sort(by_size, std::ranges::greater{},
                           [&](std::uint32_t value) { return graph.values[value].bytes; });
  StorageRoom room(problem, memories.storage);
  for (const std::uint32_t number : by_size) {
    const OperatorGraph::Value& value = graph.values[number];
    const bool goes = problem.workload[value.tensor].lifetime == Lifetime::step;
    if (!goes || !is_whole[number] || value.held_until != OperatorGraph::kNone) continue;
    if (value.bytes == Bytes{} || value.readers.empty()) continue;
    if (value.readers.back() <= value.maker + 1 || !room.take(value.bytes)) continue;
    const Time both = timing.copy_out(value.bytes) + timing.copy_in(value.bytes);
    times[number] = std::max<std::int64_t>(both.count(), 1);
  }
  return times;
}

}  // namespace

std::int64_t SearchCosts::of_wait(std::int64_t ps) const {
  return objective == PlanObjective::time ? ps : in_pj(idle * Time{ps});
}

std::optional<std::int64_t> SearchCosts::of_plan(const Plan& plan, const Problem& problem) const {
  if (!plan.claims.makespan) return std::nullopt;
  if (objective == PlanObjective::time) return plan.claims.makespan->count();
  if (plan.claims.energy) return in_pj(*plan.claims.energy);
  if (problem.judge == nullptr) return std::nullopt;
  const Judgement judgement = problem.judge(plan, problem);
  if (!judgement.is_ok || !judgement.energy) return std::nullopt;
  return in_pj(*judgement.energy);
}

SearchCosts search_costs(const Problem& problem, const OffloadMemories& memories,
                         const OperatorGraph& graph, PlanObjective objective, Power worth) {
  SearchCosts costs{.objective = objective, .idle = problem.platform.idle_power() + worth};
  costs.copy_times = times_of_copies(problem, memories, graph);
  costs.copies = costs.copy_times;
  for (const OperatorGraph::Node& node : graph.nodes) costs.runs.push_back(node.time.count());
  if (objective == PlanObjective::time) {
    for (std::int64_t& copy : costs.copies)
      if (copy > 0) copy = copy / kTimeParts + 1;
    return costs;
  }
  const std::vector<Energy> runs = run_energies(problem, memories.processor, graph);
  for (std::size_t node = 0; node < graph.nodes.size(); ++node)
    costs.runs[node] = in_pj(runs[node] + worth * graph.nodes[node].time);
  const CopyEnergy energy(problem, memories);
  for (std::size_t value = 0; value < graph.values.size(); ++value)
    if (costs.copies[value] > 0)
      costs.copies[value] =
          std::max<std::int64_t>(in_pj(energy.both_ways(graph.values[value].bytes)), 1);
  return costs;
}

}  // namespace plimsoll
