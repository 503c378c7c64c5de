#include "policy/pipeline/partition/stage_times.hpp"

#include "workload/cost/cost_model.hpp"

namespace plimsoll {

std::vector<Time> stage_times(const Problem& problem, ProcessorId processor) {
  const std::vector<Time> times = durations(problem.workload, problem.platform, processor);
  std::vector<Time> sums(problem.chain.stages.size());
  for (std::size_t s = 0; s < sums.size(); ++s) {
    const ChainStage& stage = problem.chain.stages[s];
    for (std::uint32_t op = stage.forward_begin; op < stage.forward_end; ++op) sums[s] += times[op];
    for (const OperatorId op : problem.chain.backward(s))
      sums[s] += times[static_cast<std::size_t>(op)];
  }
  return sums;
}

}  // namespace plimsoll
