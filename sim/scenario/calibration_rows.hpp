/// The measurements of a calibration beside the operators that they are of.
#pragma once

#include "platform/platform.hpp"
#include "scenario/calibration_file.hpp"
#include "workload/workload.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace plimsoll {

/// A measured time, and the operators of the workload that took it.
struct MeasuredPart {
  std::string name;  ///< "forward convolution"; empty: the whole step
  Time time;
  std::vector<OperatorId> operators;  ///< not empty
};

struct Measurement {
  const MeasurementSpec* spec = nullptr;
  bool is_test = false;
  Workload workload;
  std::vector<MeasuredPart> parts;
};

/// All of a calibration, with the platform as it is.
struct MeasurementSet {
  Platform platform;
  ProcessorId processor{};
  std::vector<Measurement> measurements;    ///< of `fit`, then of `test`
  std::vector<std::filesystem::path> read;  ///< files that were read beside the calibration's
};

/// Reads and builds what `spec` names, looked up next to `folder`; points into `spec`. A part of a
/// profile that the workload has no operators for is left out. Throws InputError with all that is
/// wrong.
[[nodiscard]] MeasurementSet read_measurements(const CalibrationSpec& spec,
                                               const std::filesystem::path& folder);

}  // namespace plimsoll
