#include "scenario/run/policy_run.hpp"

#include "base/dense_id.hpp"
#include "base/quantity_text.hpp"
#include "execution/judge.hpp"
#include "execution/rank_metrics.hpp"
#include "plan/check/plan_checker.hpp"
#include "platform/core/without_limits.hpp"
#include "policy/claims/work_bound.hpp"
#include "scenario/run/accumulated_step.hpp"
#include "scenario/run/given_budget.hpp"
#include "scenario/run/planned_order.hpp"
#include "scenario/run/room_ahead.hpp"
#include "scenario/run/step_of_rank.hpp"
#include "scenario/run/uncut_stage.hpp"
#include "scenario/run/unknown_energy.hpp"
#include "scenario/run/whole_operators.hpp"
#include "workload/cost/cost_model.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Precondition: the memories of `roomy` never fill.
Time makespan_on(const Platform& roomy, const Topology& topology, const Plan& plan,
                 const Workload& workload, RunInspector* inspector = nullptr) {
  const Program program = lower(plan, workload, roomy, topology);
  const Execution execution = execute(program);
  if (inspector != nullptr) inspector->see(program, execution, step_sums(program, execution));
  return execution.makespan;
}

void check_policy(const RunResult& result, const Scenario& scenario, const Topology& topology) {
  const PlanProblems problems =
      problems_of(result.plan, result.workload_as_run, scenario.platform, topology);
  if (problems.is_undecided)
    throw PlanUndecided(fmt::format(
        "a plan of {} steps is too large to be checked: what orders them was not found for all",
        result.plan.steps.size()));
  if (!problems.sentences.empty())
    throw std::logic_error(fmt::format("policy `{}` made a plan that is not valid: {}",
                                       result.policy, fmt::join(problems.sentences, "; ")));
}

bool has_ranks(const Ranks& ranks) {
  return ranks.is_mesh() || ranks.has_state_elsewhere();
}

/// The makespan of `none` on unlimited memory, on the processor that `policy` runs on, or its likes.
Time reference_makespan(const Workload& step, const Scenario& scenario, const BoundPolicy& policy,
                        const Ranks& ranks) {
  const ChainView chain;  // `none` looks at operators only
  const Problem problem{step, chain, scenario.platform, ranks.topology()};
  Planned none = ranks.planned(policy_on_processor_of(policy, "none").plan, problem);
  const Plan reference =
      ranks.of_all(accumulated(std::move(std::get<Plan>(none)), scenario, problem), problem);
  return makespan_on(without_limits(scenario.platform), ranks.topology(), reference, step);
}

/// The same for the step of `result`. The units of `none` are blocks, whatever those of the policy are.
Time reference_makespan(const RunResult& result, const Scenario& scenario, const Node& policy,
                        const BoundPolicy& bound, const Ranks& ranks, ScenarioMemo* memo) {
  if (!ranks.has_units_of_policy())
    return reference_makespan(result.workload_as_run, scenario, bound, ranks);
  Ranks by_block(scenario, policy);
  by_block.take_blocks_as_units();
  const BoundPolicy none = policy_on_processor_of(bound, "none");
  TrainingStep step =
      step_of_rank(scenario, policy, none, by_block, memo, step_key_of(scenario, none, by_block));
  return reference_makespan(played_step(std::move(step.workload), scenario, by_block), scenario,
                            bound, by_block);
}

std::optional<double> overhead_of_pipeline(const RunResult& result, const Scenario& scenario,
                                           const BoundPolicy& policy, const Ranks& ranks,
                                           Work work) {
  if (!policy.schedule_alone && !result.execution.waited_for_memory) return 0.0;
  const Platform roomy = without_limits(scenario.platform);
  const auto reference =
      policy.schedule_alone
          ? makespan_alone(result.workload_as_run, roomy, policy, ranks, work)
          : makespan_on(roomy, ranks.topology(), result.plan, result.workload_as_run);
  if (!reference) return std::nullopt;
  return relative(*result.metrics.makespan, *reference);
}

