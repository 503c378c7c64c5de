/// The lock file of a regression suite: what its runs cost when somebody last agreed to it. It is
/// meant for code review: a metric a line, exact counts, a stable order.
///
///   lock: 1
///   runs:
///     - scenario: two-stages
///       policy: "offload/eager (distance: 2)"
///       status: ok
///       plan: "5f3ac01b2d9e7784"
///       execution: "30c1b7a9025de6f8"
///       values:
///         makespan: 45000000000 ps
///         peak_memory.sram: 11534336 B
///
/// `plan` and `execution` are digests: of the plan, and of the text of scenario/
/// recorded_execution.hpp that FILE.executions/ has beside FILE.lock, where the execution is
/// recorded. `values` are those of scenario/run/metric_values.hpp.
#pragma once

#include "scenario/run/metric_values.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

struct RecordedValue {
  MetricValue value;
  Location where;
};

/// What is recorded of the run of one policy of one scenario; the two texts name it.
struct RecordedRun {
  Location where;
  std::string scenario, policy;  ///< the policy with its parameters, as label_of() has it
  std::string status;
  std::string plan;       ///< empty where no plan was found
  std::string execution;  ///< empty where it is not recorded
  std::vector<RecordedValue> values;

  [[nodiscard]] bool is_of(const RecordedRun& other) const {
    return scenario == other.scenario && policy == other.policy;
  }
};

struct Baseline {
  std::vector<RecordedRun> runs;  ///< each once

  [[nodiscard]] const RecordedRun* find(const RecordedRun& like) const;
};

/// Throws InputError with all that is wrong.
[[nodiscard]] Baseline read_baseline(const Node& document);

/// What read_baseline() reads; the same bytes for the same runs.
[[nodiscard]] std::string to_text(const Baseline& baseline);

/// The folder beside the lock file in which executions are recorded.
[[nodiscard]] std::filesystem::path executions_folder(const std::filesystem::path& lock);

/// Where that of a run is, in this folder. The name keeps what
/// may stand in one, and ends in a digest of what it was.
[[nodiscard]] std::filesystem::path execution_path(const std::filesystem::path& lock,
                                                   const RecordedRun& run);

}  // namespace plimsoll
