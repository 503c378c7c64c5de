#include "policy/interface/stage_steps.hpp"

namespace plimsoll {

void StageSteps::add_to(std::optional<StepRange>& range, LaneId stream, OperatorId op,
                        std::uint32_t microbatch, Form form) {
  const StepId step = builder_.compute(stream, op, microbatch, form);
  const bool goes_on = range && !begins_with_gather_;
  range = StepRange{goes_on ? range->first : step, step};
  begins_with_gather_ = !goes_on && brings(op);
}

StepRange StageSteps::forward(LaneId stream, std::size_t stage, Form form,
                              std::uint32_t microbatch) {
  const ChainStage& it = problem_.chain.stages[stage];
  std::optional<StepRange> range;
  for (std::uint32_t op = it.forward_begin; op < it.forward_end; ++op)
    add_to(range, stream, OperatorId{op}, microbatch, form);
  return *range;
}

StepRange StageSteps::forward_for_backward(LaneId stream, MemoryId memory, std::size_t stage) {
  std::optional<StepRange> range;
  for (const OperatorId op : problem_.chain.backward(stage))
    if (brings(op)) add_to(range, stream, op, 0, Form::keep);
  brought_ = stage;
  const ChainStage& it = problem_.chain.stages[stage];
  for (std::uint32_t op = it.forward_begin; op < it.forward_end; ++op)
    if (!brings(OperatorId{op}) || !builder_.holds_for_backward(OperatorId{op}, 0, memory))
      add_to(range, stream, OperatorId{op}, 0, Form::keep);
  return *range;
}

StepRange StageSteps::backward(LaneId stream, std::size_t stage, std::uint32_t microbatch) {
  const bool has_brought = brought_ == stage;
  brought_.reset();
  std::optional<StepRange> range;
  for (const OperatorId op : problem_.chain.backward(stage))
    if (!has_brought || !brings(op)) add_to(range, stream, op, microbatch, Form::keep);
  return *range;
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
