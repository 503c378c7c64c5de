#include "scenario/run/run.hpp"

#include "execution/find_metrics.hpp"
#include "plan/check/plan_checker.hpp"
#include "plan/core/mirror_problems.hpp"
#include "plan/file/plan_file.hpp"
#include "scenario/run/added_gradients.hpp"
#include "scenario/run/in_words.hpp"
#include "scenario/run/larger_storage.hpp"
#include "scenario/run/long_pipeline.hpp"
#include "scenario/run/mesh_axes.hpp"
#include "scenario/run/policy_run.hpp"
#include "scenario/run/ranks.hpp"
#include "scenario/run/step_of_rank.hpp"
#include "workload/cost/generator_states.hpp"
#include "workload/cost/gradient_accumulation.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

RunResult run_bound(const Scenario& scenario, const Node& policy, const BoundPolicy& bound,
                    const Ranks& ranks, const RunOptions& options) {
  const std::string step_key = step_key_of(scenario, bound, ranks);
  TrainingStep step = step_of_rank(scenario, policy, bound, ranks, options.memo, step_key);
  if (options.sums_only)
    if (auto result = run_long_pipeline(scenario, policy, bound, ranks, options, step))
      return std::move(*result);
  return run_step(scenario, policy, bound, ranks, options, std::move(step), step_key);
}

bool can_split(const WorkloadSource& workload) {
  if (std::holds_alternative<LayersSpec>(workload)) return true;
  const auto* chain = std::get_if<ChainSpec>(&workload);
  return chain != nullptr && std::ranges::all_of(chain->stages, [](const StageSpec& stage) {
           return stage.backward_input.has_value();
         });
}

struct ReadPlan {
  Plan plan;
  bool splits_backward = false, adds_up_gradients = false;
};

ReadPlan read_plan_of(const Scenario& scenario, const std::filesystem::path& path,
                      const Ranks& ranks, bool splits_backward) {
  WorkloadOptions options = scenario.workload_options;
  options.split_backward = splits_backward;
  ranks.tell(options);
  Workload workload = ranks.as_played(ranks.step_of_one(build(scenario.workload, options)));
  add_generator_states(workload, scenario.platform.processors);
  Plan plan = read_plan(path, workload, scenario.platform);
  const bool adds = adds_up_gradients(plan, workload);
  return ReadPlan{std::move(plan), splits_backward, adds};
}

/// Reads a plan for the scenario's workload. Names do not depend on the size of a microbatch, so
/// that need not be known; but the halves of a split backward have names of their own, and so have units that
/// are stages of the chain: a plan that cannot be read for the step as it usually is may be one for such a step.
ReadPlan read_plan_of(const Scenario& scenario, const std::filesystem::path& path, Ranks& ranks) {
  std::exception_ptr about_usual_step;
  for (const auto& [splits_backward, takes_stages] :
       {std::pair(false, false), std::pair(true, false), std::pair(false, true)}) {
    if (splits_backward && !can_split(scenario.workload)) continue;
    if (takes_stages && !ranks.may_have_stages_as_units()) continue;
    if (takes_stages) ranks.take_stages_as_units();
    try {
      return read_plan_of(scenario, path, ranks, splits_backward);
    } catch (const InputError&) {
      if (!about_usual_step) about_usual_step = std::current_exception();
    }
  }
  std::rethrow_exception(about_usual_step);
}

/// What a file says of the plans of its kind it says of the problem that it was made for. Where its
/// times are not measured, that is another one; and no bound is above what is measured
/// (check_claims() tells of such ones).
void drop_what_does_not_hold(RunResult& result) {
  const Metrics& measured = result.metrics;
  const auto differs = [](const auto& said, const auto& is) { return said && said != is; };
  const bool is_other = differs(result.claims.makespan, measured.makespan) ||
                        differs(result.claims.period, measured.period);
  const bool says_time = result.claims.makespan || result.claims.period;
  if (is_other || !says_time) result.claims.optimal.reset();
  const auto keep = [&](auto& bound, const auto& is) {
    if (is_other || (bound && is && *bound > *is)) bound.reset();
  };
  keep(result.bounds.makespan, measured.makespan);
  keep(result.bounds.period, measured.period);
  keep(result.bounds.energy,
       measured.energy ? std::optional(measured.energy->total) : std::nullopt);
  std::erase_if(result.bounds.peak, [&](const auto& bound) {
    const MemoryMetrics* memory =
        find_memory(measured, result.memory_names[static_cast<std::size_t>(bound.first)]);
    return is_other || (memory != nullptr && bound.second > memory->peak_requested);
  });
}

}  // namespace
std::string as_written(const Node& node) {
  if (node.is_scalar()) return node.scalar();
  std::vector<std::string> parts;
  for (const Node& item : node.items()) parts.push_back(as_written(item));
  for (const auto& [key, value] : node.entries())
    parts.push_back(fmt::format("{}: {}", key.scalar(), as_written(value)));
  return fmt::format(fmt::runtime(node.is_mapping() ? "{{{}}}" : "[{}]"), fmt::join(parts, ", "));
}

