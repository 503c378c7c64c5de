/// The coefficients of a processor, fitted to measured times after the waits for its host are
/// subtracted.
#pragma once

#include "scenario/calibration/calibration.hpp"
#include "scenario/calibration/calibration_rows.hpp"

#include <vector>

namespace plimsoll {

/// All but host_overhead, by the least squares of scenario/calibration/calibration.hpp. `waits`: by
/// measurement, what a step waited for its host. A slowdown of another device is the best of a grid
/// of 25 thousandths, refined to one. O(rounds * (unknowns^2 * parts + unknowns^5) + operators),
/// and some seventy times that with another device. Throws InputError where the two devices share
/// no kind of operators, a slowdown a tenth from the best fits as well, or the best is not between
/// 1 / 2 and 2.
[[nodiscard]] Coefficients fit_processor(const MeasurementSet& set, const std::vector<Time>& waits);

}  // namespace plimsoll
