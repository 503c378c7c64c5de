#include "policy/pipeline/schedule/slot_store.hpp"

namespace plimsoll {

const std::vector<TensorId>& SlotStore::kept(const Slots& slots, std::uint32_t slot) {
  kept_.resize(slots.count());
  auto& known = kept_[slot];
  if (!known) known = slots.kept(slot, !recomputed_.empty() && recomputed_[slot]);
  return *known;
}

const std::vector<StepId>& SlotStore::leave(const Slots& slots, std::uint32_t slot,
                                            std::uint32_t microbatch) {
  const std::uint32_t device = slots.device(slot);
  const LaneId channel = builder_.channel(slots.memory(device), stores_[device]);
  std::vector<StepId>& copies = gone_[{slot, microbatch}];
  for (const TensorId tensor : kept(slots, slot))
    copies.push_back(builder_.copy(channel, tensor, microbatch, SourceRelease::whole));
  return copies;
}

/// Devices may share a store, which then has a value of each that keeps it.
std::vector<StepId> SlotStore::come_back(const Slots& slots, std::uint32_t slot,
                                         std::uint32_t microbatch) {
  const std::uint32_t device = slots.device(slot);
  const LaneId channel = builder_.channel(stores_[device], slots.memory(device));
  const auto gone = gone_.extract({slot, microbatch});
  std::vector<StepId> copies;
  for (const StepId copy : gone.mapped())
    copies.push_back(builder_.copy_on(copy, channel, SourceRelease::whole));
  return copies;
}

std::vector<StepId> SlotStore::gone(std::uint32_t slot, std::uint32_t microbatch) const {
  const auto found = gone_.find({slot, microbatch});
  return found == gone_.end() ? std::vector<StepId>() : found->second;
}

}  // namespace plimsoll
