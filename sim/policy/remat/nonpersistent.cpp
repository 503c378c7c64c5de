#include "policy/budget.hpp"
#include "policy/registry.hpp"
#include "policy/remat/any_schedule.hpp"
#include "policy/remat/cut_bound.hpp"
#include "policy/remat/keep_all.hpp"
#include "policy/remat/relay_dp.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace plimsoll {

namespace {

struct NonpersistentParameters : BudgetParameters {
  std::int64_t slots = 500;
  std::int64_t retries = 2;
};

Planned plan_nonpersistent(const Problem& problem, const NonpersistentParameters& parameters) {
  const ProcessorId processor = processor_for(problem, parameters);
  const Bytes budget = budget_for(problem, processor, parameters);
  const ChainCosts costs = chain_costs(problem, processor);
  if (KeepAll all = keep_all(problem, processor, parameters.name); budget >= all.needs) {
    all.plan.bounds.makespan = costs.compute_time();
    return std::move(all.plan);
  }
  if (!has_normal_form(costs))
    refuse_parameter(parameters.where,
                     "remat/nonpersistent assumes that to forget a stage's tensors takes no more "
                     "memory than to keep them; a stage of this chain takes more");
  const ChainModel model = chain_model(costs);
  const std::int64_t bytes = std::min(budget.count(), model.store_all);

  std::optional<ClassOptimum> found;
  try {
    found =
        relay_schedule(model, costs, bytes, parameters.slots, static_cast<int>(parameters.retries));
  } catch (const std::length_error&) {
    refuse_parameter(parameters.where,
                     fmt::format("the table of {} stages and {} slots passes 1 GiB", model.stages,
                                 parameters.slots),
                     "give fewer `slots`");
  }
  if (!found)
    return infeasible(problem, processor, budget, Bytes{least_budget(model, ChainClass::relay)});
  Plan plan = plan_of(problem, processor, found->sequence, parameters.name);
  // A network's stages free some bytes earlier than their costs say: there only the sum of the
  // times is a bound for every plan.
  plan.bounds.makespan =
      Time{problem.workload.is_chain ? time_bound(model, bytes, time_of(model, found->sequence))
                                     : model.compute_time()};
  return plan;
}

}  // namespace

PolicyInfo remat_nonpersistent_policy() {
  auto record = budget_record<NonpersistentParameters>("remat/nonpersistent");
  record.optional("slots", &NonpersistentParameters::slots, integer(1, 1'000'000),
                  "parts of the budget that sizes are rounded up to; nothing is rounded where the "
                  "budget has no more units of the sizes' greatest common divisor; default 500");
  record.optional("retries", &NonpersistentParameters::retries, integer(0, 100),
                  "further runs with more room where rounding left some free; default 2");
  return make_policy<NonpersistentParameters>(
      {.name = "remat/nonpersistent",
       .summary = "Faster than any persistent recomputation: a kept tensor may lose its input and "
                  "wait until it is made again for the stage before.",
       .paper = "own extension of the dynamic program of Beaumont, Eyraud-Dubois, Herrmann, Joly, "
                "Shilova, \"Optimal checkpointing for heterogeneous chains\", arXiv:1911.13214; "
                "bound: own Lagrangian relaxation over a few backwards",
       .assumes = "a chain (networks are cut at articulation points, and a stage runs whole)",
       .guarantees = "optimal in its class, up to rounding to slots; the class holds every "
                     "persistent schedule, so it is never worse than the persistent optimum on the "
                     "same slots. Reports a proven lower bound for all schedules of a chain (for a "
                     "network the sum of the times)",
       .complexity = "O(L^3 slots) time, at most 1 GiB"},
      record, plan_nonpersistent);
}

}  // namespace plimsoll
