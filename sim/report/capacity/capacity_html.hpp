/// A capacity report as a page: per workload the table, the configurations in two axes of the
/// front, what each change would move, and what is in the way.
#pragma once

#include "report/html/html_data.hpp"
#include "scenario/capacity/capacity.hpp"

#include <string>

namespace plimsoll {

[[nodiscard]] HtmlPage capacity_html(const CapacityReport& report, std::string program);

}  // namespace plimsoll
