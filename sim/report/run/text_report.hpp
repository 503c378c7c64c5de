/// Results as text for people: what fits, what it costs, where the peak is and what is alive there,
/// where time went, what failed and what to try.
#pragma once

#include "report/text/style.hpp"
#include "scenario/document/scenario.hpp"
#include "scenario/run/run.hpp"

#include <span>
#include <string>

namespace plimsoll {

struct TextOptions {
  Style style;
  bool verbose = false;  ///< every run in full, where several are compared
};

/// The report of one scenario's runs: several are compared side by side, a single one is reported
/// in full. UTF-8, at most kReportWidth wide, the same bytes for the same runs (no wall clock).
/// O(runs x parts of the platform).
[[nodiscard]] std::string text_report(const Scenario& scenario, std::span<const RunResult> results,
                                      const TextOptions& options);

}  // namespace plimsoll
