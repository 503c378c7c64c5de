#include "policy/pipeline/planning/plan_pipeline.hpp"

#include "policy/pipeline/bounds/schedule_bound.hpp"
#include "policy/pipeline/planning/fastest_cut.hpp"
#include "policy/pipeline/planning/replication.hpp"
#include "policy/pipeline/reruns/rerun_planner.hpp"
#include "policy/pipeline/schedule/slot_savings.hpp"

#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// As the plan of the schedule does.
void require_links(const Problem& problem, const PipelineParameters& parameters,
                   const Schedule& schedule, std::span<const ProcessorId> devices) {
  std::vector<MemoryId> by_slot;
  for (const std::uint32_t device : schedule.placement)
    by_slot.push_back(problem.platform[devices[device]].memory);
  require_links_of_stages(problem, by_slot, parameters.where);
}

/// With the first of its partitions.
Planned plan_cut(const Problem& problem, const PipelineParameters& parameters,
                 const ScheduleRule& rule, const SlotPlacement& placement) {
  const std::vector<ProcessorId> devices = pipeline_devices(problem, parameters);
  const Partition partition = partition_for(problem, parameters, devices, placement);
  Schedule schedule = rule(static_cast<std::uint32_t>(devices.size()),
                           static_cast<std::uint32_t>(parameters.microbatches),
                           static_cast<std::uint32_t>(parameters.virtual_stages));
  require_equal_replicas(parameters);
  if (parameters.is_folded() && !schedule.turned.empty())
    refuse(parameters.data_parallel->where,
           fmt::format("`{}` holds two copies of the parameters; one replica cannot be "
                       "played for all",
                       parameters.name),
           fmt::format("`replicas: {}` plays every one", parameters.data_parallel->value));
  save_memory(schedule, problem, parameters, devices);
  if (problem.bound != nullptr) {
    require_links(problem, parameters, schedule, devices);
    problem.bound->add(bound_of(problem, parameters, schedule, partition, devices));
    return Infeasible{"only a bound was asked for", MemoryId{}, Bytes{}};
  }
  if (!parameters.replicas)
    return plan_with_reruns(problem, parameters, schedule, partition, devices);
  const Replicas replicas(replica_groups(problem, parameters));
  const bool offloads = !schedule.stores.empty();
  schedule = dealt_out(schedule, replicas);
  if (offloads) schedule.stores = stores_of(problem, parameters, replicas.devices());
  return plan_with_reruns(problem, parameters, schedule, partition, replicas.devices());
}

}  // namespace

Planned plan_pipeline(const Problem& problem, const PipelineParameters& parameters,
                      const ScheduleRule& rule, const SlotPlacement& placement) {
  refuse_too_many_steps(problem, parameters);
  return with_fastest_cut(problem, parameters, placement, [&](const PipelineParameters& cut) {
    return plan_cut(problem, cut, rule, placement);
  });
}

SlotCosts slot_costs(const Problem& problem, const PipelineParameters& parameters,
                     StagePlacementRule placement) {
  refuse_too_many_steps(problem, parameters);
  const std::vector<ProcessorId> devices = pipeline_devices(problem, parameters);
  const Partition partition = partition_for(problem, parameters, devices, placement);
  SlotCosts costs = Slots(problem, partition, devices,
                          placement(static_cast<std::uint32_t>(devices.size()),
                                    static_cast<std::uint32_t>(parameters.virtual_stages)))
                        .costs();
  add_recomputation(costs, parameters);
  return costs;
}

SlotCosts slot_costs_with_reruns(const Problem& problem, const PipelineParameters& parameters,
                                 StagePlacementRule placement) {
  PipelineParameters whole = parameters;
  whole.recompute->value = RecomputeChoice{};
  return slot_costs(problem, whole, placement);
}

Planned plan_timed_pipeline(const Problem& problem, const PipelineParameters& parameters,
                            StagePlacementRule placement, const TimedScheduleRule& rule) {
  const auto plan = [&](const PipelineParameters& cut, const SlotCosts& costs) {
    const ScheduleRule order = [&](std::uint32_t, std::uint32_t microbatches, std::uint32_t) {
      return rule(costs, microbatches);
    };
    return plan_pipeline(problem, cut, order, placement);
  };
  return with_fastest_cut(
      problem, parameters, placement, [&](const PipelineParameters& cut) -> Planned {
        std::optional<Planned> best = plan(cut, slot_costs(problem, cut, placement));
        if (cut.plans_reruns())
          keep_faster(best, plan(cut, slot_costs_with_reruns(problem, cut, placement)), problem);
        return std::move(*best);
      });
}

}  // namespace plimsoll
