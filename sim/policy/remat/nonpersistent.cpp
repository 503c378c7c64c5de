#include "policy/registry.hpp"
#include "policy/remat/any_schedule.hpp"
#include "policy/remat/cut_bound.hpp"
#include "policy/remat/relay_task.hpp"

#include <utility>

namespace plimsoll {

namespace {

struct NonpersistentParameters : BudgetParameters {
  std::int64_t slots = 500;
  std::int64_t retries = 2;
};

Planned plan_nonpersistent(const Problem& problem, const NonpersistentParameters& parameters) {
  auto begun = relay_task(problem, parameters);
  if (Plan* whole = std::get_if<Plan>(&begun)) return std::move(*whole);
  const RelayTask& task = std::get<RelayTask>(begun);
  const std::optional<ClassOptimum> found =
      relay_schedule(task, parameters.slots, static_cast<int>(parameters.retries), parameters.where,
                     "give fewer `slots`");
  if (!found)
    return infeasible(problem, task.processor, task.budget,
                      Bytes{least_budget(task.model, ChainClass::relay)});
  Plan plan = plan_of(problem, task.processor, found->sequence, parameters.name);
  // A network's stages free some bytes earlier than their costs say: there only the sum of the
  // times is a bound for every plan.
  plan.bounds.makespan =
      Time{problem.workload.is_chain
               ? time_bound(task.model, task.bytes, time_of(task.model, found->sequence))
               : task.model.compute_time()};
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
       .complexity = "O(L^3 slots) time, at most 1 GiB and 1,024 stages"},
      record, plan_nonpersistent);
}

}  // namespace plimsoll
