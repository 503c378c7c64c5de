/// The optimizer at the end of a pipeline.
#pragma once

#include "plan/build/plan_builder.hpp"
#include "policy/pipeline/schedule/slots.hpp"

#include <vector>

namespace plimsoll {

/// An optimizer operator runs where a gradient that it reads was made, once for every memory. A
/// device makes none for a direction that no microbatch takes. What reads the result of another runs
/// where that ran. State that lives elsewhere is fetched before the update that reads it, where that
/// runs. One that reads nothing, the overhead of a step, runs on every device. `directions` are the slots as placed for either direction,
/// `streams` those of the devices.
void add_optimizer_steps(PlanBuilder& builder, const Problem& problem,
                         const std::vector<const Slots*>& directions,
                         const std::vector<LaneId>& streams);

}  // namespace plimsoll
