#include "policy/claims/work_bound.hpp"

#include "workload/cost/cost_model.hpp"

#include <algorithm>
#include <vector>

namespace plimsoll {

namespace {

struct ProcessorTime {
  std::vector<Time> times;  ///< by operator; empty where the processor has none to run
  Time total;
  std::int64_t streams = 0;
};

}  // namespace

Time work_bound(const Plan& plan, const Problem& problem) {
  std::vector<ProcessorTime> work(problem.platform.processors.size());
  const auto of = [&](const Lane& lane) -> ProcessorTime& { return work[index(lane.processor)]; };
  for (const Lane& lane : plan.lanes)
    if (lane.kind == Lane::Kind::stream) ++of(lane).streams;
  for (const Step& step : plan.steps) {
    const bool computes = step.kind == StepKind::compute || step.kind == StepKind::pair;
    if (!computes || step.instance > 0) continue;
    const Lane& lane = plan[step.lane];
    ProcessorTime& here = of(lane);
    if (!step.duration && here.times.empty())
      here.times = durations(problem.workload, problem.platform, lane.processor);
    here.total += step.duration ? *step.duration : here.times[index(step.op)];
  }
  Time longest;
  for (const ProcessorTime& it : work)
    if (it.streams > 0)
      longest = std::max(longest, Time{(it.total.count() + it.streams - 1) / it.streams});
  return longest;
}

}  // namespace plimsoll
