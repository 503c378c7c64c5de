#include "scenario/run/run.hpp"

#include "base/quantity_text.hpp"
#include "execution/find_metrics.hpp"
#include "execution/judge.hpp"
#include "execution/rank_metrics.hpp"
#include "plan/build/repeated_plan.hpp"
#include "plan/check/plan_checker.hpp"
#include "plan/core/mirror_problems.hpp"
#include "plan/file/plan_file.hpp"
#include "platform/core/without_limits.hpp"
#include "policy/claims/claims.hpp"
#include "policy/claims/work_bound.hpp"
#include "scenario/document/memo.hpp"
#include "scenario/run/given_budget.hpp"
#include "scenario/run/larger_storage.hpp"
#include "scenario/run/long_run.hpp"
#include "scenario/run/planned_order.hpp"
#include "scenario/run/ranks.hpp"
#include "scenario/run/unknown_energy.hpp"
#include "workload/cost/cost_model.hpp"
#include "workload/cost/generator_states.hpp"
#include "workload/cost/gradient_accumulation.hpp"
#include "workload/cost/kernel_workspace.hpp"

#include <algorithm>
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

/// Whether the workload says how many samples a mini-batch has.
bool states_batch(const Scenario& scenario) {
  if (scenario.workload_options.batch) return true;
  if (const auto* chain = std::get_if<ChainSpec>(&scenario.workload))
    return chain->batch.has_value();
  if (const auto* graph = std::get_if<GraphSpec>(&scenario.workload))
    return graph->batch.has_value();
  return true;
}

/// Whether a mini-batch keeps other bytes than one microbatch: those of a profile are as recorded.
bool scales_with_batch(const Scenario& scenario) {
  return states_batch(scenario) && !std::holds_alternative<ProfileSpec>(scenario.workload);
}

bool is_network(const WorkloadSource& workload) {
  return std::holds_alternative<LayersSpec>(workload) || std::holds_alternative<OnnxSpec>(workload);
}

/// Those that the policy names; all where it names none.
std::vector<Processor> processors_of(const Platform& platform, const BoundPolicy& bound) {
  std::vector<Processor> named;
  for (const std::string& name : bound.processors)
    if (const auto found = platform.find_processor(name)) named.push_back(platform[*found]);
  return named.empty() ? platform.processors : named;
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

/// The workload of one rank, at the size of one of its `microbatches`. Throws InputError where they
/// do not divide the batch, or where a backward cannot be split.
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

Time makespan_without_limits(const Plan& plan, const Workload& workload, const Platform& platform,
                             RunInspector* inspector = nullptr) {
  const Platform unlimited = without_limits(platform);
  const Topology topology(unlimited);
  const Program program = lower(plan, workload, unlimited, topology);
  const Execution execution = execute(program);
  if (inspector != nullptr) inspector->see(program, execution, step_sums(program, execution));
  return execution.makespan;
}

double relative(Time time, Time reference) {
  if (reference == Time{}) return 0.0;
  return static_cast<double>((time - reference).count()) / static_cast<double>(reference.count());
}

void check_policy(const RunResult& result, const Scenario& scenario, const Topology& topology) {
  const auto problems =
      check_plan(result.plan, result.workload_as_run, scenario.platform, topology);
  if (!problems.empty())
    throw std::logic_error(fmt::format("policy `{}` made a plan that is not valid: {}",
                                       result.policy, fmt::join(problems, "; ")));
}

bool has_ranks(const Ranks& ranks) {
  return ranks.is_mesh() || ranks.has_state_elsewhere();
}

void measure_run(RunResult& result, const Program& program, const StepSums& sums,
                 const Scenario& scenario, const Ranks& ranks) {
  result.metrics = measure(program, result.execution, sums, scenario.iterations);
  if (has_ranks(ranks)) measure_ranks(program, sums, ranks.count(), result.metrics);
}

/// Precondition: check_plan() finds nothing wrong with the plan.
void execute_plan(RunResult& result, const Scenario& scenario, const Topology& topology,
                  const Ranks& ranks, RunInspector* inspector = nullptr) {
  const Program program = lower(result.plan, result.workload_as_run, scenario.platform, topology);
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
          note_on_unknown_energy(result.plan, scenario.platform, topology)})
      if (!note.empty()) result.notes.push_back(note);
  result.oom = result.execution.oom;
  result.cycle = result.execution.cycle;
  result.claims = result.plan.claims;
  result.bounds = result.plan.bounds;
}

