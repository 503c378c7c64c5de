#include "policy/interface/registry.hpp"
#include "policy/pipeline/planning/plan_pipeline.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// Microbatches go through the chunks of a device in rounds of equal size: at least p, all of them
/// where there are fewer than 2p.
std::uint32_t rounds_of(std::uint32_t devices, std::uint32_t microbatches) {
  return std::max(1u, microbatches / devices);
}

/// Device i, rounds of r microbatches: the n-th forward is of microbatch (n // rv) r + n % r and
/// chunk (n % rv) // r, the n-th backward the same with the chunks in reverse. First
/// min(2(p-1-i) + (v-1)r, mv) forwards, then one forward and one backward at a time.
Schedule interleaved_1f1b(std::uint32_t devices, std::uint32_t microbatches,
                          std::uint32_t virtual_stages) {
  Schedule schedule{loop_placement(devices, virtual_stages), {}};
  const std::uint32_t round = microbatches / rounds_of(devices, microbatches);
  const std::uint32_t all = microbatches * virtual_stages, both = round * virtual_stages;
  const auto task = [&](Task::Kind kind, std::uint32_t device, std::uint32_t n) {
    const std::uint32_t along = n % both / round;
    const std::uint32_t chunk = kind == Task::Kind::forward ? along : virtual_stages - 1 - along;
    return Task{kind, chunk * devices + device, n / both * round + n % round};
  };
  for (std::uint32_t i = 0; i < devices; ++i) {
    auto& order = schedule.orders.emplace_back();
    const std::uint32_t warm_up =
        std::min(2 * (devices - 1 - i) + (virtual_stages - 1) * round, all);
    for (std::uint32_t n = 0; n < warm_up; ++n) order.push_back(task(Task::Kind::forward, i, n));
    for (std::uint32_t n = 0; n < all; ++n) {
      if (warm_up + n < all) order.push_back(task(Task::Kind::forward, i, warm_up + n));
      order.push_back(task(Task::Kind::backward, i, n));
    }
  }
  return schedule;
}

Planned plan_interleaved_1f1b(const Problem& problem, const PipelineParameters& parameters) {
  const auto devices = static_cast<std::uint32_t>(pipeline_devices(problem, parameters).size());
  const auto m = static_cast<std::uint32_t>(parameters.microbatches);
  const std::uint32_t rounds = rounds_of(devices, m);
  if (m % rounds != 0)
    refuse(
        parameters.where,
        fmt::format("{} microbatches on {} devices make {} rounds, which do not divide them; use "
                    "a multiple of {}",
                    m, devices, rounds, devices));
  return plan_pipeline(problem, parameters, interleaved_1f1b);
}

}  // namespace

PolicyInfo pipeline_interleaved_1f1b_policy() {
  return make_policy<PipelineParameters>(
      {.name = "pipeline/interleaved-1f1b",
       .summary =
           "1F1B over several chunks a device, for a bubble that is smaller by their number.",
       .paper = "Narayanan et al. 2021, \"Efficient Large-Scale Language Model Training on GPU "
                "Clusters Using Megatron-LM\", SC, arXiv:2104.04473; rounds as in PyTorch's "
                "schedules.py",
       .assumes =
           "virtual_stages chunks a device, slot j p + i on device i; microbatches a multiple "
           "of max(1, microbatches // p); a backward that is not split",
       .guarantees =
           "idle (p-1)(F+B) of one chunk on equal chunks without message latency, where p divides "
           "m; device i then keeps min(mv, 2(p-1-i) + (v-1)p + 1) chunks",
       .complexity = "O(microbatches x operators)"},
      pipeline_record("pipeline/interleaved-1f1b"), plan_interleaved_1f1b);
}

}  // namespace plimsoll
