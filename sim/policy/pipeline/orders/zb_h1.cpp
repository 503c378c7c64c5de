#include "policy/interface/registry.hpp"
#include "policy/pipeline/planning/plan_pipeline.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

/// Device i: the order of 1F1B with halves for backwards; after each backward of the input the
/// oldest pending one of the weights, where more than i are pending; the rest at the end.
Schedule zb_h1(std::uint32_t devices, std::uint32_t microbatches, std::uint32_t) {
  Schedule schedule{loop_placement(devices, 1), {}};
  for (std::uint32_t i = 0; i < devices; ++i) {
    auto& order = schedule.orders.emplace_back();
    const std::uint32_t warm_up = std::min(devices - 1 - i, microbatches);
    for (std::uint32_t k = 0; k < warm_up; ++k) order.push_back({Task::Kind::forward, i, k});
    std::uint32_t weights = 0;
    const auto weight = [&] { order.push_back({Task::Kind::backward_weight, i, weights++}); };
    for (std::uint32_t k = 0; k < microbatches; ++k) {
      if (warm_up + k < microbatches) order.push_back({Task::Kind::forward, i, warm_up + k});
      order.push_back({Task::Kind::backward_input, i, k});
      if (k + 1 - weights > i) weight();
    }
    while (weights < microbatches) weight();
  }
  return schedule;
}

Planned plan_zb_h1(const Problem& problem, const PipelineParameters& parameters) {
  require_one_virtual_stage(parameters);
  return plan_pipeline(problem, parameters, zb_h1);
}

}  // namespace

PolicyInfo pipeline_zb_h1_policy() {
  return make_policy<PipelineParameters>(
      {.name = "pipeline/zb-h1",
       .summary = "1F1B with split backwards; device i defers i of its weight halves.",
       .paper = "Qi et al. 2024, \"Zero Bubble Pipeline Parallelism\", ICLR, arXiv:2401.10241",
       .assumes = "one stage a device; a chain whose stages give both halves of their backward, or "
                  "a network",
       .guarantees =
           "idle (p-1)(F+B-W) on equal stages without message latency, W <= min(F, B) and "
           "m >= p; least makespan at F = B = W; device i keeps p-i microbatches whole and i for "
           "their weight halves",
       .complexity = "O(microbatches x operators)",
       .facts = {.splits_backward = true}},
      pipeline_record("pipeline/zb-h1"), plan_zb_h1);
}

}  // namespace plimsoll
