#include "policy/pipeline/schedule/optimizer_steps.hpp"

#include <algorithm>

namespace plimsoll {

void add_optimizer_steps(PlanBuilder& builder, const Problem& problem,
                         const std::vector<const Slots*>& directions,
                         const std::vector<LaneId>& streams) {
  const Workload& workload = problem.workload;
  for (std::uint32_t op = workload.optimizer_begin; op < workload.operators.size(); ++op) {
    const auto reads = workload.list(workload.operators[op].reads);
    if (reads.empty())
      for (const LaneId stream : streams) builder.compute(stream, OperatorId{op});
    std::vector<MemoryId> done;
    for (const TensorId read : reads)
      for (const Slots* slots : directions)
        for (const std::uint32_t device : slots->makers(read)) {
          const MemoryId memory = slots->memory(device);
          if (std::ranges::find(done, memory) != done.end() || !builder.holds(read, 0, memory))
            continue;
          builder.compute(streams[device], OperatorId{op});
          done.push_back(memory);
        }
  }
}

}  // namespace plimsoll
