#include "policy/pipeline/schedule/data_loading.hpp"

#include "policy/interface/memory_named.hpp"

namespace plimsoll {

DataLoading::DataLoading(const Problem& problem, const PipelineParameters& parameters,
                         std::size_t devices, PlanBuilder& builder)
    : problem_(problem),
      parameters_(parameters),
      builder_(builder),
      from_(memory_named(problem, *parameters.load_from)),
      devices_(devices) {}

void DataLoading::load(const Slots& slots, std::uint32_t slot, std::uint32_t microbatch) {
  Device& device = devices_[slots.device(slot)];
  const MemoryId to = slots.memory(slots.device(slot));
  bool loads = false;
  for (const TensorId input : slots.inputs(slot)) {
    if (to == from_ || builder_.holds(input, microbatch, to)) continue;
    copy(input, microbatch, to, device);
    loads = true;
  }
  if (loads) ++device.loads;
}

void DataLoading::copy(TensorId input, std::uint32_t microbatch, MemoryId to,
                       const Device& device) {
  require_link(problem_, from_, to, "the data and a stage that reads it",
               parameters_.load_from->where);
  const StepId copy =
      builder_.copy(builder_.channel(from_, to), input, microbatch, SourceRelease::keep);
  const auto ahead = static_cast<std::size_t>(parameters_.load_ahead);
  if (ahead == 0 && device.last) builder_.after_end(copy, *device.last);
  if (ahead > 0 && device.loads >= ahead)
    builder_.after_start(copy, device.begun[device.loads - ahead]);
}

void DataLoading::has_run(std::uint32_t device, const StepRange& steps) {
  Device& it = devices_[device];
  it.last = steps.last;
  it.begun.resize(it.loads, steps.first);
}

}  // namespace plimsoll
