#include "policy/pipeline/orders/one_f_one_b.hpp"

#include "policy/interface/registry.hpp"
#include "policy/pipeline/planning/plan_pipeline.hpp"
#include "policy/pipeline/planning/replication.hpp"

#include <algorithm>

namespace plimsoll {

std::uint32_t warm_up_of_1f1b(std::uint32_t devices, std::uint32_t device,
                              std::uint32_t microbatches) {
  return std::min(devices - 1 - device, microbatches);
}

Schedule one_f_one_b(std::uint32_t devices, std::uint32_t microbatches, std::uint32_t) {
  Schedule schedule;
  for (std::uint32_t i = 0; i < devices; ++i) {
    schedule.placement.push_back(i);
    auto& order = schedule.orders.emplace_back();
    const std::uint32_t warm_up = warm_up_of_1f1b(devices, i, microbatches);
    for (std::uint32_t k = 0; k < warm_up; ++k) order.push_back({Task::Kind::forward, i, k});
    for (std::uint32_t k = 0; k < microbatches; ++k) {
      if (warm_up + k < microbatches) order.push_back({Task::Kind::forward, i, warm_up + k});
      order.push_back({Task::Kind::backward, i, k});
    }
  }
  return schedule;
}

namespace {

/// A replica has as many microbatches in flight as it takes for each of the devices from its stage
/// on to have one, as PipeDream counts them for the first stage.
std::vector<Task> one_f_one_b_of_replica(const Replicas& replicas, std::uint32_t stage,
                                         const std::vector<std::uint32_t>& microbatches) {
  const std::size_t devices = replicas.devices().size() - replicas.device(stage, 0);
  const std::size_t in_flight = (devices + replicas.count(stage) - 1) / replicas.count(stage);
  const std::size_t warm_up = std::min(in_flight - 1, microbatches.size());
  std::vector<Task> order;
  for (std::size_t k = 0; k < microbatches.size() + warm_up; ++k) {
    if (k < microbatches.size()) order.push_back({Task::Kind::forward, stage, microbatches[k]});
    if (k >= warm_up) order.push_back({Task::Kind::backward, stage, microbatches[k - warm_up]});
  }
  return order;
}

Planned plan_1f1b(const Problem& problem, const PipelineParameters& parameters) {
  require_one_virtual_stage(parameters);
  if (!parameters.equal_replicas())
    return plan_in_turn(problem, parameters, one_f_one_b_of_replica);
  return plan_pipeline(problem, parameters, one_f_one_b);
}

}  // namespace

PolicyInfo pipeline_1f1b_policy() {
  return make_policy<PipelineParameters>(
      {.name = "pipeline/1f1b",
       .summary = "After a warm-up every device alternates one forward and one backward.",
       .paper = "Narayanan et al. 2021, \"Memory-Efficient Pipeline-Parallel DNN Training\" "
                "(PipeDream-Flush), ICML, arXiv:2006.09503; Fan et al. 2021, \"DAPPLE\", PPoPP; "
                "stages with different numbers of replicas as in Narayanan et al. 2019, "
                "\"PipeDream\", SOSP (1F1B-RR), as reconstructed: in turn, and a replica keeps as "
                "many microbatches as it takes for every device from its stage on to have one",
       .assumes = "one stage a device; a backward that is not split",
       .guarantees =
           "the makespan of GPipe on equal stages without message latency; device i keeps at most "
           "min(m, p-i) microbatches",
       .complexity = "O(microbatches x operators)"},
      pipeline_record("pipeline/1f1b"), plan_1f1b);
}

}  // namespace plimsoll
