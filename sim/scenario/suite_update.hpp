/// Writes what the runs of a suite cost into its lock file.
#pragma once

#include "scenario/baseline.hpp"

#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

struct RunToRecord {
  RecordedRun run;
  Tolerances tolerance;
  std::optional<std::string> execution;  ///< the text of run.execution, where it is to be recorded
};

/// Replaces what changed and keeps what did not: values within the tolerance, the order of runs (a
/// new one comes after the one before it in the suite), and the file itself where nothing did. What
/// is recorded of runs that are not in `runs` is removed. Executions are written before the lock
/// file, each file whole or not at all: whoever stops this in the middle has the old lock file.
///
/// Returns what changed, in words, a sentence each: "peak of hbm of vgg19-offload +3.1 % (9.2 GiB,
/// was 8.92 GiB), policy offload/greedy". Throws InputError where a file cannot be written.
[[nodiscard]] std::vector<std::string> update_baseline(const std::filesystem::path& lock,
                                                       const Baseline& baseline,
                                                       const std::vector<RunToRecord>& runs);

}  // namespace plimsoll
