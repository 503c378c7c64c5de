/// The runs of a scenario side by side. Internal to this floor.
#pragma once

#include "report/html/html_data.hpp"

#include <span>

namespace plimsoll {

/// Peaks, times, throughput, overhead, energy and the gap to the bound, one row a run, the best of
/// each column marked where the runs that ended well differ; those that did not, with the reason.
/// O(runs x parts of the platform).
[[nodiscard]] HtmlTable html_comparison(const Scenario& scenario,
                                        std::span<const RunResult> results);

}  // namespace plimsoll
