#include "policy/claims/work_bound.hpp"

#include "workload/cost/cost_model.hpp"

#include <algorithm>
#include <vector>

namespace plimsoll {

std::vector<ProcessorWork> work_by_processor(const Plan& plan, const Problem& problem) {
  std::vector<ProcessorWork> work(problem.platform.processors.size());
  std::vector<std::vector<Time>> times(work.size());  // by operator, where they are needed
  for (const Lane& lane : plan.lanes)
    if (lane.kind == Lane::Kind::stream) ++work[index(lane.processor)].streams;
  for (const Step& step : plan.steps) {
    const bool computes = step.kind == StepKind::compute || step.kind == StepKind::pair;
    if (!computes || step.instance > 0) continue;
    const Lane& lane = plan[step.lane];
    std::vector<Time>& of_operators = times[index(lane.processor)];
    if (!step.duration && of_operators.empty())
      of_operators = durations(problem.workload, problem.platform, lane.processor);
    work[index(lane.processor)].total +=
        step.duration ? *step.duration : of_operators[index(step.op)];
  }
  return work;
}

Time work_bound(const std::vector<ProcessorWork>& work) {
  Time longest;
  for (const ProcessorWork& it : work)
    if (it.streams > 0)
      longest = std::max(longest, Time{(it.total.count() + it.streams - 1) / it.streams});
  return longest;
}

Time work_bound(const Plan& plan, const Problem& problem) {
  return work_bound(work_by_processor(plan, problem));
}

}  // namespace plimsoll
