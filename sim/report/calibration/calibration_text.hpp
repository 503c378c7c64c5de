/// A calibration for people: coefficients before and after, every row with its errors, and which
/// rows were fitted and which only judge.
#pragma once

#include "report/text/style.hpp"
#include "scenario/calibration/calibration.hpp"

#include <string>

namespace plimsoll {

/// UTF-8, at most kReportWidth wide, the same bytes for the same calibration.
[[nodiscard]] std::string calibration_text(const Calibration& calibration, const Style& style);

}  // namespace plimsoll
