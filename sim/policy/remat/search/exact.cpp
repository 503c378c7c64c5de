#include "policy/interface/registry.hpp"
#include "policy/remat/rotor/rotor_budgets.hpp"
#include "policy/remat/search/any_schedule.hpp"
#include "policy/remat/search/cut_bound.hpp"
#include "policy/remat/search/model_planner.hpp"
#include "policy/remat/search/relay_dp.hpp"

#include <algorithm>
#include <utility>

namespace plimsoll {

namespace {

struct ExactParameters : BudgetParameters {
  std::optional<std::int64_t> nodes;
};

constexpr const char* kTooLong = "`remat/nonpersistent` plans for more stages with fewer `slots`";

/// About ten seconds of work: a state takes time by the square of the stages.
std::int64_t default_nodes(const ChainModel& model) {
  const std::int64_t stages = model.stages;
  return std::min<std::int64_t>(400'000, 160'000'000 / (stages * stages));
}

/// The least budget under which there is a schedule at all; where `nodes` states do not tell, one
/// under which there is.
std::int64_t smallest_budget(const ChainModel& model, std::int64_t nodes) {
  std::int64_t fails = necessary_budget(model) - 1, works = least_budget(model, ChainClass::relay);
  if (model.stages > kMostSearchedStages) return works;
  while (works - fails > 1) {
    const std::int64_t tried = fails + (works - fails) / 2;
    const bool found = !search_schedules(model, tried, {}, nodes).sequence.empty();
    (found ? works : fails) = tried;
  }
  return works;
}

/// Beginnings to look at when only some schedule is wanted.
constexpr std::int64_t kNodesForAny = 20'000;

/// Empty where there is none, as far as few nodes tell.
ChainSequence any_sequence(const ModelTask& task, std::int64_t budget) {
  if (budget < necessary_budget(task.model)) return {};
  ChainSequence relay = relay_sequence(task, budget, 500, 0, kTooLong);
  if (!relay.empty() || !task.is_chain || task.model.stages > kMostSearchedStages) return relay;
  return search_schedules(task.model, budget, {}, kNodesForAny).sequence;
}

/// The best schedule known and what no schedule does better.
ModelSchedule solve(const ModelTask& task, std::int64_t budget, std::int64_t nodes) {
  const ChainModel& model = task.model;
  if (budget < necessary_budget(model)) return {};
  // What the search begins with is worth more work where there is a search.
  const bool searched = model.stages <= kMostSearchedStages;
  const ChainSequence start =
      relay_sequence(task, budget, searched ? 2000 : 500, searched ? 8 : 2, kTooLong);
  SearchResult result;
  if (searched)
    result = search_schedules(model, budget, start, nodes);
  else
    result.sequence = start;
  if (task.is_chain && !result.proven && !result.sequence.empty())
    result.bound = std::max(result.bound, time_bound(model, budget, time_of(model, start)));
  return {std::move(result.sequence), result.bound, searched ? "" : "remat/nonpersistent"};
}

Planned plan_exact(const Problem& problem, const ExactParameters& parameters) {
  const auto nodes = [&](const ModelTask& task) {
    return parameters.nodes.value_or(default_nodes(task.model));
  };
  Planned planned =
      plan_by_model(problem, parameters,
                    {.solve = [&](const ModelTask& task,
                                  std::int64_t budget) { return solve(task, budget, nodes(task)); },
                     .solve_quickly = any_sequence,
                     .smallest_budget =
                         [&](const ModelTask& task) {
                           return task.is_chain ? smallest_budget(task.model, nodes(task))
                                                : least_budget(task.model, ChainClass::relay);
                         },
                     .rotor_slots = RotorBudgets::kDefaultSlots});
  if (auto* plan = std::get_if<Plan>(&planned); plan != nullptr && plan->claims.makespan)
    plan->claims.optimal = plan->claims.makespan == plan->bounds.makespan;
  return planned;
}

}  // namespace

PolicyInfo remat_exact_policy() {
  auto record = budget_record<ExactParameters>("remat/exact");
  record.optional(
      "nodes", &ExactParameters::nodes, integer(1, 10'000'000),
      "states of the search before it gives up the proof; default 400000, beyond 20 stages "
      "160 million / stages^2");
  return make_policy<ExactParameters>(
      {.name = "remat/exact",
       .summary = "The fastest recomputation of a chain within a budget, over all schedules: "
                  "values may also be dropped before their use and made again.",
       .paper = "own search: A* over what is stored, bounded by a Lagrangian relaxation; the "
                "persistent optimum that it may beat is that of Beaumont, Eyraud-Dubois, Herrmann, "
                "Joly, Shilova, \"Optimal checkpointing for heterogeneous chains\", "
                "arXiv:1911.13214",
       .assumes = "a chain (networks are cut at articulation points, and a stage runs whole); the "
                  "search handles 63 stages",
       .guarantees =
           "optimal where claims.optimal says so, and then the bound is its makespan: up to about "
           "20 "
           "unequal stages at the default `nodes`. Where the search stops at `nodes` or "
           "the chain is longer it is the schedule of remat/nonpersistent or a better "
           "one, and the bound is proven. On networks, whose costs bound from above what "
           "execution needs, one search under the largest budget whose schedule fits the real one "
           "by the claims of its plan, beside schedules of remat/nonpersistent; the "
           "bound is the sum of the times",
       .complexity =
           "exponential in the stages; `nodes` states of 70 B and O(stages^2) time each. Beyond "
           "63 stages that of remat/nonpersistent at 500 slots",
       .is_for_chains = true},
      record, plan_exact);
}

}  // namespace plimsoll