std::string policy_name(const Node& policy) {
  const Node* name = policy.is_mapping() ? policy.find("name") : &policy;
  return name != nullptr && name->is_scalar() ? name->scalar() : std::string();
}

bool is_online(const Node& policy) {
  const PolicyInfo* info = find_policy(policy_name(policy));
  return info != nullptr && info->is_online;
}

std::string parameters_as_written(const Node& policy) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : policy.entries())
    if (key.scalar() != "name")
      parts.push_back(fmt::format("{}: {}", key.scalar(), as_written(value)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

RunResult run_to_make(const Scenario& scenario, const Node& policy) {
  RunResult result = describe_run(scenario, policy_name(policy));
  result.policy_parameters = parameters_as_written(policy);
  return result;
}

const char* status_text(const RunResult& result) {
  if (result.infeasible) return "infeasible";
  switch (result.metrics.status) {
    case RunStatus::ok:
      return "ok";
    case RunStatus::oom:
      return "oom";
    case RunStatus::deadlock:
      return "deadlock";
  }
  return "";
}

std::optional<Bytes> budget_of(const RunResult& result, MemoryId memory) {
  for (const auto& [its, bytes] : result.budgets)
    if (its == memory) return bytes;
  return std::nullopt;
}

std::string label_of(const RunResult& result) {
  if (result.policy_parameters.empty()) return result.policy;
  return fmt::format("{} ({})", result.policy, result.policy_parameters);
}

RunResult run_policy(const Scenario& scenario, const Node& policy, const RunOptions& options) {
  Diagnostics diagnostics;
  Ranks ranks = options.memo == nullptr ? ranks_of_run(scenario, policy) : Ranks(scenario, policy);
  if (options.sums_only) ranks.join_rounds();
  const auto bound = bind_policy(ranks.policy_of_one(policy), diagnostics);
  diagnostics.throw_if_errors();
  RunResult result = in_words(scenario, policy,
                              [&] { return run_bound(scenario, policy, *bound, ranks, options); });
  if (options.is_reported) list_numbers(result, scenario.platform);
  return result;
}

RunResult run_policy(const Scenario& scenario, const Node& policy, ScenarioMemo* memo) {
  return run_policy(scenario, policy, RunOptions{memo, Work()});
}

RunResult run_plan_file(const Scenario& scenario, const std::filesystem::path& path) {
  RunResult result = describe_run(scenario, path.filename().string());
  result.from_file = true;
  list_numbers(result, scenario.platform);
  Ranks ranks(scenario);
  if (ranks.is_mesh()) result.mesh = mesh_of_run(scenario);
  ReadPlan read = read_plan_of(scenario, path, ranks);
  result.plan = std::move(read.plan);
  const Location place{path.string(), 0, 0};
  const auto of_mini_batch =
      std::int64_t{result.plan.mini_batch.value_or(result.plan.microbatches)} *
      replicas_of(result.plan);
  const std::int64_t of_a_rank = of_mini_batch / (ranks.samples() * ranks.of_a_sample());
  const auto& accumulate = scenario.workload_options.accumulate;
  if (accumulate && of_a_rank != *accumulate)
    refuse(place, fmt::format("the plan is one of {} microbatches, but the scenario says "
                              "`accumulate: {}`",
                              of_a_rank, *accumulate));
  const RankBatch batch{std::max<std::int64_t>(of_a_rank, 1), read.splits_backward,
                        read.adds_up_gradients, place};
  result.workload_as_run = build_for(scenario, scenario.platform.processors, batch, ranks, nullptr);
  result.saved_bytes =
      saved_bytes_of(scenario, result.workload_as_run, accumulate ? 1 : batch.microbatches, ranks);
  if (accumulate) take_turns(result.workload_as_run);
  result.workload_as_run = ranks.as_played(std::move(result.workload_as_run));
  const auto problems =
      check_plan(result.plan, result.workload_as_run, scenario.platform, ranks.topology());
  if (!problems.empty()) {
    std::vector<Diagnostic> diagnostics;
    for (const std::string& problem : problems)
      diagnostics.push_back({Severity::error, place, problem, ""});
    throw InputError(std::move(diagnostics));
  }
  if (const std::string why = ranks.why_not_theirs(result.plan, result.workload_as_run);
      !why.empty())
    refuse(place, "the plan is not one of the mesh that `parallel` describes: " + why,
           "expected the axes that it was made for");
  return in_range(scenario, [&] {
    execute_plan(result, scenario, ranks);
    drop_what_does_not_hold(result);
    return std::move(result);
  });
}

std::vector<RunResult> run(const Scenario& scenario) {
  std::vector<RunResult> results;
  for (const Node& policy : scenario.policies) {
    results.push_back(run_policy(scenario, policy));
    tell_storage_needed(results.back(), scenario, policy);
  }
  return results;
}

}  // namespace plimsoll
