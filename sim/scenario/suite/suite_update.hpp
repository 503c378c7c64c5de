/// Writes what the runs of a suite cost into its lock file.
#pragma once

#include "base/whole_file.hpp"
#include "scenario/suite/baseline.hpp"

#include <memory>
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
/// is recorded of runs that are not in `runs` is removed.
///
/// Everything is written beside the files that it replaces, and commit() moves it into place: the
/// executions before the lock file, so that an interrupted update leaves the old lock file. Without
/// commit(), nothing changes and nothing is left behind.
class BaselineUpdate {
 public:
  /// Throws InputError where a file cannot be written.
  BaselineUpdate(const std::filesystem::path& lock, const Baseline& baseline,
                 const std::vector<RunToRecord>& runs);
  ~BaselineUpdate();
  BaselineUpdate(const BaselineUpdate&) = delete;
  BaselineUpdate& operator=(const BaselineUpdate&) = delete;

  /// What changes, in words, a sentence each: "peak of hbm of vgg19-offload +3.1 % (9.2 GiB, was
  /// 8.92 GiB), policy offload/greedy".
  [[nodiscard]] const std::vector<std::string>& changes() const { return changes_; }

  /// To be called once. Throws InputError.
  void commit();

 private:
  void prepare(const std::filesystem::path& path, std::string_view text);
  void prepare_executions(const Baseline& baseline, const std::vector<RunToRecord>& runs);
  void find_gone(const Baseline& baseline, const std::vector<RunToRecord>& runs);

  const std::filesystem::path lock_;
  std::vector<std::string> changes_;
  std::vector<std::unique_ptr<WholeFile>> files_;  ///< the lock file is the last
  std::vector<std::filesystem::path> gone_;        ///< executions
};

}  // namespace plimsoll
