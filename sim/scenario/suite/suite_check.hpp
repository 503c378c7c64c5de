/// Runs a regression suite and holds every run to the bounds of its `expect` and to what is
/// recorded of it.
#pragma once

#include "base/work.hpp"
#include "scenario/suite/comparison.hpp"
#include "scenario/suite/suite.hpp"
#include "scenario/suite/suite_update.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plimsoll {

struct CheckOptions {
  unsigned jobs = 0;    ///< threads; 0: as many as the machine runs at once
  bool update = false;  ///< record what the runs cost, instead of holding them to the record
  std::int64_t limit_work = WorkMeter::kNoLimit;  ///< steps of work of the planning of each run
  /// Called with how many runs of the suite are done of how many, 0 included: on one thread.
  std::function<void(std::size_t done, std::size_t total)> progress = [](std::size_t, std::size_t) {
  };
};

/// What came out of one policy of one scenario.
struct CheckedRun {
  enum class Verdict : std::uint8_t { held, improved, failed, could_not_run };

  std::string scenario, policy;  ///< the policy with its parameters
  Location where;                ///< of the scenario in the suite
  std::vector<Finding> findings;
  std::size_t held = 0;     ///< bounds and recorded values
  std::string explanation;  ///< why it no longer costs what is recorded; may be empty
  bool is_another_plan = false;
  std::vector<Diagnostic> problems;  ///< why it could not be run
  Verdict verdict = Verdict::held;   ///< improved: by what is not to fail
};

struct CheckedSuite {
  std::string name;
  std::filesystem::path path;
  std::optional<std::filesystem::path> baseline;
  std::vector<CheckedRun> runs;  ///< in the order of the suite
  std::vector<Finding> stale;    ///< recorded runs that the suite no longer has
  std::vector<Diagnostic> warnings;
  bool is_updated = false;                 ///< there is an update; never where a run could not run
  std::vector<std::string> changes;        ///< of an update, in words
  std::shared_ptr<BaselineUpdate> update;  ///< written, and not in its place; see record()

  [[nodiscard]] std::size_t count(CheckedRun::Verdict verdict) const;
  [[nodiscard]] bool failed() const {
    return count(CheckedRun::Verdict::failed) > 0 || !stale.empty();
  }
  [[nodiscard]] bool could_not_run() const { return count(CheckedRun::Verdict::could_not_run) > 0; }
};

/// An update is left to record(), so that what else is to be written can be before.
///
/// The same for any number of threads. A run that throws is one that could not run, and not the end
/// of the suite. Throws InputError where the suite or its lock file cannot be read or written. Of
/// runs only what is said here is kept, so that memory is flat.
[[nodiscard]] CheckedSuite check_suite(const std::filesystem::path& suite,
                                       const CheckOptions& options);

/// Brings the updates of suites to their places. Throws InputError where two of them share a lock
/// file, before anything is, or where a file cannot be written.
void record(std::span<const CheckedSuite> suites);

}  // namespace plimsoll
