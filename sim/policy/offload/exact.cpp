#include "policy/offload/branch_and_bound.hpp"
#include "policy/offload/fluid_bound.hpp"
#include "policy/offload/planner.hpp"
#include "policy/registry.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace plimsoll {

namespace {

struct ExactParameters : OffloadPlannerParameters {
  std::optional<std::vector<Located<std::string>>> set;
  std::int64_t nodes = static_cast<std::int64_t>(kSearchLimits.nodes);
};

/// The stage that is named, or meant by its number from 1.
std::size_t stage_named(const Problem& problem, const Located<std::string>& name,
                        std::size_t candidates) {
  std::vector<std::string> names;
  for (const ChainStage& stage : problem.chain.stages) {
    const std::string& first = problem.workload.operators[stage.forward_begin].name;
    names.push_back(first.substr(0, first.rfind(".forward")));
  }
  std::size_t stage = 0;
  const char* end = name.value.data() + name.value.size();
  if (std::from_chars(name.value.data(), end, stage).ptr != end)
    stage = static_cast<std::size_t>(std::ranges::find(names, name.value) - names.begin()) + 1;
  if (stage == 0 || stage > names.size())
    refuse_parameter(name.where,
                     fmt::format("`{}` is no stage of the chain; expected a name or 1 to {}",
                                 name.value, names.size()),
                     did_you_mean(name.value, names));
  if (stage > candidates)
    refuse_parameter(name.where, fmt::format("stage {} is one of the last two, which are needed "
                                             "back at once and stay",
                                             stage));
  return stage - 1;
}

std::optional<OffloadSet> set_of(const Problem& problem, const ExactParameters& parameters,
                                 const OffloadModel& model) {
  if (!parameters.set) return std::nullopt;
  OffloadSet set(model.stages.size(), false);
  for (const auto& name : *parameters.set) {
    const std::size_t stage = stage_named(problem, name, model.candidates);
    set[stage] = model.stages[stage].moved > Bytes{};
  }
  return set;
}

std::vector<Timed> schedules_to_start_from(const OffloadTask& task,
                                           const std::optional<OffloadSet>& set) {
  if (!set) return dynamic_runs(task).runs;
  std::vector<Timed> known;
  run_set(task.model, *set, known);
  return known;
}

Planned plan_within(const Problem& problem, const ExactParameters& parameters) {
  const OffloadTask task = offload_task(problem, parameters);
  const auto set = set_of(problem, parameters, task.model);
  const Bytes smallest = set ? smallest_budget(task.model, *set) : task.smallest;
  const auto refuse = [&] {
    return infeasible(problem, task.memories.processor, task.budget, smallest);
  };
  if (!task.budget.is_unlimited() && task.budget < smallest) return refuse();

  std::vector<Timed> found = schedules_to_start_from(task, set);
  bool is_proven = false;
  if (task.is_model_exact && task.model.candidates <= kSearchLimits.candidates) {
    SearchLimits limits = kSearchLimits;
    limits.nodes = static_cast<std::size_t>(parameters.nodes);
    const Time bound = fluid_bound(task.model).value_or(Time{});
    BestSchedule best = best_schedule(task.model, set, std::move(found), bound, limits);
    is_proven = best.is_proven;
    found.clear();
    if (best.schedule) found.push_back(std::move(*best.schedule));
  }
  if (found.empty()) return refuse();
  Plan plan = best_plan(problem, task, std::move(found), parameters);
  is_proven |= plan.claims.makespan && plan.bounds.makespan == plan.claims.makespan;
  plan.claims.optimal = is_proven;
  return plan;
}

Planned plan_exact(const Problem& problem, const ExactParameters& parameters) {
  return offload_not_slower_with_more(problem, parameters, [&](const Located<Bytes>& budget) {
    ExactParameters within = parameters;
    within.budget = budget;
    return plan_within(problem, within);
  });
}

}  // namespace

PolicyInfo offload_exact_policy() {
  auto record = offload_planner_record<ExactParameters>("offload/exact");
  record
      .optional("set", &ExactParameters::set, list_of(located(name())),
                "what to offload, and nothing else: names of stages, or their numbers from 1; "
                "default: the best set")
      .optional("nodes", &ExactParameters::nodes, integer(0, 1'000'000'000),
                "beginnings of schedules to look at before giving up the proof; default 1000000");
  return make_policy<ExactParameters>(
      {.name = "offload/exact",
       .summary = "The best set to offload, with the best order of every copy, for small chains.",
       .paper = "branch and bound over the set, the orders of copies and their interleaving; the "
                "problem is that of Beaumont, Eyraud-Dubois, Shilova 2020, Euro-Par 2020, "
                "doi:10.1007/978-3-030-57675-2_10",
       .assumes = "a chain whose backwards are not split, full-duplex `fifo` links, `ideal` "
                  "allocators, storage with room for all; stages 1..L-2 may move. Elsewhere, and "
                  "beyond 24 such stages, it is the best of offload/greedy and offload/dynamic",
       .guarantees = "the optimum where claims.optimal says so; otherwise the best schedule found, "
                     "and the gap to a proven lower bound of every offload without recomputation",
       .complexity =
           "exponential in L; stops after `nodes`. Where it proves nothing, smaller budgets are "
           "tried as by offload/dynamic"},
      record, plan_exact);
}

}  // namespace plimsoll
