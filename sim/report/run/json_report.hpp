/// Results as JSON: an array with one object a run, in the order of the runs.
///
/// Keys are snake_case with the unit as suffix. A value that does not apply is absent: everything
/// measured where a plan was `infeasible`; makespan, period, throughput, overhead, energy, bubbles
/// and busy shares of links where the run did not end well; the capacity of an unlimited memory;
/// energy where no part of the platform has any. A value that is unknown is null. Times in seconds
/// and energies in joules are the nearest doubles to the exact integers. The same runs give the
/// same bytes, except `planning_s`.
#pragma once

#include "scenario/run/run.hpp"

#include <span>
#include <string>

namespace plimsoll {

/// O(runs x parts of the platform).
[[nodiscard]] std::string json_report(std::span<const RunResult> results);

}  // namespace plimsoll
