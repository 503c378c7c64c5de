#include "policy/claims/judged_claims.hpp"

#include "base/dense_id.hpp"
#include "policy/claims/claims.hpp"

namespace plimsoll {

bool claim_by_judge(Plan& plan, const Problem& problem, MemoryId memory) {
  return claim_by_judge(plan, problem, std::span(&memory, 1));
}

bool claim_by_judge(Plan& plan, const Problem& problem, std::span<const MemoryId> memories) {
  if (plan.claims.makespan) return true;
  if (problem.judge == nullptr) return false;
  problem.work.add(kWorkOfExecution * plan.steps.size());
  const Judgement judgement = problem.judge(plan, problem);
  if (!judgement.is_ok) return false;
  plan.claims.makespan = judgement.makespan;
  plan.claims.peak.clear();
  for (const MemoryId memory : memories)
    plan.claims.peak.emplace_back(memory, judgement.peak[index(memory)]);
  return true;
}

void claim_or_judge(Plan& plan, const Problem& problem, MemoryId memory) {
  plan.claims = claims_of(plan, problem);
  claim_by_judge(plan, problem, memory);
}

}  // namespace plimsoll
