#include "scenario/run/added_gradients.hpp"

#include "base/dense_id.hpp"

#include <algorithm>
#include <compare>
#include <map>
#include <vector>

namespace plimsoll {
namespace {

/// A run of a backward or of an update.
struct OperatorRun {
  ProcessorId processor{};
  OperatorId op = kNoOperator;

  auto operator<=>(const OperatorRun&) const = default;
};

std::vector<OperatorRun> runs_of(const Plan& plan, const Workload& workload) {
  std::vector<OperatorRun> runs;
  const auto add = [&](const Step& step, OperatorId op) {
    if (index(op) < workload.forwards) return;
    runs.push_back({plan.lanes[index(step.lane)].processor, op});
  };
  for (const Step& step : plan.steps) {
    if (is_move(step.kind)) continue;
    add(step, step.op);
    if (step.kind == StepKind::pair) add(step, step.second);
  }
  std::ranges::sort(runs);
  return runs;
}

}  // namespace

bool adds_up_gradients(const BoundPolicy& bound, std::size_t processors, bool updates) {
  if (!updates || !bound.updates_after) return bound.microbatches_of_copy > 1;
  return *bound.updates_after == 0 ? processors > 1 : *bound.updates_after > 1;
}

bool adds_up_gradients(const Plan& plan, const Workload& workload) {
  struct MostOften {
    std::ptrdiff_t backward = 0, update = 1;
  };
  std::map<ProcessorId, MostOften> by_processor;
  const std::vector<OperatorRun> runs = runs_of(plan, workload);
  for (auto run = runs.begin(); run != runs.end();) {
    const auto next = std::upper_bound(run, runs.end(), *run);
    MostOften& most = by_processor[run->processor];
    std::ptrdiff_t& often = index(run->op) < workload.optimizer_begin ? most.backward : most.update;
    often = std::max(often, next - run);
    run = next;
  }
  return std::ranges::any_of(
      by_processor, [](const auto& entry) { return entry.second.backward > entry.second.update; });
}

}  // namespace plimsoll
