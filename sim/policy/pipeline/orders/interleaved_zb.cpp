#include "policy/interface/registry.hpp"
#include "policy/pipeline/planning/plan_pipeline.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// Microbatches go in rounds of r, each through all chunks of a device.
struct Rounds {
  std::uint32_t devices, microbatches, chunks, size;

  [[nodiscard]] std::uint32_t total() const { return microbatches * chunks; }
  /// The n-th forward or backward of device i.
  [[nodiscard]] Task task(Task::Kind kind, std::uint32_t i, std::uint32_t n) const {
    std::uint32_t chunk = n % (size * chunks) / size;
    if (kind != Task::Kind::forward) chunk = chunks - 1 - chunk;
    return {kind, chunk * devices + i, n / (size * chunks) * size + n % size};
  }
};

/// Device i: (v-1)r + p-1-i forwards, then forward and backward of the input in turn; after the
/// n-th of these the oldest pending backward of the weights, where n >= i; the rest at the end.
std::vector<Task> order_of(std::uint32_t i, const Rounds& rounds) {
  std::vector<Task> order;
  std::vector<Task> inputs;
  std::size_t weights = 0;
  const auto weight = [&] {
    order.push_back(inputs[weights++]);
    order.back().kind = Task::Kind::backward_weight;
  };
  const std::uint32_t warm_up =
      std::min((rounds.chunks - 1) * rounds.size + rounds.devices - 1 - i, rounds.total());
  for (std::uint32_t n = 0; n < warm_up; ++n)
    order.push_back(rounds.task(Task::Kind::forward, i, n));
  for (std::uint32_t n = 0; n < rounds.total(); ++n) {
    if (warm_up + n < rounds.total())
      order.push_back(rounds.task(Task::Kind::forward, i, warm_up + n));
    inputs.push_back(rounds.task(Task::Kind::backward_input, i, n));
    order.push_back(inputs.back());
    if (n >= i) weight();
  }
  while (weights < inputs.size()) weight();
  return order;
}

Planned plan_interleaved_zb(const Problem& problem, const PipelineParameters& parameters) {
  const auto rule = [&](std::uint32_t devices, std::uint32_t microbatches, std::uint32_t chunks) {
    const std::uint32_t count = std::max(1U, microbatches / devices);
    if (microbatches % count != 0)
      refuse(parameters.where,
             fmt::format("{} microbatches do not make {} equal rounds of {} or more", microbatches,
                         count, devices),
             fmt::format("try {}", microbatches / count * count));
    const Rounds rounds{devices, microbatches, chunks, microbatches / count};
    Schedule schedule{loop_placement(devices, chunks), {}};
    for (std::uint32_t i = 0; i < devices; ++i) schedule.orders.push_back(order_of(i, rounds));
    return schedule;
  };
  return plan_pipeline(problem, parameters, rule);
}

}  // namespace

PolicyInfo pipeline_interleaved_zb_policy() {
  return make_policy<PipelineParameters>(
      {.name = "pipeline/interleaved-zb",
       .summary = "Interleaved 1F1B with split backwards and a shorter warm-up.",
       .paper = "PyTorch, torch.distributed.pipelining, ScheduleInterleavedZeroBubble; after Qi et "
                "al. 2024, \"Zero Bubble Pipeline Parallelism\", ICLR, arXiv:2401.10241",
       .assumes = "a chain whose stages give both halves of their backward, or a network; "
                  "microbatches a multiple "
                  "of max(1, microbatches / devices, rounded down)",
       .guarantees =
           "idle (p-1)(F+B-W) in chunk times on equal stages without message latency, W <= min(F, "
           "B), microbatches a multiple of the devices; every device keeps p microbatches",
       .complexity = "O(microbatches x operators)",
       .facts = {.splits_backward = true}},
      pipeline_record("pipeline/interleaved-zb", 2), plan_interleaved_zb);
}

}  // namespace plimsoll
