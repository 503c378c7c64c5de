#include "policy/pipeline/planning/fastest_cut.hpp"

#include "policy/claims/claims.hpp"

namespace plimsoll {

namespace {

/// Unlimited where nobody can tell, or it does not run to its end.
Time time_taken(const Plan& plan, const Problem& problem) {
  if (plan.claims.makespan) return *plan.claims.makespan;
  if (problem.judge == nullptr) return Time::unlimited();
  problem.work.add(kWorkOfExecution * plan.steps.size());
  const Judgement judgement = problem.judge(plan, problem);
  return judgement.is_ok ? judgement.makespan : Time::unlimited();
}

bool is_better(const Planned& planned, const Planned& than, const Problem& problem) {
  const auto* plan = std::get_if<Plan>(&planned);
  const auto* other = std::get_if<Plan>(&than);
  if (plan != nullptr && other != nullptr)
    return time_taken(*plan, problem) < time_taken(*other, problem);
  if (plan != nullptr || other != nullptr) return plan != nullptr;
  return std::get<Infeasible>(planned).smallest_budget < std::get<Infeasible>(than).smallest_budget;
}

}  // namespace

void keep_faster(std::optional<Planned>& best, Planned planned, const Problem& problem) {
  if (!best || is_better(planned, *best, problem)) best = std::move(planned);
}

}  // namespace plimsoll
