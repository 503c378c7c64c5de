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

/// Of gradients of parameters, by tensor: those that stay, and those that leave.
std::vector<bool> are_of_parameters(const Workload& workload) {
  std::vector<bool> found(workload.tensors.size());
  for (std::size_t t = 0; t < found.size(); ++t)
    found[t] = workload.tensors[t].lifetime == Lifetime::accumulated;
  for (const Operator& op : workload.operators)
    if (takes_gradients(op))
      for (const TensorId id : workload.list(op.reads)) found[index(id)] = true;
  return found;
}

/// By operator: updates, and backwards that make gradients of parameters.
std::vector<bool> are_counted(const Workload& workload) {
  const std::vector<bool> of_parameters = are_of_parameters(workload);
  std::vector<bool> counted(workload.operators.size());
  for (std::uint32_t op = workload.forwards; op < counted.size(); ++op) {
    const Operator& it = workload.operators[op];
    const bool updates = op >= workload.optimizer_begin;
    counted[op] =
        it.collective.kind == CollectiveKind::none &&
        std::ranges::any_of(workload.list(updates ? it.reads : it.kept),
                            [&](TensorId id) { return updates || of_parameters[index(id)]; });
  }
  return counted;
}

std::vector<OperatorRun> runs_of(const Plan& plan, const Workload& workload) {
  const std::vector<bool> counted = are_counted(workload);
  std::vector<OperatorRun> runs;
  const auto add = [&](const Step& step, OperatorId op) {
    if (counted[index(op)]) runs.push_back({plan.lanes[index(step.lane)].processor, op});
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
  const auto stages = static_cast<std::int64_t>(processors) / bound.replicas;
  return *bound.updates_after == 0 ? stages > 1 : *bound.updates_after > 1;
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
