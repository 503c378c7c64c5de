/// A capacity report for the person who decides: per workload a table of what can carry it and what
/// that costs, who is best at what, what holds each platform back, and what all of it rests on.
#pragma once

#include "report/text/style.hpp"
#include "scenario/capacity/capacity.hpp"

#include <string>

namespace plimsoll {

/// UTF-8, at most kReportWidth wide, the same bytes for the same report.
[[nodiscard]] std::string capacity_text(const CapacityReport& report, const Style& style);

}  // namespace plimsoll
