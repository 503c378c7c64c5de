/// The runs of a sweep.
#pragma once

#include "base/work.hpp"
#include "scenario/document/memo.hpp"
#include "scenario/run/run.hpp"
#include "scenario/sweep/sweep.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace plimsoll {

/// What a search at a point came to.
struct SweepFound {
  bool is_found = false;
  std::size_t tried = 0;
  std::size_t candidates = 0;
  bool is_proven = false;
  bool is_cut_short = false;  ///< more candidates to be scanned than are tried
  std::string holes;          ///< "112 to 120, 136": of candidates before it, in their order
};

/// What one run leaves behind, whatever became of it.
struct SweepRow {
  /// That of the run; "error" where there was none, "no-split" where the sweep varies a mesh and the
  /// step cannot be divided so, "unmet" where nothing that is searched holds. "no-room" where no plan
  /// fits, and "slower" where others are surely faster: neither is run.
  std::string status;
  std::string message;             ///< why it is not "ok", in one line
  std::vector<std::string> texts;  ///< by variable of the sweep; fewer where not all are known
  std::vector<SweepValue> values;  ///< by variable
  bool was_run = false;
  RunResult run;  ///< without step, plan and execution; where it was not made: whose it would be
  std::optional<SweepFound> found;
};

/// What is known of a point without its run.
struct SweepProspect {
  /// Of a point that is not to be run: "error", "no-split", "no-room".
  std::optional<SweepRow> row;
  double throughput = 0;  ///< samples per second, at most; infinite where nothing is known
};

/// Runs points of one sweep; what they have in common is read and built once.
class SweepRuns {
 public:
  /// Planning that takes more than `limit_work` steps of work is refused, in every run by itself.
  explicit SweepRuns(const Sweep& sweep, std::int64_t limit_work = WorkMeter::kNoLimit)
      : sweep_(sweep), limit_work_(limit_work) {}

  /// Any failure is a row. Thread-safe. The row does not depend on what ran before, except for
  /// RunResult::planning_s and execution_s.
  [[nodiscard]] SweepRow run(std::size_t point) const;

  /// Of a sweep for the fastest. Likewise.
  [[nodiscard]] SweepProspect prospect(std::size_t point) const;
  /// Of a point of at most `throughput` where the last of the fastest reaches `reached`, both in samples
  /// per second.
  [[nodiscard]] SweepRow slower(std::size_t point, double throughput, double reached) const;

 private:
  using MakeRow = std::function<void(SweepPoint, SweepRow&)>;
  [[nodiscard]] SweepRow row_of(std::size_t number, const MakeRow& make) const;
  [[nodiscard]] RunResult run_point(SweepPoint point, RunResult& known) const;
  void run_at(SweepPoint point, SweepRow& row) const;
  [[nodiscard]] bool has_online_policy(const SweepPoint& point) const;
  void search_at(const SweepPoint& point, SweepRow& row) const;

  const Sweep& sweep_;
  const std::int64_t limit_work_;
  const std::unique_ptr<ScenarioMemo> memo_ = std::make_unique<ScenarioMemo>();
};

/// Tries to build the workloads of points spread over the grid, until one can be built. Throws
/// InputError with what is wrong at the first of them where none can. O(1) where the first can, else
/// at most some thousand scenarios and a hundred workloads.
void check_workloads(const Sweep& sweep);

}  // namespace plimsoll
