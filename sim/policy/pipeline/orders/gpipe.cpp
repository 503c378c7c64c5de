#include "policy/interface/registry.hpp"
#include "policy/pipeline/planning/plan_pipeline.hpp"
#include "policy/pipeline/planning/replication.hpp"

namespace plimsoll {

namespace {

/// Device i: F(0..m-1), then B(0..m-1).
Schedule gpipe(std::uint32_t devices, std::uint32_t microbatches, std::uint32_t) {
  Schedule schedule;
  for (std::uint32_t i = 0; i < devices; ++i) {
    schedule.placement.push_back(i);
    auto& order = schedule.orders.emplace_back();
    for (std::uint32_t k = 0; k < microbatches; ++k) order.push_back({Task::Kind::forward, i, k});
    for (std::uint32_t k = 0; k < microbatches; ++k) order.push_back({Task::Kind::backward, i, k});
  }
  return schedule;
}

std::vector<Task> gpipe_of_replica(const Replicas&, std::uint32_t stage,
                                   const std::vector<std::uint32_t>& microbatches) {
  std::vector<Task> order;
  for (const Task::Kind kind : {Task::Kind::forward, Task::Kind::backward})
    for (const std::uint32_t k : microbatches) order.push_back({kind, stage, k});
  return order;
}

Planned plan_gpipe(const Problem& problem, PipelineParameters parameters) {
  require_one_virtual_stage(parameters);
  parameters.keeps_all = true;
  if (!parameters.equal_replicas()) return plan_in_turn(problem, parameters, gpipe_of_replica);
  return plan_pipeline(problem, parameters, gpipe);
}

}  // namespace

PolicyInfo pipeline_gpipe_policy() {
  return make_policy<PipelineParameters>(
      {.name = "pipeline/gpipe",
       .summary = "All forwards, then all backwards, then a flush.",
       .paper =
           "Huang et al. 2019, \"GPipe\", NeurIPS, arXiv:1811.06965 (without its recomputation)",
       .assumes = "one stage a device; a backward that is not split",
       .guarantees =
           "least makespan without a split backward: (m+p-1)(F+B) on equal stages; keeps m "
           "microbatches on every device",
       .complexity = "O(microbatches x operators)"},
      pipeline_record("pipeline/gpipe"), plan_gpipe);
}

}  // namespace plimsoll
