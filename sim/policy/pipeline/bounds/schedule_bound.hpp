/// What a schedule takes at least, without its plan.
///
/// Time: its tasks in their orders, each as early as its device and what the slots beside it send allow
/// (OrderEvaluator), and the optimizer after the last of a device. A task takes its operators one after
/// the other, where one that uses what a collective of its own task sums up, gathers or hands out waits
/// for that. Up to the first operator that reads a message it may run before the message is there, and
/// a collective that is under way then counts no further. Left out, so that the bound holds: all that
/// waits for links or memories which others use, collectives of the data axis, gradients of tied
/// parameters.
///
/// Bytes, at the end of any task of a device: parameters and optimizer state, gradients of slots that
/// have had a backward, and what slots surely keep of the microbatches whose forwards have ended and
/// whose backwards have not begun.
///
/// The time is exact where messages and collectives have their links to themselves, each slot reads
/// what it is sent first and sends what it makes last, and gradients are not reduced.
#pragma once

#include "policy/pipeline/schedule/schedule.hpp"

namespace plimsoll {

/// No time where tasks overlap, where microbatches run on other devices or parameters are updated on
/// the way; no bytes but parameters and state where slots offload or evict, or where single operators
/// may run again. O(operators x distinct processors + reads + tasks).
/// Precondition: Problem::bound.
[[nodiscard]] PlanBound bound_of(const Problem& problem, const PipelineParameters& parameters,
                                 const Schedule& schedule, const Partition& partition,
                                 const std::vector<ProcessorId>& devices);

}  // namespace plimsoll
