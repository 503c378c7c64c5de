/// The runs of a scenario side by side: what both the text and the page show, column by column.
/// Internal to this floor.
#pragma once

#include "scenario/document/scenario.hpp"
#include "scenario/run/run.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plimsoll {

struct ComparedCell {
  std::string text = "-";
  std::optional<double> fill;  ///< of what plans may use of the memory, 0 to 1
  bool is_best = false;        ///< least cost of the runs that ended well, where they differ
};

struct ComparedColumn {
  /// What it compares; of a memory, its name.
  enum class What : std::uint8_t {
    peak,          ///< of a memory in which operators run
    stored,        ///< the peak of a memory that only stores
    fullest_name,  ///< which memory is fullest, where there are too many for a column each
    fullest_peak,
    step_time,
    period,  ///< where some run's is not its step time
    overhead,
    throughput,
    energy_per_sample,
    gap,         ///< of the step time, or of the period, above its lower bound
    recomputed,  ///< forward operators run again, as a share of all forwards of a step
  };
  What what = What::peak;
  std::string memory;
  std::vector<ComparedCell> cells;  ///< by run
};

/// Columns without any value are left out, except step time, overhead and throughput.
/// O(runs x parts of the platform).
[[nodiscard]] std::vector<ComparedColumn> compare_runs(const Scenario& scenario,
                                                       std::span<const RunResult> results);

/// What a run is called among the others: its policy, with those of its parameters that not all
/// runs have alike: "remat/rotor (budget: 6 GiB)". O(length of all parameters).
[[nodiscard]] std::vector<std::string> short_labels(std::span<const RunResult> results);

/// The memory that a run fills most; nullptr where nothing ran.
[[nodiscard]] const MemoryMetrics* fullest_memory(const RunResult& result);

/// Whether a run ended well.
[[nodiscard]] bool is_ok(const RunResult& result);

}  // namespace plimsoll
