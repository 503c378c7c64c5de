/// Moves of parameters between ranks that each have updated a part of them: the next step reads what
/// they bring, so that a step lasts until they have ended.
#pragma once

#include "plan/core/plan.hpp"

namespace plimsoll {

[[nodiscard]] inline bool moves_parameters(const Plan& plan, const Step& step,
                                           const Workload& workload) {
  if (step.kind != StepKind::reduce) return false;
  const Tensor& moved = workload[plan[plan.list(step.reads).front()].tensor];
  return moved.tensor_class == TensorClass::parameter && moved.lifetime == Lifetime::resident;
}

/// Calls `visit` with every processor that works on an end of the channel.
void for_ends_of(const Lane& channel, const Platform& platform, auto visit) {
  for (std::uint32_t p = 0; p < platform.processors.size(); ++p) {
    const MemoryId memory = platform.processors[p].memory;
    if (memory == channel.from || memory == channel.to) visit(ProcessorId{p});
  }
}

}  // namespace plimsoll
