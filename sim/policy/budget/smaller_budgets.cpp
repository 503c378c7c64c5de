#include "policy/budget/smaller_budgets.hpp"

#include "base/rounded_text.hpp"
#include "policy/budget/budget.hpp"
#include "policy/budget/problem_with_capacity.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

std::int64_t budget_parts_for(const Problem& problem, PlanningTime time) {
  constexpr std::int64_t kMost = 64, kFewest = 2;
  const auto stages = static_cast<std::int64_t>(problem.chain.stages.size());
  const std::int64_t with_all = time == PlanningTime::linear ? 64 : 16;
  if (stages <= with_all) return kMost;
  std::int64_t parts = kMost * with_all / stages;
  if (time == PlanningTime::quadratic) parts = parts * with_all / stages;
  return std::max(parts, kFewest);
}

namespace {

/// From 1.
Bytes part_of(const BudgetPlanner& planner, std::int64_t number) {
  const std::int64_t part = planner.most.count() / planner.parts,
                     rest = planner.most.count() % planner.parts;
  return Bytes{part * number + rest * number / planner.parts};
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

/// The first part above `budget`; beyond the last twice as much.
Bytes above(const BudgetPlanner& planner, Bytes budget) {
  for (std::int64_t number = 1; number <= planner.parts; ++number)
    if (const Bytes part = part_of(planner, number); part > budget) return part;
  return budget + std::max(budget, Bytes{1});
}

/// The least that works, more than `fails`: tried are what `next` names one after the other, then,
/// `halvings` times, what lies between. Nothing where not even `unlimited` works.
template <class Works, class Next>
std::optional<Bytes> least_that(const Works& works, Bytes fails, const Next& next,
                                std::int64_t halvings) {
  if (!works(Bytes::unlimited())) return std::nullopt;
  constexpr Bytes kLast{std::int64_t{1} << 61};
  Bytes low = fails, high = next(low);
  while (!works(high)) {
    if (high > kLast) return std::nullopt;
    low = high;
    high = next(low);
  }
  for (std::int64_t i = 0; i < halvings && high - low > Bytes{1}; ++i) {
    const Bytes middle{low.count() + (high - low).count() / 2};
    (works(middle) ? high : low) = middle;
  }
  return high;
}

/// The answer where no budget makes up for the little room in the storage; nothing where more room
/// does not help.
std::optional<Infeasible> within_storage(const Problem& problem, ProcessorId processor,
                                         Bytes budget, const BudgetPlanner& planner) {
  const Memory& storage = problem.platform[*planner.storage];
  if (storage.usable().is_unlimited()) return std::nullopt;
  const ProblemWithCapacity unlimited(problem, problem.platform[processor].memory);
  const auto least_for = [&](const Problem& of, Bytes within) {
    const auto has_plan = [&](Bytes room) {
      return finds_plan(planner, ProblemWithCapacity(of, *planner.storage, room).problem(), within);
    };
    const auto twice = [](Bytes room) { return room + std::max(room, Bytes{1}); };
    return least_that(has_plan, storage.usable(), twice, 64);
  };
  auto least = least_for(problem, budget);
  const bool does_within_budget = least.has_value();
  if (!least) least = least_for(unlimited.problem(), Bytes::unlimited());
  if (!least) return std::nullopt;
  const Bytes capacity = *least + storage.reserved;
  return Infeasible{
      fmt::format("`{}` never holds what must leave, whatever the budget; it would with a capacity "
                  "of {}{}",
                  storage.name, exact_text(capacity),
                  does_within_budget ? "" : " and a larger budget"),
      *planner.storage, Bytes::unlimited()};
}

/// `plan`, for a smaller budget than the one asked about, in place of `first`, the plan for that,
/// or of none.
void take_place(Plan& plan, const Plan* first, const BudgetPlanner& planner, Bytes budget) {
  if (first != nullptr) {
    plan.bounds = first->bounds;
    plan.claims.model_makespan = first->claims.model_makespan;
  } else if (plan.bounds.makespan) {
    plan.bounds.makespan = planner.bound(budget);
    plan.bounds.energy.reset();
  }
  if (plan.claims.optimal) plan.claims.optimal = plan.bounds.makespan == plan.claims.makespan;
}

/// Whether space breaks up, so that a plan for more memory may not run where one for less does.
/// In a cache that is of one size the plan that nothing limits is the same for every budget.
bool may_fail_with_more(const Problem& problem, ProcessorId processor, Bytes budget,
                        const BudgetPlanner& planner) {
  const Memory& memory = problem.platform[problem.platform[processor].memory];
  if (memory.usable().is_unlimited() && budget.is_unlimited()) return false;
  return is_arena(memory.allocator) || (takes_segments(memory.allocator) && budget < planner.most);
}

bool has_part_that_runs(const BudgetPlanner& planner, const Problem& problem, Bytes budget) {
  for (std::int64_t number = planner.parts; number > 0; --number) {
    const Bytes part = part_of(planner, number);
    if (part > budget) continue;
    if (planner.has_plan) {
      if (finds_plan(planner, problem, part)) return true;
      continue;
    }
    const auto answer = answer_for(planner, problem, part);
    if (!answer || is_hopeless_below(*answer, part)) return false;
    if (runs(*answer)) return true;
  }
  return false;
}

/// The answer where `planned`, for `budget`, does not run, or is no proof that more memory does.
Planned within_least(const Problem& problem, ProcessorId processor, Bytes budget,
                     const BudgetPlanner& planner, Planned planned) {
  const auto* no = std::get_if<Infeasible>(&planned);
  const bool is_told = no != nullptr && !may_fail_with_more(problem, processor, budget, planner);
  const Bytes from = is_told ? no->smallest_budget : stated_least(planner, problem);
  const auto least = least_budget(problem, processor, from, planner);
  if (least && *least > budget) return infeasible(problem, processor, budget, *least);
  if (least && runs(planned)) return planned;
  if (least) {
    Planned less = planner.plan(problem, *least);
    if (auto* plan = std::get_if<Plan>(&less))
      take_place(*plan, std::get_if<Plan>(&planned), planner, budget);
    return less;
  }
  if (planner.storage)
    if (auto storage = within_storage(problem, processor, budget, planner))
      return std::move(*storage);
  if (no == nullptr) return planned;
  const ProblemWithCapacity roomy(problem, problem.platform[processor].memory);
  return planner.plan(roomy.problem(), Bytes::unlimited());
}

/// The fastest of `planned`, for `budget`, and of the plans for the parts below.
Planned climb_down(const Problem& problem, Bytes budget, const BudgetPlanner& planner,
                   Planned planned) {
  const auto* best = std::get_if<Plan>(&planned);
  if (best != nullptr && (!best->claims.makespan || best->claims.optimal == true)) return planned;
  Time fastest = best != nullptr ? *best->claims.makespan : Time::unlimited();
  for (std::int64_t number = planner.parts; number-- > 1;) {
    const Bytes less = part_of(planner, number);
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

Bytes part_below(const BudgetPlanner& planner, Bytes budget) {
  for (std::int64_t number = planner.parts; number-- > 1;)
    if (const Bytes part = part_of(planner, number); part < budget) return part;
  return Bytes{};
}

Planned fastest_of_smaller_budgets(const Problem& problem, Bytes budget,
                                   const BudgetPlanner& planner) {
  return climb_down(problem, budget, planner, planner.plan(problem, budget));
}

std::optional<Bytes> least_budget(const Problem& problem, ProcessorId processor, Bytes from,
                                  const BudgetPlanner& planner) {
  const MemoryId memory = problem.platform[processor].memory;
  const Bytes usable = problem.platform[memory].usable();
  // An allocator may need more than the budget that its plan keeps to: room is what is asked about.
  const auto has_plan = [&](Bytes budget) {
    if (budget <= usable) return finds_plan(planner, problem, budget);
    return finds_plan(planner, ProblemWithCapacity(problem, memory, budget).problem(), budget);
  };
  if (has_plan(from)) return from;
  return least_that(
      has_plan, from, [&](Bytes budget) { return above(planner, budget); },
      std::max<std::int64_t>(planner.parts, 32));
}

Planned plan_for_budget(const Problem& problem, ProcessorId processor, Bytes budget,
                        const BudgetPlanner& planner) {
  Planned planned = planner.plan(problem, budget);
  const auto is_sure = [&] {
    return runs(planned) && (!may_fail_with_more(problem, processor, budget, planner) ||
                             has_part_that_runs(planner, problem, budget));
  };
  const bool runs_itself = runs(planned);
  if (problem.judge == nullptr && !runs_itself) return planned;
  if (problem.judge != nullptr && !is_sure())
    planned = within_least(problem, processor, budget, planner, std::move(planned));
  if (!runs(planned) || (runs_itself && !planner.improves)) return planned;
  return climb_down(problem, budget, planner, std::move(planned));
}

}  // namespace plimsoll
