#include "policy/offload/search/planner.hpp"

#include "base/quantity_text.hpp"
#include "policy/budget/smaller_budgets.hpp"
#include "policy/offload/model/fluid_bound.hpp"
#include "policy/offload/search/prefix.hpp"
#include "policy/remat/segments/keep_all.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace plimsoll {
namespace {

/// How many runs under each budget become plans to compare, where the model is not exact.
constexpr std::size_t kPlansCompared = 8;

bool has_only_fifo_links(const Problem& problem, MemoryId from, MemoryId to) {
  return std::ranges::all_of(problem.topology.route(from, to)->hops, [&](const Hop& hop) {
    return problem.platform[hop.link].sharing == Sharing::fifo;
  });
}

/// Whether what is in `memory` takes as many bytes there as it has.
bool counts_bytes(const Memory& memory) {
  return memory.allocator == AllocatorKind::ideal || memory.usable().is_unlimited();
}

void refuse_progressive(const Problem& problem, const OffloadMemories& memories,
                        const Location& where) {
  const Memory& home = problem.platform[memories.home];
  if (home.allocator != AllocatorKind::ideal)
    refuse(where,
           fmt::format("progressive release needs the `ideal` allocator in `{}`, where "
                       "half a tensor can be free",
                       home.name),
           "leave `release` out, or say `release: whole`");
  if (!has_only_fifo_links(problem, memories.home, memories.storage))
    refuse(where, "progressive release needs `fifo` links on the way to storage",
           "leave `release` out, or say `release: whole`");
}

OffloadSequence leanest(const OffloadModel& model) {
  return fetched_ahead(everything(model), 1);
}

/// The least budget at which the leanest sequence ends, as its claims tell, at most `most`, at
/// which it does as far as the model knows.
Bytes smallest_by_claims(const Problem& problem, const OffloadTask& task, Bytes most) {
  const OffloadSequence sequence = leanest(task.model);
  const auto ends_under = [&](Bytes budget) {
    return plan_of(problem, task.memories, sequence, {task.release, budget, true}, "")
        .claims.makespan.has_value();
  };
  if (!ends_under(most)) return most;
  Bytes low = task.model.resident, high = most;
  while (high - low > Bytes{1}) {
    const Bytes middle{low.count() + (high - low).count() / 2};
    (ends_under(middle) ? high : low) = middle;
  }
  return high;
}

void keep_best(std::vector<Timed>& runs) {
  std::ranges::stable_sort(runs, {}, &Timed::makespan);
  if (runs.size() > kPlansCompared) runs.resize(kPlansCompared);
}

Heuristic runs_for(const OffloadTask& task, Heuristic (*find)(const OffloadModel&)) {
  Heuristic found = find(task.model);
  if (task.is_model_exact) return found;
  keep_best(found.runs);
  if (task.overstated > Bytes{}) {
    OffloadModel lenient = task.model;
    lenient.budget += task.overstated;
    Heuristic more = find(lenient);
    keep_best(more.runs);
    std::ranges::move(more.runs, std::back_inserter(found.runs));
    found.model_makespan = more.model_makespan;
  }
  return found;
}

/// Where the model overstates, these may fit although it says otherwise: all that may move does, or
/// nothing.
void add_extremes(const OffloadTask& task, std::vector<Timed>& runs) {
  if (task.is_model_exact) return;
  const OffloadSet nothing(task.model.stages.size(), false);
  for (OffloadSequence sequence : {leanest(task.model), fetched_ahead(nothing, 1)})
    runs.push_back({std::move(sequence), Time::unlimited()});
}

}  // namespace

OffloadMemories checked_memories(const Problem& problem,
                                 const OffloadPlannerParameters& parameters) {
  const OffloadMemories memories = offload_memories(problem, parameters);
  if (parameters.release && parameters.release->value == SourceRelease::progressive)
    refuse_progressive(problem, memories, parameters.release->where);
  return memories;
}

OffloadTask offload_task(const Problem& problem, const OffloadPlannerParameters& parameters) {
  OffloadTask task;
  task.memories = checked_memories(problem, parameters);
  task.budget = budget_for(problem, task.memories.processor, parameters);
  if (parameters.release) task.release = parameters.release->value;
  task.model = offload_model(problem, task.memories, task.budget, task.release);
  task.is_model_exact = has_simple_stages(problem) && !task.model.one_way &&
                        problem.platform[task.memories.home].allocator == AllocatorKind::ideal &&
                        has_only_fifo_links(problem, task.memories.home, task.memories.storage) &&
                        has_only_fifo_links(problem, task.memories.storage, task.memories.home) &&
                        counts_bytes(problem.platform[task.memories.storage]);
  task.smallest = smallest_budget(task.model, everything(task.model));
  const Bytes unmoved = smallest_budget(task.model, OffloadSet(task.model.stages.size(), false));
  if (!problem.workload.is_chain && task.budget < unmoved) {
    const Bytes by_claims = smallest_by_claims(problem, task, task.smallest);
    task.overstated = task.smallest - by_claims;
    task.smallest = by_claims;
  }
  return task;
}

