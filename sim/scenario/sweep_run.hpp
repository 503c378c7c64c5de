/// The runs of a sweep.
#pragma once

#include "scenario/memo.hpp"
#include "scenario/run.hpp"
#include "scenario/sweep.hpp"

#include <memory>
#include <string>
#include <vector>

namespace plimsoll {

/// What one run leaves behind, whatever became of it.
struct SweepRow {
  std::string status;              ///< that of the run; "error" where there was none
  std::string message;             ///< why it is not "ok", in one line
  std::vector<std::string> texts;  ///< by variable of the sweep; empty where nothing was derived
  std::vector<SweepValue> values;  ///< by variable
  RunResult run;                   ///< without step, plan and execution
};

/// Runs points of one sweep; what they have in common is read and built once.
class SweepRuns {
 public:
  explicit SweepRuns(const Sweep& sweep) : sweep_(sweep) {}

  /// Any failure is a row. Safe for several threads, and the same whatever ran before, but for
  /// RunResult::planning_s and execution_s.
  [[nodiscard]] SweepRow run(std::size_t point) const;

 private:
  const Sweep& sweep_;
  const std::unique_ptr<ScenarioMemo> memo_ = std::make_unique<ScenarioMemo>();
};

}  // namespace plimsoll
