/// The outline of a schedule: policy/interface/outline.hpp.
#pragma once

#include "policy/interface/outline.hpp"
#include "policy/pipeline/schedule/schedule.hpp"

namespace plimsoll {

/// Of what plan_schedule() would plan of these. It is whole where microbatches take the same way, share the
/// parameters of one step, and overlap with no other. O(tasks + operators).
[[nodiscard]] Outline outline_of(const Problem& problem, const PipelineParameters& parameters,
                                 const Schedule& schedule, const Partition& partition,
                                 const std::vector<ProcessorId>& devices);

}  // namespace plimsoll
