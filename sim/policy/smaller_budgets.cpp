#include "policy/smaller_budgets.hpp"

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

/// Nothing also where less memory is outside what the planner assumes.
std::optional<Plan> plan_for_less(const BudgetPlanner& planner, Bytes budget) {
  try {
    Planned planned = planner.plan(budget);
    if (auto* plan = std::get_if<Plan>(&planned)) return std::move(*plan);
    return std::nullopt;
  } catch (const InputError&) {
    return std::nullopt;
  } catch (const QuantityOverflow&) {
    return std::nullopt;
  }
}

}  // namespace

Planned not_slower_with_more(Bytes budget, const BudgetPlanner& planner) {
  Planned planned = planner.plan(budget);
  auto* best = std::get_if<Plan>(&planned);
  if (best == nullptr || !best->claims.makespan || best->claims.optimal == true) return planned;
  const std::int64_t part = planner.most.count() / planner.rungs,
                     rest = planner.most.count() % planner.rungs;
  for (std::int64_t rung = planner.rungs; rung-- > 1;) {
    const Bytes less{part * rung + rest * rung / planner.rungs};
    if (less >= budget) continue;
    if (planner.bound(less) >= *best->claims.makespan) break;
    auto plan = plan_for_less(planner, less);
    if (!plan) break;
    if (!plan->claims.makespan || *plan->claims.makespan >= *best->claims.makespan) continue;
    plan->bounds = best->bounds;
    plan->claims.model_makespan = best->claims.model_makespan;
    plan->claims.optimal = best->claims.optimal;
    if (plan->claims.optimal)
      *plan->claims.optimal = plan->bounds.makespan == plan->claims.makespan;
    *best = std::move(*plan);
  }
  return planned;
}

}  // namespace plimsoll
