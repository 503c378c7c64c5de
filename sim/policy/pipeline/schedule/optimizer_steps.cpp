#include "policy/pipeline/schedule/optimizer_steps.hpp"

#include <algorithm>
#include <map>
#include <vector>

namespace plimsoll {

void add_optimizer_steps(PlanBuilder& builder, const Problem& problem,
                         const std::vector<const Slots*>& directions,
                         const std::vector<LaneId>& streams) {
  const Workload& workload = problem.workload;
  std::map<TensorId, std::vector<std::uint32_t>> made;  // or changed, by updates, on which devices
  for (std::uint32_t op = workload.optimizer_begin; op < workload.operators.size(); ++op) {
    const auto reads = workload.list(workload.operators[op].reads);
    if (reads.empty())
      for (const LaneId stream : streams) builder.compute(stream, OperatorId{op});
    std::vector<MemoryId> done;
    const auto run_on = [&](const Slots& slots, std::uint32_t device, TensorId read) {
      const MemoryId memory = slots.memory(device);
      if (std::ranges::find(done, memory) != done.end() || !builder.holds(read, 0, memory)) return;
      builder.compute(streams[device], OperatorId{op});
      done.push_back(memory);
      for (const TensorList list : {workload.operators[op].kept, workload.operators[op].updates})
        for (const TensorId id : workload.list(list)) made[id].push_back(device);
    };
    for (const TensorId read : reads)
      for (const Slots* slots : directions) {
        for (const std::uint32_t device : slots->makers(read)) run_on(*slots, device, read);
        if (const auto found = made.find(read); found != made.end())
          for (const std::uint32_t device : std::vector(found->second))
            run_on(*slots, device, read);
      }
  }
}

}  // namespace plimsoll
