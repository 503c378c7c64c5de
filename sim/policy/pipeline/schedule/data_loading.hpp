/// What microbatches begin with, on its way from where data is.
///
/// The inputs of the workload are in the memory that `load_from` names, and a copy brings those of
/// a microbatch to every device that reads them: one for each input that the device's slot reads.
/// It is issued in front of the slot's forward and starts when the forward `load_ahead` loads
/// before it starts; with 0 when the device has ended all that it ran before, which then waits. A
/// copy goes with its last reader, so that a device holds the inputs that it loads ahead and those
/// of microbatches in flight.
#pragma once

#include "plan/build/plan_builder.hpp"
#include "policy/interface/stage_steps.hpp"
#include "policy/pipeline/parameters/pipeline_parameters.hpp"
#include "policy/pipeline/schedule/slots.hpp"

#include <optional>
#include <vector>

namespace plimsoll {

class DataLoading {
 public:
  /// The arguments must outlive it. Precondition: parameters.load_from. Throws InputError where
  /// there is no such memory.
  DataLoading(const Problem& problem, const PipelineParameters& parameters, std::size_t devices,
              PlanBuilder& builder);

  /// In front of a forward. Throws InputError where no link leads to the device.
  void load(const Slots& slots, std::uint32_t slot, std::uint32_t microbatch);
  /// The device has run these steps; with them the forwards for which it has loaded begin.
  void has_run(std::uint32_t device, const StepRange& steps);

 private:
  struct Device {
    std::vector<StepId> begun;  ///< by load: the first step of the forward that it was for
    std::size_t loads = 0;
    std::optional<StepId> last;
  };

  void copy(TensorId input, std::uint32_t microbatch, MemoryId to, const Device& device);

  const Problem& problem_;
  const PipelineParameters& parameters_;
  PlanBuilder& builder_;
  MemoryId from_{};
  std::vector<Device> devices_;
};

}  // namespace plimsoll
