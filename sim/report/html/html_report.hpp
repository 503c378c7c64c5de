/// Results as an HTML report: the runs side by side, then each over time, then what the platform's
/// numbers rest on.
#pragma once

#include "report/html/html_data.hpp"

#include <span>
#include <string>

namespace plimsoll {

/// A scenario with what came out of it.
struct HtmlOutcome {
  const Scenario* scenario = nullptr;
  std::span<const RunResult> results;
};

/// Refers to the outcomes' scenarios and results. O(runs x parts of the platform).
[[nodiscard]] HtmlPage html_report(std::span<const HtmlOutcome> outcomes, std::string program);

}  // namespace plimsoll