Heuristic greedy_runs(const OffloadTask& task) {
  Heuristic found = runs_for(task, greedy_offload);
  add_extremes(task, found.runs);
  return found;
}

Heuristic dynamic_runs(const OffloadTask& task) {
  Heuristic found = runs_for(task, dynamic_offload);
  add_extremes(task, found.runs);
  return found;
}

Plan best_plan(const Problem& problem, const OffloadTask& task, std::vector<Timed> found,
               const OffloadPlannerParameters& parameters) {
  if (task.is_model_exact) {
    const auto best = std::ranges::min_element(found, {}, &Timed::makespan);
    std::iter_swap(found.begin(), best);
    found.resize(1);
  }
  std::optional<Plan> best;
  for (const Timed& run : found) {
    Plan plan = plan_of(problem, task.memories, run.sequence, {task.release, task.budget, true},
                        parameters.name);
    const bool is_better =
        !best || (plan.claims.makespan &&
                  (!best->claims.makespan || *plan.claims.makespan < *best->claims.makespan));
    if (is_better) best = std::move(plan);
  }
  best->bounds.makespan = offload_lower_bound(problem, task.memories, task.budget);
  return std::move(*best);
}

namespace {

Planned plan_within(const Problem& problem, const OffloadPlannerParameters& parameters,
                    Heuristic (*runs)(const OffloadTask&)) {
  const OffloadTask task = offload_task(problem, parameters);
  if (!task.budget.is_unlimited() && task.budget < task.smallest)
    return infeasible(problem, task.memories.processor, task.budget, task.smallest);
  Heuristic found = runs(task);
  if (found.runs.empty())
    return infeasible(problem, task.memories.processor, task.budget, task.smallest);
  Plan plan = best_plan(problem, task, std::move(found.runs), parameters);
  plan.claims.model_makespan = found.model_makespan;
  return plan;
}

}  // namespace

Planned plan_by(const Problem& problem, const OffloadPlannerParameters& parameters,
                Heuristic (*runs)(const OffloadTask&)) {
  const auto plan = [&](const Problem& of, Bytes budget) {
    return plan_within(of, with_budget(parameters, budget), runs);
  };
  Planned planned = offload_for_budget(problem, parameters, plan);
  if (!parameters.improve) return planned;
  return not_behind_prefix(problem, parameters, std::move(planned));
}

Planned faster_of(Planned planned, Planned rival, const std::string& name) {
  auto* plan = std::get_if<Plan>(&planned);
  auto* other = std::get_if<Plan>(&rival);
  if (other == nullptr) {
    if (auto* no = std::get_if<Infeasible>(&planned))
      no->smallest_budget =
          std::min(no->smallest_budget, std::get<Infeasible>(rival).smallest_budget);
    return planned;
  }
  const std::optional<Time> makespan = plan != nullptr ? plan->claims.makespan : std::nullopt;
  if (!other->claims.makespan || (makespan && *makespan <= *other->claims.makespan)) return planned;
  if (other->claims.chosen.empty()) other->claims.chosen = name;
  if (plan != nullptr) {
    other->claims.model_makespan = plan->claims.model_makespan;
    if (plan->claims.optimal)
      other->claims.optimal = other->bounds.makespan == other->claims.makespan;
  }
  return rival;
}

Planned not_behind_prefix(const Problem& problem, const OffloadPlannerParameters& parameters,
                          Planned planned) {
  if (parameters.release && parameters.release->value != SourceRelease::whole) return planned;
  if (const auto* plan = std::get_if<Plan>(&planned); plan != nullptr && plan->claims.makespan)
    if (plan->claims.optimal == true || plan->claims.makespan == plan->bounds.makespan)
      return planned;
  return faster_of(std::move(planned), plan_shortest_prefix(problem, parameters), "offload/prefix");
}

Planned offload_for_budget(const Problem& problem, const OffloadPlannerParameters& parameters,
                           BudgetPlan plan,
                           std::function<bool(const Problem& problem, Bytes budget)> has_plan) {
  const OffloadMemories memories = checked_memories(problem, parameters);
  const auto bound = [&](Bytes budget) {
    return offload_lower_bound(problem, memories, budget).value_or(Time::unlimited());
  };
  return plan_for_budget(problem, memories.processor,
                         budget_for(problem, memories.processor, parameters),
                         {.plan = std::move(plan),
                          .bound = bound,
                          .most = keep_all(problem, memories.processor, "").needs,
                          .parts = budget_parts_for(problem, PlanningTime::linear),
                          .has_plan = std::move(has_plan),
                          .storage = memories.storage,
                          .improves = parameters.improve});
}

}  // namespace plimsoll
