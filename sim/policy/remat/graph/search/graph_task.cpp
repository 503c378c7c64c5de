#include "policy/remat/graph/search/graph_task.hpp"

#include "policy/claims/claims.hpp"
#include "policy/graph/gap_bound.hpp"
#include "policy/remat/graph/search/graph_planner.hpp"

#include <algorithm>

namespace plimsoll {

GraphTask::GraphTask(const Problem& of, const BudgetParameters& parameters)
    : problem(of),
      policy(parameters.name),
      processor(processor_for(of, parameters)),
      budget(budget_for(of, processor, parameters)),
      graph(operator_graph(of, processor)),
      groups(rerun_groups(graph)),
      room(room_within(budget, graph)) {}

std::optional<std::int64_t> GraphTask::bound() const {
  // More room than one operator needs may still be too little: no price of reruns helps then.
  if (room < largest_step(graph)) return std::nullopt;
  return best_gap_bound(graph, groups, room, problem.work);
}

std::vector<std::vector<Rerun>> GraphTask::starts() const {
  if (StagedSchedule(graph, groups, room).excess() == 0) return {};
  return chain_starts(problem, processor, budget, groups);
}

bool is_plain_compute_graph(const OperatorGraph& graph, const Workload& workload) {
  return graph.is_plain() && workload.forwards == workload.operators.size();
}

bool may_reorder(const OperatorGraph& graph, const Workload& workload) {
  if (!is_plain_compute_graph(graph, workload)) return false;
  for (std::uint32_t node = 1; node < graph.nodes.size(); ++node)
    if (std::ranges::none_of(graph.nodes[node].reads, [&](std::uint32_t value) {
          return graph.values[value].maker == node - 1;
        }))
      return true;
  return false;
}

Plan GraphTask::plan_of(std::span<const std::uint32_t> computations, std::int64_t bound) const {
  Plan plan = plan_of_computations(problem, graph, processor, policy, computations);
  plan.claims = claims_of(plan, problem);
  plan.bounds.makespan = graph.time() + Time{bound};
  return plan;
}

std::int64_t GraphTask::too_little() const {
  return std::max(room, largest_step(graph) - 1);
}

Infeasible GraphTask::no_plan(std::int64_t least_room, bool is_proven) const {
  Infeasible no = not_found(problem, processor, budget, graph.resident + Bytes{least_room});
  no.is_found = least_room > largest_step(graph);  // that operator needs it in any schedule
  if (!is_proven) no.why += ", as far as the search sees; that is no proof";
  return no;
}

}  // namespace plimsoll
