#include "policy/interface/registry.hpp"
#include "policy/pipeline/planning/plan_pipeline.hpp"

namespace plimsoll {

namespace {

/// Every device: chunk after chunk all forwards; then the last chunk first all backwards, from the
/// last microbatch down.
Schedule looped_bfs(std::uint32_t devices, std::uint32_t microbatches,
                    std::uint32_t virtual_stages) {
  Schedule schedule{loop_placement(devices, virtual_stages), {}};
  for (std::uint32_t i = 0; i < devices; ++i) {
    auto& order = schedule.orders.emplace_back();
    for (std::uint32_t chunk = 0; chunk < virtual_stages; ++chunk)
      for (std::uint32_t k = 0; k < microbatches; ++k)
        order.push_back({Task::Kind::forward, chunk * devices + i, k});
    for (std::uint32_t chunk = virtual_stages; chunk-- > 0;)
      for (std::uint32_t k = microbatches; k-- > 0;)
        order.push_back({Task::Kind::backward, chunk * devices + i, k});
  }
  return schedule;
}

Planned plan_looped_bfs(const Problem& problem, PipelineParameters parameters) {
  parameters.keeps_all = true;
  return plan_pipeline(problem, parameters, looped_bfs);
}

}  // namespace

PolicyInfo pipeline_looped_bfs_policy() {
  return make_policy<PipelineParameters>(
      {.name = "pipeline/looped-bfs",
       .summary = "All microbatches through one chunk after the other: GPipe on looped chunks.",
       .paper = "Lamy-Poirier 2023, \"Breadth-First Pipeline Parallelism\", MLSys, "
                "arXiv:2211.05953; backwards from the last microbatch down, as in PyTorch's "
                "schedules.py",
       .assumes =
           "virtual_stages chunks a device, slot j p + i on device i; a backward that is not "
           "split",
       .guarantees = "idle (p-1)(F+B) of one chunk on equal chunks without message latency, for at "
                     "least p microbatches; keeps mv chunks on every device",
       .complexity = "O(microbatches x operators)"},
      pipeline_record("pipeline/looped-bfs"), plan_looped_bfs);
}

}  // namespace plimsoll
