/// Plans of a pipeline in which single operators run again: `recompute: selective`, or with a
/// planner of graphs for the memory that the schedule leaves each device.
///
/// A device that holds n microbatches of a slot has n times what one keeps across the pause between
/// its forward and its backward, and what the one needs that runs. So a share of what is kept
/// without reruns is chosen, for all slots of a device alike; the rest of the memory is the room
/// for what runs; and the planner looks for the least reruns within both. Of the shares those whose
/// reruns take least are taken. What messages, gradients of parameters, inputs and optimizer state
/// need beside that is the difference between the peak of a plan and this count of it: the plan is
/// made, its peaks are claimed or seen by the judge, and what is above the limit of a device is
/// taken off its room, until all fits. Devices that fit as they are run nothing again.
///
/// Devices that run the same slot, as in schedules with two directions, share its plan.
#pragma once

#include "policy/pipeline/schedule/schedule.hpp"

namespace plimsoll {

/// plan_schedule(), with the reruns that the parameters ask for. Answers Infeasible with the peak
/// of the leanest plan that it finds. Throws InputError with `offload`, or where partners hold what
/// slots keep; where `selective` finds no attention; where peaks cannot be told; where
/// remat/checkmate has no program. At most some tens of searches a slot, and of plans.
[[nodiscard]] Planned plan_with_reruns(const Problem& problem, const PipelineParameters& parameters,
                                       const Schedule& schedule, const Partition& partition,
                                       const std::vector<ProcessorId>& devices);

}  // namespace plimsoll
