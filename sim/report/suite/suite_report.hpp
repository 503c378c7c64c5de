/// Checked suites as text for people: a line for each scenario, then what does not hold, by how
/// much, and where the execution begins to differ from the recorded one.
#pragma once

#include "report/text/style.hpp"
#include "scenario/suite/suite_check.hpp"

#include <string>

namespace plimsoll {

/// UTF-8, at most kReportWidth wide, the same bytes for the same runs. O(runs).
[[nodiscard]] std::string suite_report(const CheckedSuite& suite, const Style& style);

}  // namespace plimsoll
