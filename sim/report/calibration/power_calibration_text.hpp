/// What a calibration of powers found, for people: coefficients as a platform states them, rows,
/// errors, and the caps of least energy.
#pragma once

#include "report/text/style.hpp"
#include "scenario/calibration/power_calibration.hpp"

#include <string>

namespace plimsoll {

[[nodiscard]] std::string power_calibration_text(const PowerCalibration& calibration,
                                                 const Style& style);

}  // namespace plimsoll
