#include "execution/judge.hpp"

#include "execution/execution.hpp"
#include "execution/metrics.hpp"

namespace plimsoll {

Judgement judge_by_execution(const Plan& plan, const Problem& problem) {
  const Program program = lower(plan, problem.workload, problem.platform, problem.topology);
  const Execution it = execute_without_addresses(program);
  Judgement verdict{.is_ok = it.status == RunStatus::ok, .makespan = it.makespan};
  for (const MemoryRecord& memory : it.memories) verdict.peak.push_back(memory.peak.requested);
  if (const auto energy = measure(program, it, step_sums(program, it), 1).energy)
    verdict.energy = energy->total;
  return verdict;
}

}  // namespace plimsoll
