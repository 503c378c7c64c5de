/// The results of a sweep as an HTML report: how its runs ended, its best points, throughput
/// against memory with the Pareto front, and each metric over what was varied, as heat maps.
///
/// However large the sweep, the page is bounded: maps of at most 24 x 24 values, twelve a metric,
/// and some 2,000 points a chart. What is left out is said on the page; the table of the best
/// points and the front are of all.
#pragma once

#include "report/html/html_data.hpp"
#include "scenario/sweep/database.hpp"

#include <string>

namespace plimsoll {

/// Of a file of results, finished or not. Throws InputError for a file that is none. O(runs log
/// runs) a variable and metric; memory does not grow with the runs.
[[nodiscard]] HtmlPage html_sweep(const Database& results, std::string program);

}  // namespace plimsoll