/// All of the platform that the reference depends on: how long each operator takes where it runs.
std::string key_of_times(const RunResult& result, const Platform& platform) {
  std::string key;
  const auto lane = std::ranges::find(result.plan.lanes, Lane::Kind::stream, &Lane::kind);
  if (lane == result.plan.lanes.end()) return key;
  for (const Time time : durations(result.workload_as_run, platform, lane->processor))
    key += key_text(std::to_string(time.count()));
  return key;
}

/// Against `none` on unlimited memory, but for pipelines.
void compare_with_reference(RunResult& result, const Scenario& scenario, const Node& policy,
                            const BoundPolicy& bound, const Ranks& ranks,
                            const std::string& step_key, const RunOptions& options) {
  if (!result.metrics.makespan || !options.compares) return;
  if (bound.is_pipeline) {
    result.overhead = overhead_of_pipeline(result, scenario, bound, ranks, options.work);
    return;
  }
  const auto run_reference = [&] {
    return std::make_shared<const Time>(
        reference_makespan(result, scenario, policy, bound, ranks, options.memo));
  };
  // That of a mesh depends on its links, too, which the key leaves out.
  const auto reference =
      options.memo != nullptr && !ranks.is_mesh()
          ? options.memo->reference_makespans.recall(
                step_key + key_of_times(result, scenario.platform), run_reference)
          : run_reference();
  result.overhead = relative(*result.metrics.makespan, *reference);
}

/// What was made of the policy's parameters that nobody who chose it by name has written, or that
/// cannot be had.
std::vector<std::string> notes_on_parameters(const Scenario& scenario, const Node& policy,
                                             const BoundPolicy& bound) {
  std::vector<std::string> notes;
  const std::string given = parameters_as_written(policy);
  if (scenario.policies_are_chosen && policy.where().origin != kChosenOrigin && !given.empty())
    notes.push_back(fmt::format("the scenario has a policy `{}`, and its parameters hold: {}",
                                bound.name, given));
  if (!bound.budget || bound.budget->is_unlimited()) return notes;
  std::vector<MemoryId> told;
  for (const Processor& processor : processors_of(scenario.platform, bound)) {
    const Memory& memory = scenario.platform[processor.memory];
    if (*bound.budget <= memory.usable() || std::ranges::count(told, processor.memory) > 0)
      continue;
    told.push_back(processor.memory);
    notes.push_back(fmt::format(
        "a budget of {} is more than the {} that `{}` has for plans; {} "
        "is what counts",
        to_text(*bound.budget), to_text(memory.usable()), memory.name, to_text(memory.usable())));
  }
  return notes;
}

/// A policy plans for one rank by itself, as if what ranks gather and reduce were there at once.
void tell_of_budgets(RunResult& result, const Platform& platform) {
  if (result.metrics.status != RunStatus::ok) return;
  for (const auto& [memory, budget] : result.budgets) {
    const Bytes peak = result.execution.memories[index(memory)].peak.requested;
    if (peak <= budget) continue;
    result.notes.push_back(
        fmt::format("`{}` peaks {} above the budget of {}: plans are for one rank by itself, and "
                    "what ranks gather, "
                    "reduce or move takes time, for which it stays",
                    platform[memory].name, to_text(peak - budget), to_text(budget)));
    return;  // the same of other ranks
  }
}

