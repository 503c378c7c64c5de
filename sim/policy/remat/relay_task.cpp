#include "policy/remat/relay_task.hpp"

#include "policy/remat/keep_all.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

std::variant<Plan, RelayTask> relay_task(const Problem& problem,
                                         const BudgetParameters& parameters) {
  RelayTask task;
  task.processor = processor_for(problem, parameters);
  task.budget = budget_for(problem, task.processor, parameters);
  task.costs = chain_costs(problem, task.processor);
  if (KeepAll all = keep_all(problem, task.processor, parameters.name); task.budget >= all.needs) {
    all.plan.bounds.makespan = task.costs.compute_time();
    return std::move(all.plan);
  }
  if (!has_normal_form(task.costs))
    refuse_parameter(parameters.where,
                     fmt::format("{} assumes that to forget a stage's tensors takes no more memory "
                                 "than to keep them; a stage of this chain takes more",
                                 parameters.name));
  if (task.costs.stages.size() > kMostRelayStages)
    refuse_parameter(parameters.where,
                     fmt::format("the chain has {} stages; expected at most {} for {}",
                                 task.costs.stages.size(), kMostRelayStages, parameters.name),
                     "remat/rotor plans longer ones");
  task.model = chain_model(task.costs);
  task.bytes = std::min(task.budget.count(), task.model.store_all);
  return task;
}

std::optional<ClassOptimum> relay_schedule(const RelayTask& task, std::int64_t slots, int retries,
                                           const Location& where, const std::string& hint) {
  try {
    return relay_schedule(task.model, task.costs, task.bytes, slots, retries);
  } catch (const std::length_error&) {
    refuse_parameter(
        where,
        fmt::format("the table of {} stages and {} slots passes 1 GiB", task.model.stages, slots),
        hint);
  }
}

}  // namespace plimsoll
