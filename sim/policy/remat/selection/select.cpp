#include "policy/remat/selection/select.hpp"

#include "policy/claims/peak_bound.hpp"
#include "policy/remat/segments/segments.hpp"

#include <algorithm>

namespace plimsoll {
namespace {

/// A bare forward needs no more than one that keeps, which runs later with more beside it; the
/// larger of the two all the same, so that nothing rests on it.
Bytes forward_workspace(const StageCosts& stage) {
  const Bytes bare = stage.output + stage.bare_workspace;
  return std::max(stage.keep_workspace, bare > stage.saved ? bare - stage.saved : Bytes{});
}

/// Throws QuantityOverflow where sums could leave the range that selections compute in.
void check_range(const ChainCosts& costs) {
  Bytes sum = costs.input + costs.input_gradient;
  for (const StageCosts& stage : costs.stages)
    sum += stage.saved + stage.output + stage.gradient + forward_workspace(stage) +
           stage.backward_workspace + stage.lasting;
  static_cast<void>(sum * 4);
}

}  // namespace

Record<SelectParameters> select_record(const std::string& name) {
  auto record = single_processor_record<SelectParameters>(name);
  record.optional(
      "objective", &SelectParameters::objective,
      located(one_of<SelectObjective>({{"engine", SelectObjective::engine},
                                       {"replay", SelectObjective::replay},
                                       {"traced", SelectObjective::traced},
                                       {"static", SelectObjective::fixed}})),
      "what to minimise: `engine`, the peak that is measured; `replay`, that of the paper's model "
      "event by event; `traced`, the paper's revised objective; `static`, its first; the last "
      "three see d_0 = the input and d_i = `saved` of stage i; default engine");
  return record;
}

SelectionChain engine_chain(const ChainCosts& costs) {
  check_range(costs);
  const std::size_t n = costs.stages.size() + 1;
  SelectionChain chain;
  chain.own.assign(n, 0);  // a_0 is resident
  chain.end = chain.need = chain.before = chain.forward_need = chain.waiting = chain.own;
  bool forwards_count = false;
  Bytes passing_before;
  for (std::size_t k = 1; k < n; ++k) {
    const StageCosts& stage = costs.stages[k - 1];
    const Bytes beyond = passing_before + stage.passing + forward_workspace(stage);
    chain.own[k] = stage.output.count();
    chain.before[k] = chain.before[k - 1] + (stage.saved - stage.passing).count();
    chain.forward_need[k] = chain.before[k] + beyond.count();
    forwards_count |= beyond > Bytes{} || costs.backward_peak(k - 1) < stage.saved + stage.gradient;
    passing_before = stage.passing;
  }
  Bytes lasting;
  for (std::size_t k = n - 1; k > 0; --k) {
    const StageCosts& stage = costs.stages[k - 1];
    if (k < n - 1) chain.waiting[k] = (stage.gradient + lasting).count();
    chain.need[k] = chain.before[k - 1] + (costs.backward_peak(k - 1) + lasting).count();
    lasting += stage.lasting;
  }
  if (!forwards_count) {
    // Then the backward of a boundary stage needs all that its forward does, and what waits for it.
    chain.forward_need.clear();
    chain.waiting.clear();
  }
  return chain;
}

std::vector<std::int64_t> activation_sizes(const ChainCosts& costs) {
  check_range(costs);
  std::vector<std::int64_t> sizes{costs.input.count()};
  for (const StageCosts& stage : costs.stages) sizes.push_back(stage.saved.count());
  return sizes;
}

Plan plan_of_selection(const Problem& problem, ProcessorId processor, const Selection& selection,
                       const SelectParameters& parameters) {
  const auto stages = static_cast<std::uint32_t>(problem.chain.stages.size());
  const MemoryId memory = problem.platform[processor].memory;
  Plan plan =
      plan_of(problem, processor, segment_sequence(selection.checkpoints, stages), parameters.name);
  plan.bounds.peak = {{memory, largest_operator(problem.workload)}};
  if (parameters.objective.value != SelectObjective::engine)
    plan.claims.model_peak = {{memory, Bytes{selection.value}}};
  return plan;
}

SelectionChain selection_chain(SelectObjective objective, const ChainCosts& costs) {
  if (objective == SelectObjective::engine) return engine_chain(costs);
  const std::vector<std::int64_t> sizes = activation_sizes(costs);
  return objective == SelectObjective::replay ? replay_chain(sizes) : traced_chain(sizes);
}

}  // namespace plimsoll
