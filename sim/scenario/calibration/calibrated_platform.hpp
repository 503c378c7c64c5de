/// The platform file that a calibration makes.
#pragma once

#include "scenario/calibration/calibration.hpp"
#include "scenario/calibration/cluster_calibration.hpp"
#include "scenario/calibration/power_calibration.hpp"

#include <filesystem>
#include <string>

namespace plimsoll {

/// A platform that extends the calibration's and has the fitted coefficients, of quality
/// `measured`, with what they were fitted to, the errors that are left, and those on the rows that
/// only judge. `folder` is that of the calibration, `target` where the file will lie: it says how
/// to name what it extends. Throws InputError where what it says cannot be read again: a processor
/// that a cluster makes is not one of the file.
[[nodiscard]] std::string calibrated_platform(const Calibration& calibration,
                                              const std::filesystem::path& folder,
                                              const std::filesystem::path& target);

/// The same of powers: `power` and `voltage_floor`.
[[nodiscard]] std::string calibrated_platform(const PowerCalibration& calibration,
                                              const std::filesystem::path& folder,
                                              const std::filesystem::path& target);

/// The same of whole runs: every coefficient at its path.
[[nodiscard]] std::string calibrated_platform(const ClusterCalibration& calibration,
                                              const std::filesystem::path& folder,
                                              const std::filesystem::path& target);

}  // namespace plimsoll
