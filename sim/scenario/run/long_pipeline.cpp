#include "scenario/run/long_pipeline.hpp"

#include "execution/judge.hpp"
#include "platform/core/without_limits.hpp"
#include "policy/claims/work_bound.hpp"
#include "policy/interface/outline.hpp"
#include "scenario/run/long_run.hpp"
#include "scenario/run/policy_run.hpp"
#include "scenario/run/step_of_rank.hpp"

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace plimsoll {

namespace {

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
        roomy_(without_limits(scenario.platform)) {}

  /// The run with its own number, where that, or the makespan that its overhead is related to, is shown from
  /// runs with less.
  std::optional<RunResult> run() {
    const bool relates = options_.compares && own_.schedule_alone;
    const auto long_run =
        run_long({count(), [this](std::uint32_t few) { return outline(few, false); },
                  [this](std::uint32_t few, RunInspector& inspector) { play(few, inspector); }});
    if (!long_run && !relates) return std::nullopt;
    RunResult result = long_run ? std::move(*before_) : run_all();
    if (long_run) measure(result, *long_run);
    if (relates && result.metrics.makespan) relate(result);
    return result;
  }

 private:
  [[nodiscard]] std::uint32_t count() const {
    return static_cast<std::uint32_t>(own_.microbatches);
  }

  RunResult run_all() {
    last_.reset();
    before_.reset();
    RunOptions options = options_;
    options.compares = false;
    return run_step(scenario_, policy_, own_, ranks_, options, step_, "");
  }

  void relate(RunResult& result) {
    last_.reset();
    auto makespan = makespan_of_long(
        {count(), [this](std::uint32_t few) { return outline(few, true); },
         [this](std::uint32_t few, RunInspector& inspector) { play_alone(few, inspector); }});
    if (!makespan)
      makespan = makespan_alone(result.workload_as_run, roomy_, own_, ranks_, options_.work);
    if (makespan) result.overhead = relative(*result.metrics.makespan, *makespan);
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

  /// Nothing is known of a number of microbatches that the schedule does not take.
  [[nodiscard]] Outline outline(std::uint32_t few, bool alone) const {
    try {
      return outline_of(few, alone);
    } catch (const InputError&) {
      return {};
    } catch (const std::invalid_argument&) {
      return {};
    }
  }

  [[nodiscard]] Outline outline_of(std::uint32_t few, bool alone) const {
    const BoundPolicy policy = bound(few);
    Outline outline;
    if (policy.microbatches != few) return outline;
    const Problem problem{
        step_.workload,    step_.chain,        alone ? roomy_ : scenario_.platform,
        ranks_.topology(), judge_by_execution, options_.work,
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
      work_ = work_by_processor(
          last_->plan, {last_->workload_as_run, chain, scenario_.platform, ranks_.topology()});
  }

  void play_alone(std::uint32_t few, RunInspector& inspector) const {
    const Workload workload = ranks_.as_played(step(few).workload);
    static_cast<void>(
        makespan_alone(workload, roomy_, bound(few), ranks_, options_.work, &inspector));
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

}  // namespace

std::optional<RunResult> run_long_pipeline(const Scenario& scenario, const Node& policy,
                                           const BoundPolicy& bound, const Ranks& ranks,
                                           const RunOptions& options, const TrainingStep& step) {
  if (!may_repeat(scenario, bound, ranks)) return std::nullopt;
  return OtherMicrobatches(scenario, policy, bound, ranks, options, step).run();
}

}  // namespace plimsoll
