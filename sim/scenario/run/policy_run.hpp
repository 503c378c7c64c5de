/// Plans a step by a policy, executes the plan and measures.
#pragma once

#include "execution/step_sums.hpp"
#include "scenario/document/memo.hpp"
#include "scenario/run/ranks.hpp"
#include "scenario/run/run.hpp"
#include "scenario/run/run_inspector.hpp"

#include <optional>
#include <string>

namespace plimsoll {

/// What is known of a run before it is made; its policy is told by the name alone.
[[nodiscard]] RunResult describe_run(const Scenario& scenario, std::string policy);

/// Sets result.numbers_of. O(numbers of the platform).
void list_numbers(RunResult& result, const Platform& platform);

/// Executes result.plan, and measures. Precondition: check_plan() finds nothing wrong with it. `inspector` may be nullptr.
void execute_plan(RunResult& result, const Scenario& scenario, const Ranks& ranks,
                  RunInspector* inspector = nullptr);

/// Sets result.metrics.
void measure_run(RunResult& result, const Program& program, const StepSums& sums,
                 const Scenario& scenario, const Ranks& ranks);

/// `step_key` is step_key_of() of the step. `inspector` may be nullptr.
[[nodiscard]] RunResult run_step(const Scenario& scenario, const Node& policy,
                                 const BoundPolicy& bound, const Ranks& ranks,
                                 const RunOptions& options, TrainingStep step,
                                 const std::string& step_key, RunInspector* inspector = nullptr);

/// The makespan of the same pipeline without offload and recomputation, on unlimited memory and without a
/// limit that the parameters give; nothing where it has no plan. `step` is as it is played; the memories of
/// `roomy`, the platform of `ranks`, never fill.
[[nodiscard]] std::optional<Time> makespan_alone(const Workload& step, const Platform& roomy,
                                                 const BoundPolicy& policy, const Ranks& ranks,
                                                 Work work, RunInspector* inspector = nullptr);

/// By how much of the reference it is longer.
[[nodiscard]] double relative(Time time, Time reference);

}  // namespace plimsoll
