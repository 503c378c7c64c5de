#include "scenario/run/step_of_rank.hpp"

#include "base/divisors.hpp"
#include "scenario/run/added_gradients.hpp"
#include "workload/cost/generator_states.hpp"
#include "workload/cost/gradient_accumulation.hpp"
#include "workload/cost/kernel_workspace.hpp"

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

MadeGradients made_gradients(const Scenario& scenario) {
  if (!is_network(scenario.workload)) return MadeGradients::given;
  if (!scenario.workload_options.master_weights) return MadeGradients::apart;
  return scenario.workload_options.fuses_accumulation ? MadeGradients::fused
                                                      : MadeGradients::as_values;
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

void check_accumulation(const Scenario& scenario, const Node& policy, const BoundPolicy& bound) {
  if (!scenario.workload_options.accumulate || !bound.is_pipeline) return;
  refuse(policy.where(),
         "`accumulate` is for policies of one processor; a pipeline accumulates over its "
         "`microbatches`");
}

/// What would divide the batch, and what it would divide.
std::string expected_for_division(std::int64_t of_a_rank, const Ranks& ranks, std::int64_t batch) {
  const std::int64_t samples = ranks.samples();
  const std::string other = "a batch of " + nearest_multiples(of_a_rank * samples, batch);
  if (of_a_rank == 1 || batch % samples != 0) return "expected " + other;
  return fmt::format("{} microbatch{}{}, or {}", expected_divisor(batch / samples, of_a_rank),
                     batch == samples ? "" : "es", samples > 1 ? " on each rank" : "", other);
}

/// All that a network is built from, beside the workload.
std::string network_key(const Scenario& scenario, const WorkloadOptions& options) {
  const auto ranks = [](const auto& axis) { return axis ? axis->value : 1; };
  std::string key =
      fmt::format("{} {} {} {} {} {}", options.microbatch.value_or(0), options.split_backward,
                  options.momentum_is_apart, ranks(options.context), ranks(options.expert),
                  options.tensor ? options.tensor->ranks : 1);
  if (options.tensor)
    key += fmt::format(" {} {}", options.tensor->sequence.has_value(), options.tensor->overlaps);
  return key + key_text(scenario.workload_key);
}

/// Of a scenario read with the memo, if there is one: what a pipeline, the data axis and sharding make of
/// it differs from point to point of a sweep, and it stays the same.
Workload network_of(const Scenario& scenario, const WorkloadOptions& options, ScenarioMemo* memo) {
  if (memo == nullptr) return build(scenario.workload, options);
  const std::string key = network_key(scenario, options);
  if (const auto known = memo->networks.find(key)) return *known;
  auto network = std::make_shared<const Workload>(build(scenario.workload, options));
  memo->networks.keep(key, network, network->operators.size());
  return *network;
}

/// What divides a batch: the mesh, or the policy's `microbatches`.
Location place_of_division(const Scenario& scenario, const Node& policy, const Ranks& ranks) {
  if (ranks.samples() > 1) return scenario.parallel->where;
  const Node* microbatches = policy.is_mapping() ? policy.find("microbatches") : nullptr;
  return microbatches != nullptr ? microbatches->where() : policy.where();
}

bool adds_up(const Scenario& scenario, const BoundPolicy& bound, std::size_t processors) {
  const Optimizer optimizer = optimizer_of(scenario.workload, scenario.workload_options);
  return adds_up_gradients(bound, processors, optimizer != Optimizer::none);
}

TrainingStep make_step(const Scenario& scenario, const Node& policy, const BoundPolicy& bound,
                       const Ranks& ranks, ScenarioMemo* memo) {
  check_accumulation(scenario, policy, bound);
  TrainingStep step;
  const std::vector<Processor> processors = processors_of(scenario.platform, bound);
  const RankBatch batch{scenario.workload_options.accumulate.value_or(bound.microbatches),
                        bound.splits_backward, adds_up(scenario, bound, processors.size()),
                        place_of_division(scenario, policy, ranks)};
  step.workload = build_for(scenario, processors, batch, ranks, memo);
  step.chain = bound.is_pipeline ? pipeline_view(step.workload) : chain_view(step.workload);
  step.saved_bytes = saved_bytes_of(scenario, step.workload, bound.microbatches, ranks);
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

Bytes saved_bytes_of(const Scenario& scenario, const Workload& microbatch,
                     std::int64_t microbatches, const Ranks& ranks) {
  if (ranks.is_mesh()) return microbatch.saved_bytes * microbatches;
  if (microbatches == 1 || !scales_with_batch(scenario)) return microbatch.saved_bytes;
  return build(scenario.workload, scenario.workload_options).saved_bytes;
}

std::vector<Processor> processors_of(const Platform& platform, const BoundPolicy& bound) {
  std::vector<Processor> named;
  for (const std::string& name : bound.processors)
    if (const auto found = platform.find_processor(name)) named.push_back(platform[*found]);
  return named.empty() ? platform.processors : named;
}

Workload build_for(const Scenario& scenario, std::span<const Processor> processors,
                   const RankBatch& of_a_rank, const Ranks& ranks, ScenarioMemo* memo) {
  WorkloadOptions options = scenario.workload_options;
  options.split_backward = of_a_rank.splits_backward;
  ranks.tell(options);
  const std::int64_t microbatches = of_a_rank.microbatches * ranks.samples();
  if (microbatches > 1 && states_batch(scenario)) {
    const std::int64_t batch = options.batch.value_or(default_batch(scenario.workload));
    if (batch % microbatches != 0)
      refuse(of_a_rank.where, words_for_division(of_a_rank.microbatches, ranks, batch),
             expected_for_division(of_a_rank.microbatches, ranks, batch));
    options.microbatch = batch / microbatches;
  }
  // Without a mesh a network is that of one step, which is known as a whole.
  Workload workload =
      ranks.step_of_one(network_of(scenario, options, ranks.is_mesh() ? memo : nullptr));
  add_kernel_workspace(workload, processors);
  add_generator_states(workload, processors);
  if (scenario.workload_options.accumulate || of_a_rank.adds_up)
    add_gradients(workload, made_gradients(scenario));
  if (scenario.workload_options.accumulate) keep_gradients(workload);
  workload.microbatches = microbatches;
  return workload;
}

std::shared_ptr<const TrainingStep> known_step_of_rank(const Scenario& scenario, const Node& policy,
                                                       const BoundPolicy& bound, const Ranks& ranks,
                                                       ScenarioMemo* memo, const std::string& key) {
  if (memo != nullptr)
    if (auto known = memo->training_steps.find(key)) return known;
  auto step = std::make_shared<const TrainingStep>(make_step(scenario, policy, bound, ranks, memo));
  if (memo != nullptr) memo->training_steps.keep(key, step, step->workload.operators.size());
  return step;
}

TrainingStep step_of_rank(const Scenario& scenario, const Node& policy, const BoundPolicy& bound,
                          const Ranks& ranks, ScenarioMemo* memo, const std::string& key) {
  if (memo == nullptr) return make_step(scenario, policy, bound, ranks, nullptr);
  return *known_step_of_rank(scenario, policy, bound, ranks, memo, key);
}

std::string step_key_of(const Scenario& scenario, const BoundPolicy& bound, const Ranks& ranks) {
  const std::vector<Processor> processors = processors_of(scenario.platform, bound);
  return fmt::format(
      "{} {}{}{}{}{} {} {}", bound.microbatches, bound.is_pipeline ? "pipeline " : "",
      adds_up(scenario, bound, processors.size()) ? "adds " : "",
      bound.splits_backward ? "split " : "", ranks.has_stages_as_units() ? "stages " : "",
      kernel_key(processors), generator_key(processors),
      key_text(scenario.workload_key) + scenario.parallel_key);
}

}  // namespace plimsoll
