#include "policy/remat/segments/runs_within.hpp"

#include "policy/budget/budget_limit.hpp"
#include "policy/budget/claims_with_room.hpp"
#include "policy/remat/chain/chain_sequence.hpp"
#include "policy/remat/segments/keep_all.hpp"

#include <utility>

namespace plimsoll {

namespace {

/// Planners of chains count by stages: what a backward reads of a stage far away may not be in their model.
Planned within_budget(Planned planned, const Problem& problem, ProcessorId processor,
                      Bytes budget) {
  const auto* plan = std::get_if<Plan>(&planned);
  if (plan == nullptr) return planned;
  const Bytes needs =
      claimed_peak(plan->claims, problem.platform[processor].memory).value_or(Bytes{});
  if (needs <= budget) return planned;
  return not_found(problem, processor, budget, needs);
}

}  // namespace

Planned plan_that_runs(const Problem& problem, ProcessorId processor, Bytes budget,
                       const BudgetPlan& plan, const BudgetPlan& quick) {
  const MemoryId home = problem.platform[processor].memory;
  if (problem.platform[home].allocator == AllocatorKind::ideal)
    return within_budget(plan(problem, budget), problem, processor, budget);
  const auto limited = [home](const BudgetPlan& ask, const Problem& of, Bytes within) {
    Planned planned = ask(of, within);
    if (auto* found = std::get_if<Plan>(&planned)) limit_to(*found, of, home, within);
    return planned;
  };
  const auto runs = [](const Planned& planned) {
    const auto* found = std::get_if<Plan>(&planned);
    return found != nullptr && found->claims.makespan;
  };
  const auto best = [&](const Problem& of, Bytes within) {
    Planned planned = limited(quick && within != budget ? quick : plan, of, within);
    const auto* first = std::get_if<Plan>(&planned);
    if (!quick || within != budget || first == nullptr || first->claims.makespan) return planned;
    Planned other = limited(quick, of, within);
    if (!runs(other)) return planned;
    std::get<Plan>(other).bounds = first->bounds;
    return other;
  };
  BudgetPlanner planner{
      .plan = best,
      .bound = [least = chain_costs(problem, processor).compute_time()](Bytes) { return least; },
      .most = keep_all(problem, processor, "").needs,
      .parts = budget_parts_for(problem, PlanningTime::quadratic)};
  if (quick)
    planner.has_plan = [&](const Problem& of, Bytes within) {
      return runs(limited(quick, of, within));
    };
  return plan_for_budget(problem, processor, budget, planner);
}

}  // namespace plimsoll
