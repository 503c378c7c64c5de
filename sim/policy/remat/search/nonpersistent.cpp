#include "policy/interface/registry.hpp"
#include "policy/remat/search/any_schedule.hpp"
#include "policy/remat/search/cut_bound.hpp"
#include "policy/remat/search/model_planner.hpp"
#include "policy/remat/search/relay_dp.hpp"

namespace plimsoll {

namespace {

struct NonpersistentParameters : BudgetParameters {
  std::int64_t slots = 500;
  std::int64_t retries = 2;
};

Planned plan_nonpersistent(const Problem& problem, const NonpersistentParameters& parameters) {
  const auto sequence = [&](const ModelTask& task, std::int64_t budget, std::int64_t retries) {
    return relay_sequence(task, budget, parameters.slots, retries, "give fewer `slots`");
  };
  const auto solve = [&](const ModelTask& task, std::int64_t budget) {
    ModelSchedule found{.sequence = sequence(task, budget, parameters.retries)};
    if (task.is_chain && !found.sequence.empty())
      found.bound = time_bound(task.model, budget, time_of(task.model, found.sequence));
    return found;
  };
  return plan_by_model(
      problem, parameters,
      {.solve = solve,
       .solve_quickly = [&](const ModelTask& task,
                            std::int64_t budget) { return sequence(task, budget, 0); },
       .smallest_budget =
           [](const ModelTask& task) { return least_budget(task.model, ChainClass::relay); },
       .rotor_slots = parameters.slots});
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
       .guarantees =
           "optimal in its class, up to rounding to slots. The class holds every persistent "
           "schedule. As remat/rotor rounds otherwise, its plan in as many slots may still be "
           "faster; with `improve` it is looked at, too, and taken where it is. Reports a "
           "proven lower bound for all schedules of a chain (for a network the sum of the times). "
           "On networks, whose costs bound from above what execution needs, it is the fastest that "
           "fits, by the claims of their plans, of about 20 of its own schedules for different "
           "budgets; with `improve` also of all that remat/rotor looks at",
       .complexity = "O(L^3 slots) time, at most 1 GiB and 1,024 stages",
       .is_for_chains = true},
      record, plan_nonpersistent);
}

}  // namespace plimsoll
