#include "policy/pipeline/schedule/slot_moves.hpp"

#include <utility>

namespace plimsoll {

void SlotMoves::emit(const Task& task, std::uint32_t device, const Slots& slots, StepRange before) {
  if (task.kind == Task::Kind::evict || task.kind == Task::Kind::fetch)
    move_to_partner(task, device, slots, before.last);
  else if (task.kind == Task::Kind::offload)
    leave(task, device, slots);
  else
    come_back(task, device, slots, before.first);
}

void SlotMoves::wait_for_room(std::uint32_t device, StepId step) {
  for (const StepId eviction : std::exchange(evictions_[device], {}))
    builder_.after_end(step, eviction);
}

void SlotMoves::move_to_partner(const Task& task, std::uint32_t device, const Slots& slots,
                                StepId last_before) {
  const MemoryId here = slots.memory(device), there = slots.memory(schedule_.partners[device]);
  const bool leaves = task.kind == Task::Kind::evict;
  const LaneId channel = leaves ? builder_.channel(here, there) : builder_.channel(there, here);
  std::vector<StepId>&evictions = evictions_[device], &fetches = fetches_[device];
  std::vector<StepId> copies;
  for (const TensorId tensor : kept(slots, task.slot)) {
    copies.push_back(builder_.copy(channel, tensor, task.microbatch, SourceRelease::whole));
    for (const StepId before : leaves ? fetches : evictions)
      builder_.after_end(copies.back(), before);
    if (!leaves) builder_.after_end(copies.back(), last_before);
  }
  if (leaves)
    evictions.insert(evictions.end(), copies.begin(), copies.end());
  else
    fetches = std::move(copies);
}

void SlotMoves::leave(const Task& task, std::uint32_t device, const Slots& slots) {
  const LaneId channel = builder_.channel(slots.memory(device), schedule_.stores[device]);
  std::vector<StepId>& copies = offloads_[{task.slot, task.microbatch}];
  for (const TensorId tensor : kept(slots, task.slot))
    copies.push_back(builder_.copy(channel, tensor, task.microbatch, SourceRelease::whole));
}

/// Devices may share a store, which then has a value of each that keeps it.
void SlotMoves::come_back(const Task& task, std::uint32_t device, const Slots& slots,
                          StepId first_before) {
  const LaneId channel = builder_.channel(schedule_.stores[device], slots.memory(device));
  const auto gone = offloads_.extract({task.slot, task.microbatch});
  for (const StepId copy : gone.mapped())
    builder_.after_start(builder_.copy_on(copy, channel, SourceRelease::whole), first_before);
}

std::vector<StepId> SlotMoves::offload(const Task& task) const {
  const auto found = offloads_.find({task.slot, task.microbatch});
  return found == offloads_.end() ? std::vector<StepId>() : found->second;
}

const std::vector<TensorId>& SlotMoves::kept(const Slots& slots, std::size_t slot) {
  kept_.resize(slots.count());
  auto& known = kept_[slot];
  if (!known) known = slots.kept(slot, !schedule_.recomputed.empty() && schedule_.recomputed[slot]);
  return *known;
}

}  // namespace plimsoll
