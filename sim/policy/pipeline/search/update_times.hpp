/// What devices do after the tasks of a pipeline with a flush: they wait for the sums of their
/// replicas' gradients, and run the optimizer.
///
/// All of the optimizer comes after the last task of its device. With replicas that task also makes
/// the last gradients of some slot, which are then reduced before the optimizer reads them. So at
/// least so long passes: the optimizer, or the least of any slot's all-reduce and its part of the
/// optimizer, less what its last backward may still do when its last gradient is made. An
/// all-reduce takes at least the sends of one member, one after the other. Exact for one slot a
/// device whose last operator makes gradients, where links carry nothing else.
#pragma once

#include "plan/core/plan.hpp"
#include "policy/pipeline/parameters/pipeline_parameters.hpp"
#include "policy/pipeline/schedule/slots.hpp"

#include <vector>

namespace plimsoll {

/// By device: the least time between its last task and the end of what follows. `plan` is one of
/// these slots in any order. O(steps + slots x (operators + replicas)).
[[nodiscard]] std::vector<Time> update_times(const Problem& problem,
                                             const PipelineParameters& parameters,
                                             const Slots& slots,
                                             const std::vector<ProcessorId>& devices,
                                             const Plan& plan);

}  // namespace plimsoll
