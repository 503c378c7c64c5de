#include "policy/interface/registry.hpp"
#include "policy/pipeline/orders/dual_order.hpp"
#include "policy/pipeline/planning/plan_pipeline.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// Half of the microbatches enters at each end. A device is rank min(i, p-1-i) of p/2; chunk 0 is
/// of the direction that enters at its half.
Schedule dualpipe(std::uint32_t devices, std::uint32_t microbatches, std::uint32_t) {
  const std::uint32_t half = microbatches / 2;
  Schedule schedule = two_directions(devices, half);
  for (std::uint32_t i = 0; i < devices; ++i) {
    const std::uint32_t rank = std::min(i, devices - 1 - i);
    const std::uint32_t near = i == rank ? 0 : half;
    schedule.orders.push_back(
        dual_order(rank, devices / 2, half, {rank, near}, {devices - 1 - rank, half - near}));
  }
  return schedule;
}

Planned plan_dualpipe(const Problem& problem, const PipelineParameters& parameters) {
  require_one_virtual_stage(parameters);
  const auto devices = static_cast<std::int64_t>(pipeline_devices(problem, parameters).size());
  if (devices % 2 != 0)
    refuse(parameters.where,
           fmt::format("`{}` takes an even number of devices; found {}", parameters.name, devices));
  if (parameters.microbatches % 2 != 0 || parameters.microbatches < 2 * devices)
    refuse(
        parameters.where,
        fmt::format("`{}` on {} devices takes an even number of at least {} microbatches; found {}",
                    parameters.name, devices, 2 * devices, parameters.microbatches));
  return plan_pipeline(problem, parameters, dualpipe);
}

}  // namespace

PolicyInfo pipeline_dualpipe_policy() {
  return make_policy<PipelineParameters>(
      {.name = "pipeline/dualpipe",
       .summary = "Two pipelines in opposite directions whose forwards and backwards overlap; two "
                  "copies of the parameters.",
       .paper = "DeepSeek-AI 2024, \"DeepSeek-V3 Technical Report\", arXiv:2412.19437; "
                "github.com/deepseek-ai/DualPipe",
       .assumes = "one stage a device and direction; p even, microbatches even and >= 2p; a chain "
                  "whose stages give both halves of their backward, or a network; an overlapped "
                  "pair lasts `overlap` of the sum of its parts, at least the longer of them; the "
                  "two copies sum up their gradients at the end, one slot after the other",
       .guarantees =
           "greatest idle (p/2-1)(F&B + BW - 3W) on equal stages with F = B and no message "
           "latency; keeps p+1 stages of microbatches on every device",
       .complexity = "O(microbatches x operators)",
       .facts = {.splits_backward = true, .copies_of_parameters = 2}},
      with_overlap(pipeline_record("pipeline/dualpipe")), plan_dualpipe);
}

}  // namespace plimsoll
