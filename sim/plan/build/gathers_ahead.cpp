#include "plan/build/gathers_ahead.hpp"

#include "base/dense_id.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

namespace plimsoll {
namespace {

bool gathers_parameters(const Step& step, const Workload& workload) {
  return step.kind == StepKind::compute && brings_parameters(workload[step.op]);
}

/// Gathers of one stream that may be issued in each other's places.
using Row = std::tuple<LaneId, std::uint32_t, bool>;

Row row_of(const Step& step, const Workload& workload, MovedGathers moved) {
  if (moved == MovedGathers::all) return {step.lane, 0, false};
  const bool is_of_forward = step.instance == 0 && workload[step.op].phase == Phase::forward;
  return {step.lane, step.microbatch, is_of_forward};
}

/// By step, the place at which it is issued: its own, but of gathers.
std::vector<std::uint32_t> places_of(const Plan& plan, const Workload& workload, std::int64_t ahead,
                                     MovedGathers moved) {
  const bool repeated = moved == MovedGathers::repeated;
  std::vector<std::uint32_t> places(plan.steps.size());
  std::iota(places.begin(), places.end(), 0U);
  std::map<Row, std::vector<std::uint32_t>> gathers;
  std::vector<std::uint32_t> made(plan.buffers.size(), 0);  // by buffer: after which place
  const auto note_made = [&](const Step& step, std::uint32_t place) {
    for (const BufferId id : plan.list(step.writes)) made[index(id)] = place;
  };
  for (std::uint32_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    note_made(step, s);
    if (!gathers_parameters(step, workload) || (repeated && step.instance == 0)) continue;
    auto& before = gathers[row_of(step, workload, moved)];
    const auto count = static_cast<std::int64_t>(before.size());
    if (count > 0)
      places[s] = before[static_cast<std::size_t>(std::max<std::int64_t>(count - ahead, 0))];
    for (const Dependency& dependency : plan.after(step))
      places[s] = std::max(places[s], index(dependency.on));
    for (const BufferId id : plan.list(step.reads))
      places[s] = std::max(places[s], made[index(id)]);
    note_made(step, places[s]);
    before.push_back(s);
  }
  return places;
}

}  // namespace

Plan with_gathers_ahead(Plan plan, const Workload& workload, std::int64_t ahead,
                        MovedGathers gathers) {
  if (ahead < 1 || std::ranges::any_of(plan.arenas, &PlanArena::has_offsets)) return plan;
  const std::vector<std::uint32_t> places = places_of(plan, workload, ahead, gathers);
  std::vector<std::uint32_t> order(plan.steps.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t s) { return places[s]; });
  std::vector<StepId> moved(plan.steps.size());
  std::vector<Step> steps;
  steps.reserve(plan.steps.size());
  for (const std::uint32_t s : order) {
    moved[s] = StepId{static_cast<std::uint32_t>(steps.size())};
    steps.push_back(plan.steps[s]);
  }
  plan.steps = std::move(steps);
  for (Dependency& dependency : plan.dependencies) dependency.on = moved[index(dependency.on)];
  for (StepId& step : plan.release_steps) step = moved[index(step)];
  return plan;
}

}  // namespace plimsoll
