#include "policy/interface/registry.hpp"
#include "policy/pipeline/orders/v_block.hpp"
#include "policy/pipeline/planning/plan_pipeline.hpp"

#include <fmt/format.h>

namespace plimsoll {

namespace {

Planned plan_block(const Problem& problem, const PipelineParameters& parameters, BlockRule block) {
  require_two_virtual_stages(parameters);
  const auto rule = [&](std::uint32_t devices, std::uint32_t microbatches, std::uint32_t) {
    const std::uint64_t p = devices;
    if (p * p * (microbatches + p) > kMostBlockWork)
      refuse(parameters.where,
             fmt::format("{} microbatches on {} devices are too many for `{}`: devices^2 "
                         "x (microbatches + devices) is at most {}",
                         microbatches, devices, parameters.name, kMostBlockWork));
    return block_schedule(devices, microbatches, block);
  };
  return plan_pipeline(problem, parameters, rule, wave_placement);
}

PolicyInfo block_policy(const std::string& name, std::string summary, std::string guarantees,
                        BlockRule block) {
  return make_policy<PipelineParameters>(
      {.name = name,
       .summary = std::move(summary),
       .paper = "Qi et al. 2024, \"Pipeline Parallelism with Controllable Memory\", NeurIPS, "
                "arXiv:2405.15362, with the reordering of its published code",
       .assumes = "a chain whose stages give both halves of their backward, or a network; an order "
                  "for nearly "
                  "equal F, B and W, executed with the real times",
       .guarantees = std::move(guarantees),
       .complexity = "O(devices^3 x (microbatches + devices) + microbatches x operators)",
       .facts = {.splits_backward = true}},
      pipeline_record(name, 2), [block](const Problem& problem, const PipelineParameters& it) {
        return plan_block(problem, it, block);
      });
}

}  // namespace

PolicyInfo pipeline_v_min_policy() {
  return block_policy(
      "pipeline/v-min", "Two chunks a device on a V in about a third of 1F1B's memory.",
      "at F = B = W without message latency, p >= 2 and m >= 2p: idle 4p-5 chunk times "
      "(4p-7 where 3 divides p), floor((p+4)/3) microbatches on every device; at "
      "unequal times the bubble grows with the microbatches",
      v_min_block);
}

PolicyInfo pipeline_v_half_policy() {
  return block_policy("pipeline/v-half",
                      "Two chunks a device on a V in about half of 1F1B's memory.",
                      "at F = B = W without message latency and m >= 2p: idle 3p-7 chunk times for "
                      "even p >= 4, 3p-4 for odd p >= 3, floor((p+2)/2) microbatches on every "
                      "device; no bubble in between where W+2B >= 2F and W+2F >= 2B",
                      v_half_block);
}

}  // namespace plimsoll
