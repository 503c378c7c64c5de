#include "scenario/run/run_bound.hpp"

#include "base/quantity_text.hpp"
#include "scenario/run/in_words.hpp"
#include "scenario/run/mesh_axes.hpp"
#include "scenario/run/step_needs.hpp"
#include "scenario/run/step_of_rank.hpp"

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// Each operator once, on the one processor that there is for it: nothing where there are several.
Time work_of_step(const Scenario& scenario, const BoundPolicy& bound, const Ranks& ranks,
                  const Workload& step) {
  const Platform& platform = scenario.platform;
  std::optional<ProcessorId> processor;
  if (bound.processors.size() == 1) processor = platform.find_processor(bound.processors.front());
  if (bound.processors.empty() && platform.processors.size() == 1) processor = ProcessorId{0};
  if (!processor || ranks.has_state_elsewhere()) return Time{};
  const std::int64_t turns = scenario.workload_options.accumulate.value_or(1);
  const std::vector<Time> times = durations(step, platform, *processor);
  Time sum;
  for (std::uint32_t op = 0; op < times.size(); ++op)
    sum += op < step.optimizer_begin ? times[op] * turns : times[op];
  return sum;
}

std::string does_not_fit(const PlanBound& bound, const Platform& platform) {
  for (std::size_t m = 0; m < bound.peaks.size(); ++m) {
    const Memory& memory = platform.memories[m];
    if (bound.peaks[m] > memory.usable())
      return fmt::format("{} has {} for plans, and one needs at least {}", memory.name,
                         to_text(memory.usable()), to_text(bound.peaks[m]));
  }
  return {};
}

/// The memory in which one processor works, unless a policy may place state elsewhere.
std::optional<MemoryId> only_home(const Platform& platform, const BoundPolicy& bound) {
  const std::vector<Processor> processors = processors_of(platform, bound);
  if (processors.size() != 1 || !processors.front().reaches.empty()) return std::nullopt;
  return processors.front().memory;
}

/// Of policies of one processor.
std::string needs_more(const Scenario& scenario, const BoundPolicy& policy, const Workload& step) {
  const auto home = only_home(scenario.platform, policy);
  if (!home) return {};
  const bool takes_turns = scenario.workload_options.accumulate.value_or(1) > 1;
  const Bytes needs = needs_of(step, takes_turns ? 2 : 1).in_any_order(takes_turns);
  const Memory& memory = scenario.platform[*home];
  if (needs <= memory.usable()) return {};
  return fmt::format("{} has {} for plans, and every plan needs at least {}", memory.name,
                     to_text(memory.usable()), to_text(needs));
}

RunBound bound_of_step(const Scenario& scenario, const BoundPolicy& policy, const Ranks& ranks,
                       const RunOptions& options, const TrainingStep& step) {
  RunBound bound;
  if (policy.is_pipeline && !ranks.has_state_elsewhere()) {
    PlanBoundRequest request;
    const Problem problem{step.workload, step.chain,   scenario.platform, ranks.topology(),
                          nullptr,       options.work, nullptr,           &request};
    const auto collectives = ranks.least_collectives(problem);
    if (collectives)
      request.collective = [&](OperatorId op, ProcessorId on) { return collectives->of(op, on); };
    static_cast<void>(ranks.planned(policy.plan, problem));
    if (request.answer) {
      bound.makespan = request.answer->makespan;
      bound.does_not_fit = does_not_fit(*request.answer, scenario.platform);
    }
  } else if (!policy.is_pipeline) {
    bound.makespan = work_of_step(scenario, policy, ranks, step.workload);
    if (!ranks.has_state_elsewhere())
      bound.does_not_fit = needs_more(scenario, policy, step.workload);
  }
  // Of several iterations, those after the first may take less.
  if (bound.makespan > Time{} && scenario.iterations == 1)
    bound.throughput = static_cast<double>(step.workload.batch) / in_seconds(bound.makespan);
  return bound;
}

/// What `use` makes of the policy and the step that it would be given.
auto with_step(const Scenario& scenario, const Node& policy, ScenarioMemo* memo, auto use) {
  Diagnostics diagnostics;
  const Ranks ranks = memo == nullptr ? ranks_of_run(scenario, policy) : Ranks(scenario, policy);
  const auto bound = bind_policy(ranks.policy_of_one(policy), diagnostics);
  diagnostics.throw_if_errors();
  return in_words(scenario, policy, [&] {
    const auto step = known_step_of_rank(scenario, policy, *bound, ranks, memo,
                                         step_key_of(scenario, *bound, ranks));
    return use(*bound, ranks, *step);
  });
}

}  // namespace

RunBound bound_run(const Scenario& scenario, const Node& policy, const RunOptions& options) {
  return with_step(scenario, policy, options.memo,
                   [&](const BoundPolicy& bound, const Ranks& ranks, const TrainingStep& step) {
                     return bound_of_step(scenario, bound, ranks, options, step);
                   });
}

void check_run(const Scenario& scenario, const Node& policy) {
  with_step(scenario, policy, nullptr,
            [&](const BoundPolicy& bound, const Ranks& ranks, const TrainingStep& step) {
              const auto collectives = ranks.least_collectives(
                  {step.workload, step.chain, scenario.platform, ranks.topology()});
              if (collectives) collectives->require_ways();
              if (bound.is_pipeline) bound_of_step(scenario, bound, ranks, {}, step);
            });
}

}  // namespace plimsoll
