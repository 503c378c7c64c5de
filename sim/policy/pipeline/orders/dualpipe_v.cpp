#include "policy/interface/registry.hpp"
#include "policy/pipeline/orders/dual_order.hpp"
#include "policy/pipeline/planning/plan_pipeline.hpp"

#include <fmt/format.h>

namespace plimsoll {

namespace {

Schedule dualpipe_v(std::uint32_t devices, std::uint32_t microbatches, std::uint32_t) {
  Schedule schedule{v_placement(devices), {}};
  for (std::uint32_t i = 0; i < devices; ++i)
    schedule.orders.push_back(
        dual_order(i, devices, microbatches, {i, 0}, {2 * devices - 1 - i, 0}));
  return schedule;
}

Planned plan_dualpipe_v(const Problem& problem, const PipelineParameters& parameters) {
  require_two_virtual_stages(parameters);
  const auto devices = static_cast<std::int64_t>(pipeline_devices(problem, parameters).size());
  if (parameters.microbatches < 2 * devices)
    refuse(parameters.where,
           fmt::format("`{}` on {} devices takes at least {} microbatches; found {}",
                       parameters.name, devices, 2 * devices, parameters.microbatches));
  return plan_pipeline(problem, parameters, dualpipe_v, wave_placement);
}

}  // namespace

PolicyInfo pipeline_dualpipe_v_policy() {
  return make_policy<PipelineParameters>(
      {.name = "pipeline/dualpipe-v",
       .summary = "DualPipe folded into a V: both ends of the network on device 0, one copy of the "
                  "parameters.",
       .paper = "DeepSeek-AI 2025, DualPipe, github.com/deepseek-ai/DualPipe (the \"cut-in-half\" "
                "schedule); PyTorch's ScheduleDualPipeV",
       .assumes = "two chunks a device, microbatches >= 2p; a chain whose stages give both halves "
                  "of their backward, or a network; an overlapped pair lasts `overlap` of the sum "
                  "of its parts, at least the longer of them",
       .guarantees =
           "greatest idle (p-1)(F&B + BW - 3W) of a chunk on equal chunks with F = B and no "
           "message latency; keeps 2p+1 chunks on every device",
       .complexity = "O(microbatches x operators)",
       .facts = {.splits_backward = true}},
      with_overlap(pipeline_record("pipeline/dualpipe-v", 2)), plan_dualpipe_v);
}

}  // namespace plimsoll
