#include "plan/core/collective_opening.hpp"

#include <algorithm>

namespace plimsoll {

CollectiveOpenings::CollectiveOpenings(const Platform& platform) {
  const auto costs = [](const Processor& it) { return it.collectives != CollectiveCost{}; };
  if (std::ranges::none_of(platform.processors, costs)) return;
  processor_in_.resize(platform.memories.size(), nullptr);
  for (const Processor& processor : platform.processors)
    if (auto& known = processor_in_[index(processor.memory)]; known == nullptr) known = &processor;
}

Time CollectiveOpenings::of(const Plan& plan, const Step& step, const Workload& workload) const {
  if (processor_in_.empty() || step.kind != StepKind::reduce) return {};
  const Reduction& it = plan.reductions[step.reduction];
  if (it.opens == 0) return {};
  return of(plan[step.lane].from, part_bytes(plan, step, workload), it.opens);
}

Time CollectiveOpenings::of(MemoryId member, Bytes part, std::uint32_t parts) const {
  if (processor_in_.empty() || parts == 0) return {};
  const Processor* processor = processor_in_[index(member)];
  if (processor == nullptr) return {};
  const CollectiveCost& cost = processor->collectives;
  return cost.start + transfer_time(part * std::int64_t{parts}, cost.memory);
}

}  // namespace plimsoll
