/// From a generator of orders to a plan, with the cut that suits it.
#pragma once

#include "policy/pipeline/partition/placement.hpp"
#include "policy/pipeline/schedule/schedule.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace plimsoll {

/// A generator: devices p, microbatches m, virtual stages v.
using ScheduleRule = std::function<Schedule(std::uint32_t devices, std::uint32_t microbatches,
                                            std::uint32_t virtual_stages)>;

/// Builds the plan: cuts the workload, in the way that makes the fastest plan where there are
/// several, and runs the orders. `placement` is that of the schedule.
[[nodiscard]] Planned plan_pipeline(const Problem& problem, const PipelineParameters& parameters,
                                    const ScheduleRule& rule,
                                    const SlotPlacement& placement = loop_placement);

/// A generator that looks at times and sizes, for slots that are placed by a rule.
using StagePlacementRule = std::vector<std::uint32_t> (*)(std::uint32_t devices,
                                                          std::uint32_t virtual_stages);
using TimedScheduleRule =
    std::function<Schedule(const SlotCosts& costs, std::uint32_t microbatches)>;

/// What such a generator looks at, with the first of partitions_for().
[[nodiscard]] SlotCosts slot_costs(const Problem& problem, const PipelineParameters& parameters,
                                   StagePlacementRule placement);

/// The same where every slot runs its forward once more, for orders that suit planned reruns.
[[nodiscard]] SlotCosts slot_costs_with_reruns(const Problem& problem,
                                               const PipelineParameters& parameters,
                                               StagePlacementRule placement);

/// Where a planner chooses reruns, the generator looks at costs without any and at those of whole
/// forwards that run again, and the faster plan is taken: that of `recompute: full` is one of them.
[[nodiscard]] Planned plan_timed_pipeline(const Problem& problem,
                                          const PipelineParameters& parameters,
                                          StagePlacementRule placement,
                                          const TimedScheduleRule& rule);

}  // namespace plimsoll