/// Checks and executes a plan that `bound` made for `problem`, of which `result` has the workload.
void run_planned(RunResult& result, Plan plan, const Scenario& scenario, const Problem& problem,
                 const BoundPolicy& bound, const Ranks& ranks, RunInspector* inspector = nullptr,
                 std::optional<std::int64_t> ahead = std::nullopt) {
  result.plan = ranks.of_all(accumulated(std::move(plan), scenario, problem), problem, ahead);
  if (ranks.is_mesh()) result.mesh = mesh_of_run(scenario, ranks.forms_taken());
  std::ranges::copy(result.plan.notes, std::back_inserter(result.notes));
  if (!result.plan.bounds.makespan && !result.plan.bounds.period)
    result.plan.bounds.makespan = work_bound(result.plan, problem);
  result.budgets = given_budgets(bound, result.plan, result.workload_as_run, scenario.platform);
  check_policy(result, scenario, problem.topology);
  execute_plan(result, scenario, ranks, inspector);
  if (has_ranks(ranks)) tell_of_budgets(result, scenario.platform);
}

/// Runs `ordered`, whose order an allocator has planned. Where its placement ends above that of
/// `given`, the workload's own order, the latter stays.
void run_ordered(RunResult& result, Plan ordered, Plan given, const Scenario& scenario,
                 const Problem& problem, const BoundPolicy& bound, const Ranks& ranks) {
  RunResult unordered = result;
  run_planned(result, std::move(ordered), scenario, problem, bound, ranks);
  if (!may_end_lower(given, result, scenario.platform)) return;
  run_planned(unordered, std::move(given), scenario, problem, bound, ranks);
  if (!ends_lower(unordered, result, scenario.platform)) return;
  unordered.notes.emplace_back(
      "the order of least peak ends higher once it is placed: the workload's own order stays");
  result = std::move(unordered);
}

}  // namespace

double relative(Time time, Time reference) {
  if (reference == Time{}) return 0.0;
  return static_cast<double>((time - reference).count()) / static_cast<double>(reference.count());
}

RunResult describe_run(const Scenario& scenario, std::string policy) {
  RunResult result;
  result.scenario = scenario.name;
  result.platform = scenario.platform_name;
  result.workload = scenario.workload_name;
  result.policy = std::move(policy);
  result.worst_quality = scenario.platform.worst_quality();
  result.energy_band = energy_band(scenario.platform);
  result.recorded = recorded_of(scenario.workload);
  for (const Memory& memory : scenario.platform.memories)
    result.memory_names.push_back(memory.name);
  return result;
}

void list_numbers(RunResult& result, const Platform& platform) {
  for (const Provenance& it : platform.provenance)
    result.numbers_of[static_cast<std::size_t>(it.quality)].push_back(it.path);
  for (const std::string& path : platform.without_provenance)
    result.numbers_of[static_cast<std::size_t>(Quality::estimate)].push_back(path);
}

void measure_run(RunResult& result, const Program& program, const StepSums& sums,
                 const Scenario& scenario, const Ranks& ranks) {
  result.metrics = measure(program, result.execution, sums, scenario.iterations);
  if (has_ranks(ranks)) measure_ranks(program, sums, ranks.count(), result.metrics);
}

void execute_plan(RunResult& result, const Scenario& scenario, const Ranks& ranks,
                  RunInspector* inspector) {
  const Program program =
      lower(result.plan, result.workload_as_run, scenario.platform, ranks.topology());
  const Stopwatch watch;
  result.execution = execute(program);
  result.execution_s = watch.seconds();
  StepSums sums = step_sums(program, result.execution);
  if (has_ranks(ranks)) sums.collectives = collective_sums(program, result.execution);
  measure_run(result, program, sums, scenario, ranks);
  if (inspector != nullptr) inspector->see(program, result.execution, sums);
  if (scenario.training && result.execution.status == RunStatus::ok)
    result.training = whole_training(*scenario.training, result.metrics, result.workload_as_run,
                                     result.plan, scenario.platform, result.notes);
  if (result.metrics.energy)
    for (const std::string& note :
         {note_on_unknown_operators(result.plan, result.workload_as_run, scenario.platform),
          note_on_unknown_energy(result.plan, scenario.platform, ranks.topology())})
      if (!note.empty()) result.notes.push_back(note);
  result.oom = result.execution.oom;
  result.cycle = result.execution.cycle;
  result.claims = result.plan.claims;
  result.bounds = result.plan.bounds;
}

