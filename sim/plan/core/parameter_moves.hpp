/// Moves of parameters between ranks that each have updated a part of them, or back from where they were
/// updated: the next step reads what they bring, so that a step lasts until they have ended.
#pragma once

#include "base/dense_id.hpp"
#include "plan/core/plan.hpp"

#include <algorithm>
#include <vector>

namespace plimsoll {

[[nodiscard]] inline bool moves_parameters(const Plan& plan, const Step& step,
                                           const Workload& workload) {
  if (step.kind != StepKind::reduce) return false;
  const Tensor& moved = workload[plan[plan.list(step.reads).back()].tensor];
  return moved.tensor_class == TensorClass::parameter && moved.lifetime == Lifetime::resident;
}

/// Whether an update changes parameters where they live, apart from those who fetch them for the next
/// step.
[[nodiscard]] inline bool updates_parameters_elsewhere(const Step& step, const Workload& workload) {
  if (step.kind != StepKind::compute || workload[step.op].phase != Phase::optimizer) return false;
  return std::ranges::any_of(workload.list(workload[step.op].updates),
                             [&](TensorId id) { return workload[id].home == Home::parameters; });
}

/// Who works on the memories that channels join.
class ChannelEnds {
 public:
  explicit ChannelEnds(const Platform& platform) : on_(platform.memories.size()) {
    for (std::uint32_t p = 0; p < platform.processors.size(); ++p)
      on_[index(platform.processors[p].memory)].push_back(ProcessorId{p});
  }

  /// Calls `visit` with every processor that works on an end of the channel.
  void for_each(const Lane& channel, auto visit) const {
    for (const MemoryId end : {channel.from, channel.to})
      for (const ProcessorId processor : on_[index(end)]) visit(processor);
  }

  /// Calls `visit` with every processor whose next step waits for this step of the plan.
  void for_each_that_waits(const Plan& plan, const Step& step, const Workload& workload,
                           auto visit) const {
    if (moves_parameters(plan, step, workload)) for_each(plan[step.lane], visit);
    if (updates_parameters_elsewhere(step, workload))
      for (const auto& processors : on_)
        for (const ProcessorId processor : processors) visit(processor);
  }

 private:
  std::vector<std::vector<ProcessorId>> on_;  ///< by memory
};

}  // namespace plimsoll
