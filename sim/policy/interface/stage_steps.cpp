#include "policy/interface/stage_steps.hpp"

#include <cassert>

namespace plimsoll {

StepRange StageSteps::forward(LaneId stream, std::size_t stage, Form form,
                              std::uint32_t microbatch) {
  const ChainStage& it = problem_.chain.stages[stage];
  StepRange range;
  for (std::uint32_t op = it.forward_begin; op < it.forward_end; ++op) {
    range.last = builder_.compute(stream, OperatorId{op}, microbatch, form);
    if (op == it.forward_begin) range.first = range.last;
  }
  return range;
}

StepRange StageSteps::backward(LaneId stream, std::size_t stage, std::uint32_t microbatch) {
  const auto operators = problem_.chain.backward(stage);
  StepRange range;
  for (const OperatorId op : operators) {
    range.last = builder_.compute(stream, op, microbatch);
    if (op == operators.front()) range.first = range.last;
  }
  return range;
}

std::optional<StepRange> StageSteps::copy_saved(LaneId channel, std::size_t stage,
                                                SourceRelease source) {
  std::optional<StepRange> range;
  for (const TensorId tensor : problem_.chain.saved(stage)) {
    const StepId copy = builder_.copy(channel, tensor, 0, source);
    range = StepRange{range ? range->first : copy, copy};
  }
  return range;
}

void StageSteps::optimize(LaneId stream) {
  const Workload& workload = problem_.workload;
  for (std::uint32_t op = workload.optimizer_begin; op < workload.operators.size(); ++op)
    builder_.compute(stream, OperatorId{op});
}

}  // namespace plimsoll
