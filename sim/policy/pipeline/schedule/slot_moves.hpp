/// What slots keep leaves a device and comes back: to its partner, in step with the tasks of the
/// device, or to its store, beside them.
///
/// What a device evicts frees room for the forwards and fetches that follow in its order: they wait
/// for the end of it, and a fetch for the task before it, too. An eviction waits for the fetches
/// before it, so that the partner holds no more than the orders say.
///
/// What is offloaded leaves as soon as it is there and the way is free, and nothing waits for it
/// but what finds its memory full, or where an order awaits it. A reload starts once the task
/// before it in the order has started. What is read while it leaves is freed after that reader.
#pragma once

#include "plan/build/plan_builder.hpp"
#include "policy/interface/stage_steps.hpp"
#include "policy/pipeline/schedule/schedule.hpp"
#include "policy/pipeline/schedule/slot_store.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

class SlotMoves {
 public:
  /// The arguments must outlive it.
  SlotMoves(const Schedule& schedule, PlanBuilder& builder)
      : schedule_(schedule),
        builder_(builder),
        store_(schedule.stores, schedule.recomputed, builder),
        evictions_(schedule.orders.size()),
        fetches_(schedule.orders.size()) {}

  /// Adds the copies of an evict, fetch, offload or reload. `slots` are those of its microbatch,
  /// `before` what the device ran last.
  void emit(const Task& task, std::uint32_t device, const Slots& slots, StepRange before);

  /// The copies of an offload that was emitted and is not yet reloaded.
  [[nodiscard]] std::vector<StepId> offload(const Task& task) const;

  /// The step, the first of a forward, waits for what the device evicted before it.
  void wait_for_room(std::uint32_t device, StepId step);

 private:
  void move_to_partner(const Task& task, std::uint32_t device, const Slots& slots,
                       StepId last_before);

  const Schedule& schedule_;
  PlanBuilder& builder_;
  SlotStore store_;
  std::vector<std::vector<StepId>> evictions_, fetches_;  ///< by device, those still waited for
};

}  // namespace plimsoll
