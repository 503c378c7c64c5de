#include "execution/judge.hpp"

#include "execution/execution.hpp"

namespace plimsoll {

Judgement judge_by_execution(const Plan& plan, const Problem& problem) {
  const Execution it = execute(lower(plan, problem.workload, problem.platform, problem.topology));
  Judgement verdict{it.status == RunStatus::ok, it.makespan, {}};
  for (const MemoryRecord& memory : it.memories) verdict.peak.push_back(memory.peak.requested);
  return verdict;
}

}  // namespace plimsoll
