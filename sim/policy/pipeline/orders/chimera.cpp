#include "policy/interface/registry.hpp"
#include "policy/pipeline/planning/plan_pipeline.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// A task and its place in a grid of equal forwards and backwards.
struct Placed {
  std::uint64_t place = 0;
  Task task;
};

/// Microbatches of one direction: half of every unit of p, the larger half of the last one.
std::uint32_t count_down(std::uint32_t devices, std::uint32_t microbatches) {
  return microbatches / devices * (devices / 2) + (microbatches % devices + 1) / 2;
}

/// In a unit of p microbatches, p/2 a direction, the j-th of a direction has its forward of stage s
/// at place 2j + s and its backward at 2j + 2p-1-s; the next unit begins 2p places later. Every
/// device runs its tasks by place; no two have the same.
Schedule chimera(std::uint32_t devices, std::uint32_t microbatches, std::uint32_t) {
  const std::uint32_t down = count_down(devices, microbatches), half = devices / 2;
  Schedule schedule = two_directions(devices, down);
  for (std::uint32_t i = 0; i < devices; ++i) {
    std::vector<Placed> tasks;
    for (std::uint32_t k = 0; k < microbatches; ++k) {
      const std::uint32_t n = k < down ? k : k - down;  // of its direction
      const std::uint32_t stage = k < down ? i : devices - 1 - i;
      const std::uint64_t begin = std::uint64_t{2} * devices * (n / half) + 2 * (n % half);
      tasks.push_back({begin + stage, {Task::Kind::forward, stage, k}});
      tasks.push_back({begin + 2 * devices - 1 - stage, {Task::Kind::backward, stage, k}});
    }
    std::ranges::sort(tasks, {}, &Placed::place);
    auto& order = schedule.orders.emplace_back();
    for (const Placed& placed : tasks) order.push_back(placed.task);
  }
  return schedule;
}

Planned plan_chimera(const Problem& problem, const PipelineParameters& parameters) {
  require_one_virtual_stage(parameters);
  const std::size_t devices = pipeline_devices(problem, parameters).size();
  if (devices % 2 != 0)
    refuse(parameters.where,
           fmt::format("`{}` takes an even number of devices; found {}", parameters.name, devices));
  return plan_pipeline(problem, parameters, chimera);
}

}  // namespace

PolicyInfo pipeline_chimera_policy() {
  return make_policy<PipelineParameters>(
      {.name = "pipeline/chimera",
       .summary =
           "Two pipelines in opposite directions fill each other's bubbles; two copies of the "
           "parameters.",
       .paper = "Li and Hoefler 2021, \"Chimera\", SC, arXiv:2107.06925 (one pair of directions; "
                "units of p microbatches are concatenated, forwards are not doubled)",
       .assumes = "one stage a device and direction; p even; a backward that is not split; the two "
                  "copies sum up their gradients at the end, one slot after the other",
       .guarantees = "on equal stages without message latency: idle p-2 forwards where B = F and p "
                     "divides m; idle 2(p-2) forwards where B = 2F and m = p; more for other m",
       .complexity = "O(microbatches x operators)",
       .facts = {.copies_of_parameters = 2}},
      pipeline_record("pipeline/chimera"), plan_chimera);
}

}  // namespace plimsoll
