#include "policy/interface/registry.hpp"
#include "policy/pipeline/orders/gis_order.hpp"
#include "policy/pipeline/planning/plan_pipeline.hpp"

namespace plimsoll {

namespace {

constexpr const char* kPaper =
    "Wan et al. 2025, \"PipeOffload: Improving Scalability of Pipeline Parallelism with Memory "
    "Optimization\", ICML, arXiv:2503.01328: ";

PolicyInfo gis_policy(const std::string& name, std::string summary, const std::string& paper,
                      std::string guarantees, const std::string& default_group,
                      std::size_t (*group_for)(std::size_t devices)) {
  Record<GroupParameters> record = pipeline_record<GroupParameters>(name, 2);
  add_group(record, default_group);
  return make_policy<GroupParameters>(
      {.name = name,
       .summary = std::move(summary),
       .paper = kPaper + paper,
       .assumes = "a chain whose stages give both halves of their backward, or a network",
       .guarantees = std::move(guarantees),
       .complexity = "O(tasks log tasks + microbatches x operators)",
       .facts = {.splits_backward = true}},
      record, [group_for](const Problem& problem, const GroupParameters& parameters) {
        const std::size_t devices = pipeline_devices(problem, parameters).size();
        const std::uint32_t group = group_of(parameters, devices, group_for(devices));
        return plan_timed_pipeline(problem, parameters, loop_placement,
                                   [group](const SlotCosts& costs, std::uint32_t microbatches) {
                                     return gis_schedule(costs, microbatches, group);
                                   });
      });
}

}  // namespace

PolicyInfo pipeline_gis_policy() {
  return gis_policy(
      "pipeline/gis", "Interleaved chunks with split backwards whose first backwards come early.",
      "its generalized interleaved schedule, by the slots of its published code",
      "on equal stages without message latency and m a multiple of p: idle (p-1)(F+B) whatever "
      "F, B and W of a chunk, and v p chunks on the first device, p-1 fewer than interleaved 1F1B",
      "one a device", [](std::size_t devices) { return devices; });
}

PolicyInfo pipeline_gis_h_policy() {
  return gis_policy(
      "pipeline/gis-h", "pipeline/gis in groups of half as many microbatches: half the memory.",
      "its generalized interleaved schedule with groups of ceil(p/2), by the slots of its "
      "published code",
      "at F = B = W without message latency and m a multiple of the group g: idle (p-1)(F+B) + "
      "(v-1)(p-g)(F+B-W) of a chunk, g(v-1)+p chunks on the first device",
      "one for every two devices", [](std::size_t devices) { return (devices + 1) / 2; });
}

}  // namespace plimsoll
