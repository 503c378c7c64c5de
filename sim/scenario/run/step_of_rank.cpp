#include "scenario/run/step_of_rank.hpp"

#include "workload/cost/generator_states.hpp"
#include "workload/cost/gradient_accumulation.hpp"
#include "workload/cost/kernel_workspace.hpp"

#include <memory>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// Whether a mini-batch keeps other bytes than one microbatch: those of a profile are as recorded.
bool scales_with_batch(const Scenario& scenario) {
  return states_batch(scenario) && !std::holds_alternative<ProfileSpec>(scenario.workload);
}

bool is_network(const WorkloadSource& workload) {
  return std::holds_alternative<LayersSpec>(workload) || std::holds_alternative<OnnxSpec>(workload);
}

/// "3 microbatches do not divide a batch of 8".
std::string words_for_division(std::int64_t of_a_rank, const Ranks& ranks, std::int64_t batch) {
  std::string what = fmt::format("{} microbatches", of_a_rank);
  const std::int64_t samples = ranks.samples();
  if (samples > 1 && of_a_rank == 1)
    what = fmt::format("{} ranks of the {}", samples, ranks.axes_of_samples());
  else if (samples > 1)
    what += fmt::format(" on each of {} ranks of the {}", samples, ranks.axes_of_samples());
  return fmt::format("{} do not divide a batch of {}", what, batch);
}

TrainingStep make_step(const Scenario& scenario, const Node& policy, const BoundPolicy& bound,
                       const Ranks& ranks) {
  TrainingStep step;
  const std::int64_t microbatches =
      scenario.workload_options.accumulate.value_or(bound.microbatches);
  step.workload = build_for(scenario, processors_of(scenario.platform, bound), microbatches, ranks,
                            bound.splits_backward, policy.where());
  step.chain = chain_view(step.workload);
  if (ranks.is_mesh()) {
    step.saved_bytes = step.workload.saved_bytes * bound.microbatches;
    return step;
  }
  step.saved_bytes = bound.microbatches == 1 || !scales_with_batch(scenario)
                         ? step.workload.saved_bytes
                         : build(scenario.workload, scenario.workload_options).saved_bytes;
  return step;
}

}  // namespace

bool states_batch(const Scenario& scenario) {
  if (scenario.workload_options.batch) return true;
  if (const auto* chain = std::get_if<ChainSpec>(&scenario.workload))
    return chain->batch.has_value();
  if (const auto* graph = std::get_if<GraphSpec>(&scenario.workload))
    return graph->batch.has_value();
  return true;
}

std::vector<Processor> processors_of(const Platform& platform, const BoundPolicy& bound) {
  std::vector<Processor> named;
  for (const std::string& name : bound.processors)
    if (const auto found = platform.find_processor(name)) named.push_back(platform[*found]);
  return named.empty() ? platform.processors : named;
}

Workload build_for(const Scenario& scenario, std::span<const Processor> processors,
                   std::int64_t of_a_rank, const Ranks& ranks, bool split_backward,
                   const Location& where) {
  WorkloadOptions options = scenario.workload_options;
  options.split_backward = split_backward;
  ranks.tell(options);
  const std::int64_t microbatches = of_a_rank * ranks.samples();
  if (microbatches > 1 && states_batch(scenario)) {
    const std::int64_t batch = options.batch.value_or(default_batch(scenario.workload));
    if (batch % microbatches != 0) refuse(where, words_for_division(of_a_rank, ranks, batch));
    options.microbatch = batch / microbatches;
  }
  Workload workload = ranks.step_of_one(build(scenario.workload, options));
  add_kernel_workspace(workload, processors);
  add_generator_states(workload, processors);
  if (scenario.workload_options.accumulate)
    keep_gradients(workload, is_network(scenario.workload) && !options.master_weights);
  workload.microbatches = microbatches;
  return workload;
}

TrainingStep step_of_rank(const Scenario& scenario, const Node& policy, const BoundPolicy& bound,
                          const Ranks& ranks, ScenarioMemo* memo, const std::string& key) {
  if (memo == nullptr) return make_step(scenario, policy, bound, ranks);
  if (const auto known = memo->training_steps.find(key)) return *known;
  TrainingStep step = make_step(scenario, policy, bound, ranks);
  memo->training_steps.keep(key, std::make_shared<const TrainingStep>(step),
                            step.workload.operators.size());
  return step;
}

std::string step_key_of(const Scenario& scenario, const BoundPolicy& bound) {
  const std::vector<Processor> processors = processors_of(scenario.platform, bound);
  return fmt::format("{} {}{} {} {}", bound.microbatches, bound.splits_backward ? "split " : "",
                     kernel_key(processors), generator_key(processors),
                     key_text(scenario.workload_key) + scenario.parallel_key);
}

}  // namespace plimsoll
