#include "policy/pipeline/schedule/slot_moves.hpp"

#include <utility>

namespace plimsoll {

void SlotMoves::emit(const Task& task, std::uint32_t device, const Slots& slots, StepRange before) {
  if (task.kind == Task::Kind::evict || task.kind == Task::Kind::fetch)
    move_to_partner(task, device, slots, before.last);
  else if (task.kind == Task::Kind::offload)
    store_.leave(slots, task.slot, task.microbatch);
  else
    for (const StepId copy : store_.come_back(slots, task.slot, task.microbatch))
      if (task.kind == Task::Kind::reload)
        builder_.after_start(copy, before.first);
      else
        builder_.after_end(copy, before.last);
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
  for (const TensorId tensor : store_.kept(slots, task.slot)) {
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

std::vector<StepId> SlotMoves::offload(const Task& task) const {
  return store_.gone(task.slot, task.microbatch);
}

}  // namespace plimsoll
