/// Versions of the parameters of a pipeline that updates them before it is drained.
///
/// A device updates its parameters after every n microbatches' backwards. A microbatch's backward
/// reads the version that its forward read, so an update makes a new version, in the memory of the
/// device, where the version before it is still to be read; else it changes that one in place.
/// There is one gradient buffer. Making a version takes no time beside the optimizer's operators.
/// Every replica of a stage does so for itself, after as many of its own microbatches.
#pragma once

#include "plan/build/plan_builder.hpp"
#include "policy/pipeline/schedule/slots.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll {

/// When a schedule of one slot a device updates parameters, in microbatches of one replica.
struct WeightUpdates {
  std::uint32_t every = 0;  ///< microbatches of one update; 0: one update after all of them
  /// By slot and microbatch: the number of updates that the version has had which its forward and
  /// backward read. Does not fall from a microbatch to the next.
  std::vector<std::vector<std::uint32_t>> read;
  /// By slot, where mini-batches follow each other: after so many forwards the update of the
  /// mini-batch before makes the second version in `read`, without a reduction and an optimizer
  /// that are played. Empty where nothing comes before.
  std::vector<std::uint32_t> begun;
};

class WeightVersions {
 public:
  /// `placed` are the slots as placed for each replica (Schedule::dealt). The arguments must
  /// outlive it. Precondition: a device holds one slot of one replica.
  WeightVersions(const Problem& problem, const std::vector<Slots>& placed,
                 const WeightUpdates& updates, PlanBuilder& builder);

  void before_forward(std::uint32_t device, std::uint32_t microbatch);
  /// `last` is the last step of the forward.
  void after_forward(std::uint32_t device, std::uint32_t microbatch, StepId last);
  /// Whether an update comes next.
  [[nodiscard]] bool after_backward(std::uint32_t device, std::uint32_t microbatch);
  /// After the backward of `microbatch` and the steps of `after`, with the optimizer on `stream`.
  void update(std::uint32_t device, std::uint32_t microbatch, std::span<const StepId> after,
              LaneId stream);

 private:
  struct Device {
    const Slots* slots = nullptr;  ///< of its replica
    std::size_t slot = 0;
    std::vector<TensorId> weights;
    std::vector<OperatorId> optimizers;
    std::uint32_t backwards = 0;
    std::vector<std::vector<BufferId>> versions;  ///< by number of updates, of all weights
  };

  void gather(std::uint32_t device);
  void add_version(std::uint32_t device, std::uint32_t microbatch, std::span<const StepId> after);
  /// The number of a microbatch among those of its replica.
  [[nodiscard]] std::uint32_t own(std::uint32_t microbatch) const { return microbatch / replicas_; }
  [[nodiscard]] MemoryId memory(std::uint32_t device) const {
    return devices_[device].slots->memory(device);
  }

  const Problem& problem_;
  const WeightUpdates& updates_;
  PlanBuilder& builder_;
  const std::uint32_t replicas_;
  std::vector<Device> devices_;
};

}  // namespace plimsoll
