/// Plans of a pipeline in which single operators run again: `recompute: selective`, or with a
/// planner of graphs for the memory that the schedule leaves each device.
///
/// Each family of devices that does not fit as it is takes a plan made for a room that is known
/// beforehand (family_plans.hpp). What messages, gradients of parameters, inputs and optimizer state
/// need beside what is counted there shows in the plan of all: it is made, its peaks are claimed or
/// seen by the judge, what is above the limit of a device is taken off its room until all fits, and
/// room that is left is given to one family after the other. `selective` and `full`, on all devices
/// and on those that do not fit, are tried as well; the fastest plan that fits is taken. Devices
/// that fit as they are run nothing again.
///
/// Devices that run the same slot, as in schedules with two directions, share its plan.
#pragma once

#include "policy/pipeline/schedule/schedule.hpp"

namespace plimsoll {

/// plan_schedule(), with the reruns that the parameters ask for. With a budget it is never behind
/// the same schedule with `recompute: none`, `selective` or `full` where that fits. Answers
/// Infeasible with the peak of the leanest plan that it finds. Throws InputError with `offload`, or where partners hold what
/// slots keep; where `selective` finds no attention; where peaks cannot be told; where
/// remat/checkmate has no program. At most some tens of searches a slot, and of plans.
[[nodiscard]] Planned plan_with_reruns(const Problem& problem, const PipelineParameters& parameters,
                                       const Schedule& schedule, const Partition& partition,
                                       const std::vector<ProcessorId>& devices);

}  // namespace plimsoll
