#include "policy/remat/model_planner.hpp"

#include "policy/remat/keep_all.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

Planned plan_by_model(const Problem& problem, const BudgetParameters& parameters,
                      const ModelPlanner& planner) {
  const ProcessorId processor = processor_for(problem, parameters);
  const Bytes budget = budget_for(problem, processor, parameters);
  const ChainCosts costs = chain_costs(problem, processor);
  if (KeepAll all = keep_all(problem, processor, parameters.name); budget >= all.needs) {
    all.plan.bounds.makespan = costs.compute_time();
    return std::move(all.plan);
  }
  if (!has_normal_form(costs))
    refuse_parameter(parameters.where,
                     fmt::format("{} assumes that to forget a stage's tensors takes no more memory "
                                 "than to keep them; a stage of this chain takes more",
                                 parameters.name));
  const ModelTask task{costs, chain_model(costs), problem.workload.is_chain};
  const ModelSchedule found = planner.solve(task, std::min(budget.count(), task.model.store_all));
  if (found.sequence.empty())
    return infeasible(problem, processor, budget, Bytes{planner.smallest_budget(task)});
  Plan plan = plan_of(problem, processor, found.sequence, parameters.name);
  plan.bounds.makespan = task.is_chain ? Time{found.bound} : costs.compute_time();
  return plan;
}

}  // namespace plimsoll
