#include "policy/interface/registry.hpp"
#include "policy/pipeline/planning/plan_pipeline.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

/// Device i: 2(p-i)-1 forwards, or as many as there are; then, until all backwards of the input are
/// done, one of them, the oldest pending one of the weights where more than 2i are pending, one
/// forward; the rest at the end.
Schedule zb_h2(std::uint32_t devices, std::uint32_t microbatches, std::uint32_t) {
  Schedule schedule{loop_placement(devices, 1), {}};
  for (std::uint32_t i = 0; i < devices; ++i) {
    auto& order = schedule.orders.emplace_back();
    std::uint32_t forwards = 0, weights = 0;
    const auto forward = [&] { order.push_back({Task::Kind::forward, i, forwards++}); };
    const auto weight = [&] { order.push_back({Task::Kind::backward_weight, i, weights++}); };
    while (forwards < std::min(2 * (devices - i) - 1, microbatches)) forward();
    for (std::uint32_t k = 0; k < microbatches; ++k) {
      order.push_back({Task::Kind::backward_input, i, k});
      if (k + 1 - weights > 2 * i) weight();
      if (forwards < microbatches) forward();
    }
    while (weights < microbatches) weight();
  }
  return schedule;
}

Planned plan_zb_h2(const Problem& problem, const PipelineParameters& parameters) {
  require_one_virtual_stage(parameters);
  return plan_pipeline(problem, parameters, zb_h2);
}

}  // namespace

PolicyInfo pipeline_zb_h2_policy() {
  return make_policy<PipelineParameters>(
      {.name = "pipeline/zb-h2",
       .summary = "Split backwards and a warm-up twice as deep as 1F1B's fill the bubble.",
       .paper = "Qi et al. 2024, \"Zero Bubble Pipeline Parallelism\", ICLR, arXiv:2401.10241",
       .assumes =
           "one stage a device; a chain whose stages give both halves of their backward, or "
           "a network; made for m >= 2p-1: of fewer microbatches warm-ups end with the last, "
           "and pipeline/zb-h1 may be faster",
       .guarantees =
           "for m >= 2p-1 and W <= min(F, B), on equal stages without message latency: the largest "
           "span has idle (p-1)(F+B-2W), the makespan (p-1) max(F, F+B-2W), the least where B <= "
           "2W; device i keeps 2(p-i)-1 microbatches whole and 2i for their weight halves",
       .complexity = "O(microbatches x operators)",
       .facts = {.splits_backward = true}},
      pipeline_record("pipeline/zb-h2"), plan_zb_h2);
}

}  // namespace plimsoll