std::optional<Time> makespan_alone(const Workload& step, const Platform& roomy,
                                   const BoundPolicy& policy, const Ranks& ranks, Work work,
                                   RunInspector* inspector) {
  const ChainView chain = pipeline_view(step);
  const Problem problem{step, chain, roomy, ranks.topology(), judge_by_execution, work};
  Planned reference = ranks.planned(policy.schedule_alone, problem);
  Plan* of_one = std::get_if<Plan>(&reference);
  if (of_one == nullptr) return std::nullopt;
  const Plan plan = ranks.of_all(std::move(*of_one), problem);
  return makespan_on(roomy, ranks.topology(), plan, step, inspector);
}

/// Whether it matters how the chain is cut, and ranks or a place for state may have left it whole.
bool needs_cuts(const Scenario& scenario, const BoundPolicy& bound) {
  const PolicyInfo* info = find_policy(bound.name);
  const bool is_for_chains = bound.is_pipeline || (info != nullptr && info->is_for_chains);
  return is_for_chains && (scenario.parallel || scenario.state);
}

/// Notes on how ranks and the chain divide the step.
void tell_of_step(RunResult& result, const Scenario& scenario, const BoundPolicy& bound,
                  const ChainView& chain) {
  const auto tell = [&](std::string note) {
    if (!note.empty()) result.notes.push_back(std::move(note));
  };
  if (scenario.parallel)
    tell(note_on_whole_operators(result.workload_as_run,
                                 MeshOptions::size(scenario.parallel->tensor)));
  if (needs_cuts(scenario, bound)) tell(note_on_uncut_stage(chain, result.workload_as_run));
}

RunResult run_step(const Scenario& scenario, const Node& policy, const BoundPolicy& bound,
                   const Ranks& ranks, const RunOptions& options, TrainingStep step,
                   const std::string& step_key, RunInspector* inspector) {
  RunResult result = run_to_make(scenario, policy);
  result.notes = notes_on_parameters(scenario, policy, bound);
  const ChainView chain = std::move(step.chain);
  result.workload_as_run = std::move(step.workload);
  tell_of_step(result, scenario, bound, chain);
  result.saved_bytes = step.saved_bytes;
  const Stopwatch watch;
  const Problem problem{result.workload_as_run, chain,       scenario.platform, ranks.topology(),
                        judge_by_execution,     options.work};
  const auto ordering =
      ranks.has_state_elsewhere() ? std::nullopt : policy_that_orders(bound, scenario.platform);
  Planned planned = ranks.planned(bound.plan, problem);
  Planned ordered = ordering ? ordering->plan(problem) : Planned();
  result.planning_s = watch.seconds();
  if (auto* infeasible = std::get_if<Infeasible>(&planned)) {
    result.infeasible = std::move(*infeasible);
    return result;
  }
  Plan& plan = std::get<Plan>(planned);
  std::optional<std::int64_t> ahead;
  if (ranks.has_units_of_policy()) {
    PlanWithRoom its = with_room_ahead(std::move(plan), scenario, policy, bound, ranks, problem);
    plan = std::move(its.of_one);
    ahead = its.ahead;
    if (!its.note.empty()) result.notes.push_back(std::move(its.note));
  }
  result.workload_as_run = played_step(std::move(result.workload_as_run), scenario, ranks);
  if (const std::string note = note_on_kept_order(bound, plan, scenario.platform); !note.empty())
    result.notes.push_back(note);
  if (ordering)
    run_ordered(result, std::move(std::get<Plan>(ordered)), std::move(plan), scenario, problem,
                bound, ranks);
  else
    run_planned(result, std::move(plan), scenario, problem, bound, ranks, inspector, ahead);
  compare_with_reference(result, scenario, policy, bound, ranks, step_key, options);
  return result;
}

}  // namespace plimsoll
