#include "policy/smaller_budgets.hpp"

#include "policy/budget.hpp"
#include "policy/roomy_problem.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace plimsoll {

std::int64_t rungs_for(const Problem& problem, PlanningTime time) {
  constexpr std::int64_t kMost = 64, kFewest = 2;
  const auto stages = static_cast<std::int64_t>(problem.chain.stages.size());
  const std::int64_t with_all = time == PlanningTime::linear ? 64 : 16;
  if (stages <= with_all) return kMost;
  std::int64_t rungs = kMost * with_all / stages;
  if (time == PlanningTime::quadratic) rungs = rungs * with_all / stages;
  return std::max(rungs, kFewest);
}

namespace {

/// From 1.
Bytes rung_of(const BudgetPlanner& planner, std::int64_t number) {
  const std::int64_t part = planner.most.count() / planner.rungs,
                     rest = planner.most.count() % planner.rungs;
  return Bytes{part * number + rest * number / planner.rungs};
}

/// Nothing where this budget is outside what the planner assumes.
std::optional<Planned> answer_for(const BudgetPlanner& planner, const Problem& problem,
                                  Bytes budget) {
  try {
    return planner.plan(problem, budget);
  } catch (const InputError&) {
    return std::nullopt;
  } catch (const QuantityOverflow&) {
    return std::nullopt;
  }
}

bool runs(const Planned& planned) {
  const auto* plan = std::get_if<Plan>(&planned);
  return plan != nullptr && plan->claims.makespan;
}

bool finds_plan(const BudgetPlanner& planner, const Problem& problem, Bytes budget) {
  if (!planner.has_plan) {
    const auto answer = answer_for(planner, problem, budget);
    return answer && runs(*answer);
  }
  try {
    return planner.has_plan(problem, budget);
  } catch (const InputError&) {
    return false;
  } catch (const QuantityOverflow&) {
    return false;
  }
}

/// Whether `answer`, for `budget`, says that no less will do.
bool is_hopeless_below(const Planned& answer, Bytes budget) {
  const auto* no = std::get_if<Infeasible>(&answer);
  return no != nullptr && no->smallest_budget > budget;
}

/// What the planner says that it needs at least when it has nothing.
Bytes stated_least(const BudgetPlanner& planner, const Problem& problem) {
  const Planned planned = planner.plan(problem, Bytes{});
  const auto* no = std::get_if<Infeasible>(&planned);
  return no == nullptr ? Bytes{} : no->smallest_budget;
}

/// The first rung above `budget`; beyond the last twice as much.
Bytes above(const BudgetPlanner& planner, Bytes budget) {
  for (std::int64_t number = 1; number <= planner.rungs; ++number)
    if (const Bytes rung = rung_of(planner, number); rung > budget) return rung;
  return budget + std::max(budget, Bytes{1});
}

/// `plan`, for a smaller budget than the one asked about, in place of `first`, the plan for that,
/// or of none.
void take_place(Plan& plan, const Plan* first, const BudgetPlanner& planner, Bytes budget) {
  if (first != nullptr) {
    plan.bounds = first->bounds;
    plan.claims.model_makespan = first->claims.model_makespan;
  } else if (plan.bounds.makespan) {
    plan.bounds.makespan = planner.bound(budget);
  }
  if (plan.claims.optimal) plan.claims.optimal = plan.bounds.makespan == plan.claims.makespan;
}

/// The answer where `planned`, for `budget`, does not run.
Planned within_least(const Problem& problem, ProcessorId processor, Bytes budget,
                     const BudgetPlanner& planner, const Planned& planned) {
  const auto* no = std::get_if<Infeasible>(&planned);
  const Bytes from = no != nullptr ? no->smallest_budget : stated_least(planner, problem);
  const auto least = least_budget(problem, processor, from, planner);
  if (least && *least > budget) return infeasible(problem, processor, budget, *least);
  if (least) {
    Planned less = planner.plan(problem, *least);
    if (auto* plan = std::get_if<Plan>(&less))
      take_place(*plan, std::get_if<Plan>(&planned), planner, budget);
    return less;
  }
  if (no == nullptr) return planned;
  const RoomyProblem roomy(problem, problem.platform[processor].memory);
  return planner.plan(roomy.problem(), Bytes::unlimited());
}

/// The fastest of `planned`, for `budget`, and of the plans for the rungs below.
Planned climb_down(const Problem& problem, Bytes budget, const BudgetPlanner& planner,
                   Planned planned) {
  const auto* best = std::get_if<Plan>(&planned);
  if (best != nullptr && (!best->claims.makespan || best->claims.optimal == true)) return planned;
  Time fastest = best != nullptr ? *best->claims.makespan : Time::unlimited();
  for (std::int64_t number = planner.rungs; number-- > 1;) {
    const Bytes less = rung_of(planner, number);
    if (less >= budget) continue;
    if (planner.bound(less) >= fastest) break;
    auto answer = answer_for(planner, problem, less);
    if (!answer || is_hopeless_below(*answer, less)) break;
    if (!runs(*answer)) continue;
    auto& plan = std::get<Plan>(*answer);
    if (*plan.claims.makespan >= fastest) continue;
    take_place(plan, best, planner, budget);
    planned = std::move(plan);
    best = std::get_if<Plan>(&planned);
    fastest = *best->claims.makespan;
  }
  return planned;
}

}  // namespace

Bytes rung_below(const BudgetPlanner& planner, Bytes budget) {
  for (std::int64_t number = planner.rungs; number-- > 1;)
    if (const Bytes rung = rung_of(planner, number); rung < budget) return rung;
  return Bytes{};
}

Planned fastest_of_rungs(const Problem& problem, Bytes budget, const BudgetPlanner& planner) {
  return climb_down(problem, budget, planner, planner.plan(problem, budget));
}

std::optional<Bytes> least_budget(const Problem& problem, ProcessorId processor, Bytes from,
                                  const BudgetPlanner& planner) {
  const MemoryId memory = problem.platform[processor].memory;
  const Bytes usable = problem.platform[memory].usable();
  // An allocator may need more than the budget that its plan keeps to: room is what is asked about.
  const auto has_plan = [&](Bytes budget) {
    if (budget <= usable) return finds_plan(planner, problem, budget);
    return finds_plan(planner, RoomyProblem(problem, memory, budget).problem(), budget);
  };
  if (has_plan(from)) return from;
  if (!has_plan(Bytes::unlimited())) return std::nullopt;
  constexpr Bytes kLast{std::int64_t{1} << 61};
  Bytes low = from, high = above(planner, low);
  while (!has_plan(high)) {
    if (high > kLast) return std::nullopt;
    low = high;
    high = above(planner, low);
  }
  const std::int64_t halvings = std::max<std::int64_t>(planner.rungs, 32);
  for (std::int64_t i = 0; i < halvings && high - low > Bytes{1}; ++i) {
    const Bytes middle{low.count() + (high - low).count() / 2};
    (has_plan(middle) ? high : low) = middle;
  }
  return high;
}

Planned not_slower_with_more(const Problem& problem, ProcessorId processor, Bytes budget,
                             const BudgetPlanner& planner) {
  Planned planned = planner.plan(problem, budget);
  if (!runs(planned)) {
    if (problem.judge == nullptr) return planned;
    planned = within_least(problem, processor, budget, planner, planned);
    if (!runs(planned)) return planned;
  }
  return climb_down(problem, budget, planner, std::move(planned));
}

}  // namespace plimsoll
