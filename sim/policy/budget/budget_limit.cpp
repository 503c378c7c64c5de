#include "policy/budget/budget_limit.hpp"

#include "policy/claims/claims.hpp"
#include "policy/claims/judged_claims.hpp"

namespace plimsoll {

void limit_to(Plan& plan, const Problem& problem, MemoryId memory, Bytes budget) {
  if (is_arena(problem.platform[memory].allocator) &&
      budget < usable(plan, problem.platform, memory)) {
    plan.limits.emplace_back(memory, budget);
    const Claims now = claims_of(plan, problem);
    plan.claims.makespan = now.makespan;
    plan.claims.period = now.period;
    plan.claims.peak = now.peak;
    plan.claims.energy = now.energy;
  }
  claim_by_judge(plan, problem, memory);
}

}  // namespace plimsoll
