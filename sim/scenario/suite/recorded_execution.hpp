/// An execution, step by step, as text that people can review and a later run can be compared with:
///
///   plan 5f3ac01b2d9e7784
///   0 +10000000000 cpu | s1.forward | +s1:4194304
///   10000000000 +5000000000 cpu | s2.forward | +s2:3145728
///   15000000000 +10000000000 cpu | s2.backward | +delta_2:2097152 +delta_1:1048576 -s2 -delta_2
///
/// A line is a step: its start and duration in ps, the stream or channel that it runs on, what it
/// is, the tensors that it allocates with their bytes, and those that are free from its end on (of
/// the last step, where a release waits for several). Lines are in the order of their starts, steps
/// that start together in issue order; steps that never started are left out.
///
/// The first line is a digest of the plan without its claims and bounds: two runs with the same one
/// played the same plan.
#pragma once

#include "scenario/run/run.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

/// Longer executions are not recorded.
inline constexpr std::size_t kMostRecordedSteps = 20'000;
/// Larger texts are not read.
inline constexpr std::size_t kMostRecordedBytes = std::size_t{16} << 20;

/// A tensor that a step allocates or frees.
struct RecordedTensor {
  bool is_freed = false;
  std::string name;
  std::int64_t bytes = 0;  ///< of an allocated one
};

struct PlayedStep {
  std::int64_t start = 0, duration = 0;  ///< ps
  std::string lane, what;
  std::vector<RecordedTensor> tensors;
};

struct RecordedExecution {
  std::string plan;  ///< the digest, 16 hexadecimal digits
  std::vector<PlayedStep> steps;
};

/// FNV-1a, 16 hexadecimal digits: not against malice, only to tell texts apart. O(bytes).
[[nodiscard]] std::string digest_of(std::string_view bytes);

/// The digest of the plan of a run that has one. O(plan).
[[nodiscard]] std::string plan_digest(const RunResult& result, const Platform& platform);

/// Nothing where the planner found no plan, or where the steps are too many. O(steps log steps).
[[nodiscard]] std::optional<RecordedExecution> record_execution(const RunResult& result,
                                                                const Platform& platform);

[[nodiscard]] std::string to_text(const RecordedExecution& execution);

/// Of a text of to_text(), 16 hexadecimal digits.
[[nodiscard]] std::string execution_digest(std::string_view text);

/// Nothing for a text that to_text() did not write.
[[nodiscard]] std::optional<RecordedExecution> parse_execution(std::string_view text);

}  // namespace plimsoll
