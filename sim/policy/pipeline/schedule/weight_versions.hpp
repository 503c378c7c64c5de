/// Versions of the parameters of a pipeline that updates them before it is drained.
///
/// A device updates its parameters after every n microbatches' backwards. A microbatch's backward
/// reads the version that its forward read, so an update makes a new version, in the memory of the
/// device, where the version before it is still to be read; else it changes that one in place.
/// There is one gradient buffer. Making a version takes no time beside the optimizer's operators.
#pragma once

#include "plan/plan_builder.hpp"
#include "policy/pipeline/schedule/slots.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

/// When a schedule of one slot a device updates parameters.
struct WeightUpdates {
  std::uint32_t every = 0;  ///< microbatches of one update; 0: one update after all of them
  /// By device and microbatch: the number of updates that the version has had which its forward and
  /// backward read. Does not fall from a microbatch to the next.
  std::vector<std::vector<std::uint32_t>> read;
  /// By device, where mini-batches follow each other: after so many forwards the update of the
  /// mini-batch before makes the second version in `read`, without an optimizer that is played.
  /// Empty where nothing comes before.
  std::vector<std::uint32_t> begun;
};

class WeightVersions {
 public:
  /// The arguments must outlive it. Precondition: slot i is on device i.
  WeightVersions(const Problem& problem, const Slots& slots, const WeightUpdates& updates,
                 PlanBuilder& builder);

  void before_forward(std::uint32_t device, std::uint32_t microbatch);
  /// `last` is the last step of the forward.
  void after_forward(std::uint32_t device, std::uint32_t microbatch, StepId last);
  /// `last` is the last step of the backward, `stream` where the optimizer runs.
  void after_backward(std::uint32_t device, std::uint32_t microbatch, StepId last, LaneId stream);

 private:
  struct Device {
    std::vector<TensorId> weights;
    std::vector<OperatorId> optimizers;
    std::uint32_t backwards = 0;
    std::vector<std::vector<BufferId>> versions;  ///< by number of updates, of all weights
  };

  void gather(const Slots& slots, std::uint32_t device);
  void update(std::uint32_t device, std::uint32_t microbatch, StepId last, LaneId stream);
  void add_version(std::uint32_t device, std::uint32_t microbatch, StepId last);

  const Problem& problem_;
  const Slots& slots_;
  const WeightUpdates& updates_;
  PlanBuilder& builder_;
  std::vector<Device> devices_;
};

}  // namespace plimsoll
