/// `recompute` and `offload`: what slots keep for their backwards, made less. Both turn the orders
/// of a schedule into orders with more tasks, so that they go with every schedule.
///
/// recompute. The forward of a slot leaves its output and keeps nothing but its input: what another
/// device sent. (The input of the step stays anyway.) A task in front of the backward, or of its
/// input half, or of the overlapped pair that it is in, runs the forward once more, and keeps all.
/// It waits for nothing but its device, so that it fills time in which the device waits for a
/// gradient; where the backward itself recomputes, as in frameworks, it starts only after that.
///
/// offload. What a slot keeps for a microbatch leaves over links for the store of the device once
/// its forward has ended, and comes back before the first task of the device that reads it: the
/// backward, the recomputation in front of it, or that of the next slot, if it is there, too.
/// Copies run beside tasks, out and back in the order of the tasks, and contend for links like all
/// others. It is sent for when the task `distance` places before that one starts; overlapped pairs
/// and recomputations count as one. What would be sent for when its own forward starts, or before,
/// stays.
///
/// Messages that pass, parameters, gradients and workspaces stay where they are.
#pragma once

#include "policy/pipeline/schedule/schedule.hpp"
#include "policy/pipeline/schedule/slot_slack.hpp"

namespace plimsoll {

/// Makes `schedule` do what the parameters ask for. Throws InputError where they name slots that
/// are not there, or as stores_of() does. O(tasks).
void save_memory(Schedule& schedule, const Problem& problem, const PipelineParameters& parameters,
                 const std::vector<ProcessorId>& devices);

/// As save_memory() makes it where every slot runs its forward once more, and no single operator
/// does. O(tasks).
[[nodiscard]] Schedule with_whole_slots(Schedule schedule);

/// Throws InputError where it names slots that are not there.
void require_slots(const SlotChoice& choice, const Location& where, std::size_t slots);

/// Throws InputError where `recompute` names slots that are not there; by slot whether it does,
/// empty where none does.
[[nodiscard]] std::vector<bool> recomputed_slots(const PipelineParameters& parameters,
                                                 std::size_t slots);

/// Where each device offloads to. Throws InputError where devices share a memory, or one has no way
/// to a store.
[[nodiscard]] std::vector<MemoryId> stores_of(const Problem& problem,
                                              const PipelineParameters& parameters,
                                              const std::vector<ProcessorId>& devices);

/// A backward lasts longer by the recomputation before it. What is kept is not less there, as a
/// half of a backward may hold it on.
void add_recomputation(SlotCosts& costs, const PipelineParameters& parameters);

/// The same for searches that look at when gradients are read, and that play what they find: a
/// recomputation reads none, and the slot keeps what is left until then, and not what a half of a
/// backward holds on.
void add_recomputation(SlotCosts& costs, SlotSlack& slack, const Problem& problem,
                       const Slots& slots, const PipelineParameters& parameters);

}  // namespace plimsoll
