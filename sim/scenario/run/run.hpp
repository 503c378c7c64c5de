/// Runs a scenario: plans, checks, executes and measures every policy.
#pragma once

#include "base/work.hpp"
#include "execution/metrics.hpp"
#include "platform/core/energy_band.hpp"
#include "scenario/document/scenario.hpp"
#include "scenario/run/mesh_of_run.hpp"
#include "scenario/run/whole_training.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

struct MeshRemedies;

/// How many there are.
inline constexpr std::size_t kQualities = static_cast<std::size_t>(Quality::estimate) + 1;

/// Everything about one policy's run. The plan and the execution stay, for traces and reports.
struct RunResult {
  std::string scenario, platform, workload, policy;
  std::string policy_parameters;          ///< as written, without the name: "distance: 2"
  std::vector<std::string> memory_names;  ///< by MemoryId, switches included
  std::optional<MeshOfRun> mesh;          ///< of the ranks that a plan was made for
  Metrics metrics;
  std::optional<Infeasible> infeasible;  ///< the planner found no plan: no metrics
  std::optional<double> overhead;        ///< makespan / that of the reference - 1
  std::optional<WholeTraining>
      training;  ///< where the scenario has `training`, and the run ended well
  Claims claims;
  Bounds bounds;
  Bytes saved_bytes;
  Quality worst_quality = Quality::estimate;
  /// Paths of the platform's numbers, by quality, for reports; those without a source are estimates.
  std::array<std::vector<std::string>, kQualities> numbers_of{};
  EnergyBand energy_band;
  /// Where and how the times of a profile were recorded, which are the same on every platform.
  std::optional<std::string> recorded;
  double planning_s = 0;   ///< wall time of planning: the only such field
  double execution_s = 0;  ///< wall time of execution; not part of the JSON

  std::optional<OutOfMemory> oom;
  /// What runs on the same mesh instead, where somebody has tried (mesh_remedies.hpp).
  std::shared_ptr<const MeshRemedies> mesh_remedies;
  std::vector<std::string> cycle;
  /// What was made of the policy's parameters, and what the policy leaves out; a sentence each.
  std::vector<std::string> notes;

  Workload workload_as_run;  ///< with the microbatches and the split of this policy
  /// What the policy was told to keep to, of the memories that its plan works in.
  std::vector<std::pair<MemoryId, Bytes>> budgets;
  Plan plan;
  bool from_file = false;  ///< a file gave the plan: nobody has proven what it says of itself
  Execution execution;
};

/// "ok", "oom", "deadlock" or "infeasible".
[[nodiscard]] const char* status_text(const RunResult& result);

/// What the policy was told to keep to of a memory.
[[nodiscard]] std::optional<Bytes> budget_of(const RunResult& result, MemoryId memory);

/// A value as flow YAML, without quotes: "{name: offload/eager, distance: 2}".
[[nodiscard]] std::string as_written(const Node& node);

/// "offload/eager (distance: 2)".
[[nodiscard]] std::string label_of(const RunResult& result);

/// The name of a policy as it is written, alone or with parameters; empty where there is none.
[[nodiscard]] std::string policy_name(const Node& policy);

/// Whether a policy as it is written decides while it runs (PolicyInfo::is_online).
[[nodiscard]] bool is_online(const Node& policy);

/// Its parameters, as RunResult::policy_parameters has them.
[[nodiscard]] std::string parameters_as_written(const Node& policy);

/// What is known of a run before it is made: whose it is, and on what.
[[nodiscard]] RunResult run_to_make(const Scenario& scenario, const Node& policy);

struct RunOptions {
  ScenarioMemo* memo = nullptr;  ///< that with which the scenario was read
  Work work = Work();            ///< where planners count their steps
  bool compares = true;          ///< with the reference: fills RunResult::overhead
  /// Whether nothing is shown of single steps, but of what they add up to. Then microbatches that repeat what those
  /// before did need not be played, where that is exact (scenario/run/long_run.hpp); the result's plan has
  /// the steps of those that were. Rounds of a collective are one step.
  bool sums_only = false;
  bool is_reported = true;  ///< fills RunResult::numbers_of
};

/// The run of one policy of the scenario. Throws InputError for parameters that do not fit, and
/// where planning reaches the limit of its work.
[[nodiscard]] RunResult run_policy(const Scenario& scenario, const Node& policy,
                                   const RunOptions& options);
[[nodiscard]] RunResult run_policy(const Scenario& scenario, const Node& policy,
                                   ScenarioMemo* memo = nullptr);

/// The run of a given plan, for the workload in microbatches as the plan has them.
[[nodiscard]] RunResult run_plan_file(const Scenario& scenario, const std::filesystem::path& plan);

/// Every policy of the scenario, in order.
[[nodiscard]] std::vector<RunResult> run(const Scenario& scenario);

}  // namespace plimsoll
