/// The summary of a sweep in the terminal: how the runs ended, and the best point by each metric.
#pragma once

#include "report/text/style.hpp"
#include "scenario/sweep/database.hpp"

#include <string>

namespace plimsoll {

/// The summary of a results file, finished or not. Of equally good points the first is reported.
/// UTF-8, at most kReportWidth wide. O(runs log runs).
[[nodiscard]] std::string sweep_report(const Database& results, const Style& style);

}  // namespace plimsoll
