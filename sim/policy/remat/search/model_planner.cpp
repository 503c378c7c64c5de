#include "policy/remat/search/model_planner.hpp"

#include "policy/budget/with_budget.hpp"
#include "policy/remat/rotor/network_planner.hpp"
#include "policy/remat/rotor/rotor_budgets.hpp"
#include "policy/remat/search/any_schedule.hpp"
#include "policy/remat/search/relay_dp.hpp"
#include "policy/remat/segments/keep_all.hpp"
#include "policy/remat/segments/runs_within.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace plimsoll {
namespace {

/// Those of remat/rotor, none where its table is too large.
ChainSequence rotor_sequence(const RotorBudgets& budgets, Bytes budget) {
  try {
    auto found = budgets.schedule(budget);
    return found ? std::move(found->sequence) : ChainSequence{};
  } catch (const TableTooLarge&) {
    return {};
  }
}

Planned plan_on_network(const NetworkTask& network, const ModelTask& task,
                        const ModelPlanner& planner) {
  const auto within = [&](Bytes budget) { return std::min(budget.count(), task.model.store_all); };
  const RotorBudgets budgets(task.costs, planner.rotor_slots);
  const CostPlanner own{
      .chosen = {},
      .least = Bytes{planner.smallest_budget(task)},
      .quick = [&](Bytes budget) { return planner.solve_quickly(task, within(budget)); },
      .thorough = [&](Bytes budget) { return planner.solve(task, within(budget)).sequence; }};
  const CostPlanner persistent{
      .chosen = "remat/rotor",
      .least = budgets.smallest(network.all_needs),
      .quick = [&](Bytes budget) { return rotor_sequence(budgets, budget); }};
  Planned planned =
      plan_network(network, network.improve ? std::vector{own, persistent} : std::vector{own});
  if (auto* plan = std::get_if<Plan>(&planned)) plan->bounds.makespan = task.costs.compute_time();
  return planned;
}

}  // namespace

ChainSequence relay_sequence(const ModelTask& task, std::int64_t budget, std::int64_t slots,
                             std::int64_t retries, const std::string& hint) {
  try {
    auto found = relay_schedule(task.model, task.costs, budget, slots, static_cast<int>(retries));
    return found ? std::move(found->sequence) : ChainSequence{};
  } catch (const std::length_error&) {
    refuse(
        task.where,
        fmt::format("the table of {} stages and {} slots passes 1 GiB", task.model.stages, slots),
        hint);
  }
}

namespace {

/// The two round to slots differently, so that either may be faster.
void take_faster_rotor(ModelSchedule& found, const ModelTask& task, Bytes budget,
                       std::int64_t slots) {
  const std::int64_t time = time_of(task.model, found.sequence);
  if (time == found.bound) return;
  ChainSequence rotor = rotor_sequence(RotorBudgets(task.costs, slots), budget);
  if (rotor.empty() || time_of(task.model, rotor) >= time) return;
  found.sequence = std::move(rotor);
  found.chosen = "remat/rotor";
}

/// Its needs are counted in bytes.
Planned plan_in_bytes(const Problem& problem, const BudgetParameters& parameters,
                      const ModelPlanner& planner) {
  const ProcessorId processor = processor_for(problem, parameters);
  const Bytes budget = budget_for(problem, processor, parameters);
  const ChainCosts costs = chain_costs(problem, processor);
  KeepAll all = keep_all(problem, processor, parameters.name);
  if (budget >= all.needs) {
    all.plan.bounds.makespan = costs.compute_time();
    return std::move(all.plan);
  }
  if (!has_normal_form(costs))
    refuse(parameters.where,
           fmt::format("{} assumes that to forget a stage's tensors takes no more memory "
                       "than to keep them; a stage of this chain takes more",
                       parameters.name));
  if (costs.stages.size() > kMostModelStages)
    refuse(parameters.where,
           fmt::format("the chain has {} stages; expected at most {} for {}", costs.stages.size(),
                       kMostModelStages, parameters.name),
           "remat/rotor plans longer ones");
  const ModelTask task{costs, chain_model(costs), problem.workload.is_chain, parameters.where};
  if (!task.is_chain)
    return plan_on_network(
        {problem, processor, budget, task.costs, parameters.name, all.needs, parameters.improve},
        task, planner);
  ModelSchedule found = planner.solve(task, std::min(budget.count(), task.model.store_all));
  if (found.sequence.empty())
    return infeasible(problem, processor, budget, Bytes{planner.smallest_budget(task)});
  if (parameters.improve) take_faster_rotor(found, task, budget, planner.rotor_slots);
  Plan plan = plan_of(problem, processor, found.sequence, parameters.name);
  plan.bounds.makespan = Time{found.bound};
  plan.claims.chosen = std::move(found.chosen);
  return plan;
}

}  // namespace

Planned plan_by_model(const Problem& problem, const BudgetParameters& parameters,
                      const ModelPlanner& planner) {
  const ProcessorId processor = processor_for(problem, parameters);
  ModelPlanner quick = planner;
  quick.solve = [&](const ModelTask& task, std::int64_t budget) {
    return ModelSchedule{.sequence = planner.solve_quickly(task, budget)};
  };
  const auto by = [&](const ModelPlanner& it) {
    return [&](const Problem& of, Bytes budget) {
      return plan_in_bytes(of, with_budget(parameters, budget), it);
    };
  };
  return plan_that_runs(problem, processor, budget_for(problem, processor, parameters), by(planner),
                        by(quick));
}

}  // namespace plimsoll
