/// Emits the operators of whole chain stages into a plan.
#pragma once

#include "plan/build/plan_builder.hpp"
#include "policy/interface/policy.hpp"

#include <optional>
#include <vector>

namespace plimsoll {

/// The first and last step of what was emitted; equal ids where there was one. Of steps that bring parameters the first
/// one is no part, where others follow: what is said of a stage is not said of them.
struct StepRange {
  StepId first{}, last{};
};

class StageSteps {
 public:
  StageSteps(PlanBuilder& builder, const Problem& problem) : builder_(builder), problem_(problem) {}

  /// All forward operators of `stage`, in the given form.
  StepRange forward(LaneId stream, std::size_t stage, Form form, std::uint32_t microbatch = 0);

  /// Forward operators of `stage` that run once more, right before its backward: parameters that are brought for that
  /// serve them, too, as with activation checkpointing under PyTorch's FSDP.
  StepRange forward_for_backward(LaneId stream, MemoryId memory, std::size_t stage);

  /// All backward operators of `stage`, but for those that forward_for_backward() emitted. Precondition: it has one.
  StepRange backward(LaneId stream, std::size_t stage, std::uint32_t microbatch = 0);

  /// Copies everything that `stage` keeps for backward over a channel, one tensor after the other;
  /// the range is empty (nothing) where the stage keeps nothing.
  std::optional<StepRange> copy_saved(LaneId channel, std::size_t stage, SourceRelease source);

  /// All optimizer operators, after the backwards.
  void optimize(LaneId stream);

 private:
  [[nodiscard]] bool brings(OperatorId op) const {
    return brings_parameters(problem_.workload[op]);
  }
  /// Emits an operator as the next one of a range.
  void add_to(std::optional<StepRange>& range, LaneId stream, OperatorId op,
              std::uint32_t microbatch, Form form);

  PlanBuilder& builder_;
  const Problem& problem_;
  std::optional<std::size_t> brought_;  ///< the stage for whose backward all has been brought
  bool begins_with_gather_ = false;     ///< the range that is emitted, so far
};

}  // namespace plimsoll