void check_accumulation(const Scenario& scenario, const Node& policy, const BoundPolicy& bound) {
  if (!scenario.workload_options.accumulate || !bound.is_pipeline) return;
  refuse(policy.where(),
         "`accumulate` is for policies of one processor; a pipeline accumulates over its "
         "`microbatches`");
}

/// The plan of one microbatch as one of all that are accumulated, with what is claimed of that.
Plan accumulated(Plan plan, const Scenario& scenario, const Problem& problem) {
  const auto microbatches = scenario.workload_options.accumulate;
  if (!microbatches) return plan;
  Plan whole = repeated(plan, problem.workload, static_cast<std::uint32_t>(*microbatches));
  whole.claims = claims_of(whole, problem);
  whole.claims.chosen = std::move(plan.claims.chosen);
  whole.claims.left_out = std::move(plan.claims.left_out);
  whole.claims.eviction = plan.claims.eviction;
  return whole;
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

/// The makespan of `none` on unlimited memory, on the processor that `policy` runs on, or its likes.
Time reference_makespan(const Workload& step, const Scenario& scenario, const BoundPolicy& policy,
                        const Ranks& ranks) {
  const Topology topology(scenario.platform);
  const ChainView chain;  // `none` looks at operators only
  const Problem problem{step, chain, scenario.platform, topology};
  Planned none = ranks.planned(policy_on_processor_of(policy, "none").plan, problem);
  const Plan reference =
      ranks.of_all(accumulated(std::move(std::get<Plan>(none)), scenario, problem), problem);
  return makespan_without_limits(reference, step, scenario.platform);
}

/// The makespan of the same pipeline without offload and recomputation, on unlimited memory and without a
/// limit that the parameters give; nothing where it has no plan.
std::optional<Time> makespan_alone(const Workload& step, const Scenario& scenario,
                                   const BoundPolicy& policy, const Ranks& ranks, Work work,
                                   RunInspector* inspector = nullptr) {
  const Platform roomy = without_limits(scenario.platform);
  const Topology topology(roomy);
  const ChainView chain = chain_view(step);
  const Problem problem{step, chain, roomy, topology, judge_by_execution, work};
  Planned reference = ranks.planned(policy.schedule_alone, problem);
  Plan* of_one = std::get_if<Plan>(&reference);
  if (of_one == nullptr) return std::nullopt;
  const Plan plan = ranks.of_all(std::move(*of_one), problem);
  return makespan_without_limits(plan, step, scenario.platform, inspector);
}

std::optional<double> overhead_of_pipeline(const RunResult& result, const Scenario& scenario,
                                           const BoundPolicy& policy, const Ranks& ranks,
                                           Work work) {
  if (!policy.schedule_alone && !result.execution.waited_for_memory) return 0.0;
  const auto reference =
      policy.schedule_alone
          ? makespan_alone(result.workload_as_run, scenario, policy, ranks, work)
          : makespan_without_limits(result.plan, result.workload_as_run, scenario.platform);
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
void compare_with_reference(RunResult& result, const Scenario& scenario, const BoundPolicy& policy,
                            const Ranks& ranks, const std::string& step_key,
                            const RunOptions& options) {
  if (!result.metrics.makespan || !options.compares) return;
  if (policy.is_pipeline) {
    result.overhead = overhead_of_pipeline(result, scenario, policy, ranks, options.work);
    return;
  }
  const auto run_reference = [&] {
    return std::make_shared<const Time>(
        reference_makespan(result.workload_as_run, scenario, policy, ranks));
  };
  // That of a mesh depends on its links, too, which the key leaves out.
  const auto reference =
      options.memo != nullptr && !ranks.is_mesh()
          ? options.memo->reference_makespans.recall(
                step_key + key_of_times(result, scenario.platform), run_reference)
          : run_reference();
  result.overhead = relative(*result.metrics.makespan, *reference);
}

/// Runs `part`; what leaves the range of numbers is the workload's fault, in words.
RunResult in_range(const Scenario& scenario, auto part) {
  const Location& where = place_of(scenario.workload);
  try {
    return part();
  } catch (const CostOverflow& problem) {
    refuse(where, problem.what());
  } catch (const QuantityOverflow&) {
    refuse(where, fmt::format("the times and sizes of workload `{}` on platform `{}` leave "
                              "the range of 106 days or 9.2 EB",
                              scenario.workload_name, scenario.platform_name));
  }
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

/// What make_step() makes; the key is empty without a memo.
TrainingStep recall_step(const Scenario& scenario, const Node& policy, const BoundPolicy& bound,
                         const Ranks& ranks, ScenarioMemo* memo, const std::string& key) {
  if (memo == nullptr) return make_step(scenario, policy, bound, ranks);
  if (const auto known = memo->training_steps.find(key)) return *known;
  TrainingStep step = make_step(scenario, policy, bound, ranks);
  memo->training_steps.keep(key, std::make_shared<const TrainingStep>(step),
                            step.workload.operators.size());
  return step;
}

/// Of the platform, a step depends on the workspaces of kernels and the states of generators alone.
std::string step_key_of(const Scenario& scenario, const BoundPolicy& bound) {
  const std::vector<Processor> processors = processors_of(scenario.platform, bound);
  return fmt::format("{} {}{} {} {}", bound.microbatches, bound.splits_backward ? "split " : "",
                     kernel_key(processors), generator_key(processors),
                     key_text(scenario.workload_key) + scenario.parallel_key);
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

/// Checks and executes a plan that `bound` made for `problem`, of which `result` has the workload.
void run_planned(RunResult& result, Plan plan, const Scenario& scenario, const Problem& problem,
                 const BoundPolicy& bound, const Ranks& ranks, RunInspector* inspector = nullptr) {
  result.plan = ranks.of_all(accumulated(std::move(plan), scenario, problem), problem);
  std::ranges::copy(result.plan.notes, std::back_inserter(result.notes));
  if (!result.plan.bounds.makespan && !result.plan.bounds.period)
    result.plan.bounds.makespan = work_bound(result.plan, problem);
  result.budgets = given_budgets(bound, result.plan, result.workload_as_run, scenario.platform);
  check_policy(result, scenario, problem.topology);
  execute_plan(result, scenario, problem.topology, ranks, inspector);
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

/// `inspector` may be nullptr.
RunResult run_step(const Scenario& scenario, const Node& policy, const BoundPolicy& bound,
                   const Ranks& ranks, const RunOptions& options, TrainingStep step,
                   const std::string& step_key, RunInspector* inspector) {
  RunResult result = run_to_make(scenario, policy);
  result.notes = notes_on_parameters(scenario, policy, bound);
  const ChainView chain = std::move(step.chain);
  result.workload_as_run = std::move(step.workload);
  result.saved_bytes = step.saved_bytes;
  const Topology topology(scenario.platform);
  const Stopwatch watch;
  const Problem problem{result.workload_as_run, chain,       scenario.platform, topology,
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
  if (scenario.workload_options.accumulate) take_turns(result.workload_as_run);
  result.workload_as_run = ranks.as_played(std::move(result.workload_as_run));
  Plan& plan = std::get<Plan>(planned);
  if (const std::string note = note_on_kept_order(bound, plan, scenario.platform); !note.empty())
    result.notes.push_back(note);
  if (ordering)
    run_ordered(result, std::move(std::get<Plan>(ordered)), std::move(plan), scenario, problem,
                bound, ranks);
  else
    run_planned(result, std::move(plan), scenario, problem, bound, ranks, inspector);
  compare_with_reference(result, scenario, bound, ranks, step_key, options);
  return result;
}

/// A pipeline with other numbers of microbatches than it has, of the same samples each.
class OtherMicrobatches {
 public:
  /// The arguments must outlive it. `step` is that of one microbatch.
  OtherMicrobatches(const Scenario& scenario, const Node& policy, const BoundPolicy& bound,
                    const Ranks& ranks, const RunOptions& options, const TrainingStep& step)
      : scenario_(scenario),
        policy_(policy),
        own_(bound),
        ranks_(ranks),
        options_(options),
        step_(step),
        roomy_(without_limits(scenario.platform)),
        topology_(scenario.platform) {}

  /// The run with its own number, where that is shown from runs with less.
  std::optional<RunResult> run() {
    const auto long_run =
        run_long({count(), [this](std::uint32_t few) { return outline(few, false); },
                  [this](std::uint32_t few, RunInspector& inspector) { play(few, inspector); }});
    if (!long_run) return std::nullopt;
    RunResult result = std::move(*before_);
    measure(result, *long_run);
    if (!options_.compares || !own_.schedule_alone) return result;
    last_.reset();
    auto makespan = makespan_of_long(
        {count(), [this](std::uint32_t few) { return outline(few, true); },
         [this](std::uint32_t few, RunInspector& inspector) { play_alone(few, inspector); }});
    if (!makespan)
      makespan = makespan_alone(result.workload_as_run, scenario_, own_, ranks_, options_.work);
    if (makespan) result.overhead = relative(*result.metrics.makespan, *makespan);
    return result;
  }

 private:
  [[nodiscard]] std::uint32_t count() const {
    return static_cast<std::uint32_t>(own_.microbatches);
  }

  [[nodiscard]] BoundPolicy bound(std::uint32_t few) const {
    Diagnostics diagnostics;
    Node policy = ranks_.policy_of_one(policy_);
    policy.set("microbatches", parse_value(std::to_string(few), policy_.where().origin),
               diagnostics);
    auto found = bind_policy(policy, diagnostics);
    diagnostics.throw_if_errors();
    return std::move(*found);
  }

  [[nodiscard]] TrainingStep step(std::uint32_t few) const {
    TrainingStep step = step_;
    step.workload.microbatches = few * ranks_.samples();
    if (states_batch(scenario_))
      step.workload.batch = step.workload.batch / own_.microbatches * few;
    return step;
  }

  [[nodiscard]] Outline outline(std::uint32_t few, bool alone) const {
    const BoundPolicy policy = bound(few);
    Outline outline;
    if (policy.microbatches != few) return outline;
    const Problem problem{step_.workload, step_.chain,        alone ? roomy_ : scenario_.platform,
                          topology_,      judge_by_execution, options_.work,
                          &outline};
    static_cast<void>(ranks_.planned(alone ? policy.schedule_alone : policy.plan, problem));
    return outline;
  }

  void play(std::uint32_t few, RunInspector& inspector) {
    RunOptions options = options_;
    options.compares = false;
    before_ = std::move(last_);
    last_ = run_step(scenario_, policy_, bound(few), ranks_, options, step(few), "", &inspector);
    work_before_ = std::exchange(work_, std::vector<ProcessorWork>());
    const ChainView chain;  // work looks at operators only
    if (last_->metrics.makespan)
      work_ = work_by_processor(last_->plan,
                                {last_->workload_as_run, chain, scenario_.platform, topology_});
  }

  void play_alone(std::uint32_t few, RunInspector& inspector) const {
    const Workload workload = ranks_.as_played(step(few).workload);
    static_cast<void>(
        makespan_alone(workload, scenario_, bound(few), ranks_, options_.work, &inspector));
  }

  /// `result`: of the longer one of the two last runs that were played, which came first.
  void measure(RunResult& result, const LongRun& run) const {
    result.workload_as_run = ranks_.as_played(step_.workload);
    result.saved_bytes = step_.saved_bytes;
    result.plan.microbatches = count();
    result.execution = {run.execution, {}, {}, {}, {}};
    const bool claims_energy = result.claims.energy && result.metrics.energy &&
                               result.claims.energy == result.metrics.energy->total;
    Program program = run.frame;
    program.plan = &result.plan;
    program.workload = &result.workload_as_run;
    program.platform = &scenario_.platform;
    measure_run(result, program, run.sums, scenario_, ranks_);
    result.claims = result.plan.claims = run.claims;
    result.bounds = run.bounds;
    if (last_bound_is_of_work(result.plan.bounds)) result.bounds.makespan = bound_of_work(run);
    result.plan.bounds = result.bounds;
    // What a regulator loses is rounded once, and not for each repetition.
    if (claims_energy)
      result.claims.energy = result.plan.claims.energy = result.metrics.energy->total;
    result.notes.push_back(note_on(run, count()));
    if (options_.compares) result.overhead = 0.0;
  }

  bool last_bound_is_of_work(const Bounds& bounds) const {
    return bounds.makespan && bounds.makespan == work_bound(work_before_);
  }

  /// The processor with most to do may be another one than in short runs.
  Time bound_of_work(const LongRun& run) const {
    const std::int64_t more = (count() - run.played) / run.every;
    std::vector<ProcessorWork> work = work_before_;
    for (std::size_t p = 0; p < work.size(); ++p)
      work[p].total += (work_before_[p].total - work_[p].total) * more;
    return work_bound(work);
  }

  const Scenario& scenario_;
  const Node& policy_;
  const BoundPolicy& own_;
  const Ranks& ranks_;
  const RunOptions& options_;
  const TrainingStep& step_;
  const Platform roomy_;
  const Topology topology_;
  std::optional<RunResult> last_, before_;         ///< of the runs that were played
  std::vector<ProcessorWork> work_, work_before_;  ///< likewise
};

/// Whether a run may be one whose repetitions need not be played.
bool may_repeat(const Scenario& scenario, const BoundPolicy& bound, const Ranks& ranks) {
  const bool plays_all =
      scenario.parallel && scenario.parallel->play.value == MeshOptions::Play::all;
  return bound.is_pipeline && bound.microbatches >= kLongRun && !plays_all && !scenario.training &&
         !ranks.has_state_elsewhere();
}

RunResult run_bound(const Scenario& scenario, const Node& policy, const BoundPolicy& bound,
                    const Ranks& ranks, const RunOptions& options) {
  check_accumulation(scenario, policy, bound);
  const std::string step_key = step_key_of(scenario, bound);
  TrainingStep step = recall_step(scenario, policy, bound, ranks, options.memo, step_key);
  if (options.sums_only && may_repeat(scenario, bound, ranks)) {
    if (auto result = OtherMicrobatches(scenario, policy, bound, ranks, options, step).run())
      return std::move(*result);
  }
  return run_step(scenario, policy, bound, ranks, options, std::move(step), step_key, nullptr);
}

bool can_split(const WorkloadSource& workload) {
  if (std::holds_alternative<LayersSpec>(workload)) return true;
  const auto* chain = std::get_if<ChainSpec>(&workload);
  return chain != nullptr && std::ranges::all_of(chain->stages, [](const StageSpec& stage) {
           return stage.backward_input.has_value();
         });
}

/// Reads a plan for the scenario's workload. Names do not depend on the size of a microbatch, so
/// that need not be known; but the halves of a split backward have names of their own, so a plan
/// that cannot be read for whole backwards may be one for split ones.
Plan read_plan_of(const Scenario& scenario, const std::filesystem::path& path, const Ranks& ranks,
                  bool& split_backward) {
  WorkloadOptions options = scenario.workload_options;
  ranks.tell(options);
  const auto read = [&] {
    Workload workload = ranks.as_played(ranks.step_of_one(build(scenario.workload, options)));
    add_generator_states(workload, scenario.platform.processors);
    return read_plan(path, workload, scenario.platform);
  };
  split_backward = false;
  try {
    return read();
  } catch (const InputError&) {
    if (!can_split(scenario.workload)) throw;
    options.split_backward = true;
    try {
      split_backward = true;
      return read();
    } catch (const InputError&) {
      // The first complaint is about the workload as it is usually read.
    }
    throw;
  }
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
  Ranks ranks(scenario, policy);
  if (options.sums_only) ranks.join_rounds();
  const auto bound = bind_policy(ranks.policy_of_one(policy), diagnostics);
  diagnostics.throw_if_errors();
  try {
    return in_range(scenario, [&] { return run_bound(scenario, policy, *bound, ranks, options); });
  } catch (const WorkLimitReached& reached) {
    refuse(policy.where(),
           fmt::format("planning with `{}` takes {} steps of work or more; the limit is {}",
                       bound->name, reached.needs, reached.limit),
           "raise the limit, or ask for less: fewer `slots`, `nodes`, `orders`, `iterations` or "
           "stages");
  } catch (const std::invalid_argument& problem) {
    refuse(policy.where(), problem.what());
  }
}

RunResult run_policy(const Scenario& scenario, const Node& policy, ScenarioMemo* memo) {
  return run_policy(scenario, policy, RunOptions{memo, Work()});
}

RunResult run_plan_file(const Scenario& scenario, const std::filesystem::path& path) {
  RunResult result = describe_run(scenario, path.filename().string());
  result.from_file = true;
  const Topology topology(scenario.platform);
  result.saved_bytes = build(scenario.workload, scenario.workload_options).saved_bytes;
  const Ranks ranks(scenario);
  bool split_backward = false;
  result.plan = read_plan_of(scenario, path, ranks, split_backward);
  const Location place{path.string(), 0, 0};
  if (scenario.workload_options.accumulate &&
      result.plan.microbatches != *scenario.workload_options.accumulate)
    refuse(place, fmt::format("the plan is one of {} microbatches, but the scenario says "
                              "`accumulate: {}`",
                              result.plan.microbatches, *scenario.workload_options.accumulate));
  const auto of_mini_batch =
      std::int64_t{result.plan.mini_batch.value_or(result.plan.microbatches)} *
      replicas_of(result.plan);
  const std::int64_t of_a_rank = of_mini_batch / (ranks.samples() * ranks.of_a_sample());
  result.workload_as_run =
      build_for(scenario, scenario.platform.processors, std::max<std::int64_t>(of_a_rank, 1), ranks,
                split_backward, place);
  if (scenario.workload_options.accumulate) take_turns(result.workload_as_run);
  result.workload_as_run = ranks.as_played(std::move(result.workload_as_run));
  const auto problems =
      check_plan(result.plan, result.workload_as_run, scenario.platform, topology);
  if (!problems.empty()) {
    std::vector<Diagnostic> diagnostics;
    for (const std::string& problem : problems)
      diagnostics.push_back({Severity::error, place, problem, ""});
    throw InputError(std::move(diagnostics));
  }
  return in_range(scenario, [&] {
    execute_plan(result, scenario, topology, ranks);
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
