/// What a calibration of whole runs found, for people: coefficients with their bounds, errors by
/// table, and the rows that are furthest off.
#pragma once

#include "report/text/style.hpp"
#include "scenario/calibration/cluster_calibration.hpp"

#include <string>

namespace plimsoll {

[[nodiscard]] std::string cluster_calibration_text(const ClusterCalibration& calibration,
                                                   const Style& style);

}  // namespace plimsoll
