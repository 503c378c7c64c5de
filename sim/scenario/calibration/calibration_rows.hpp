/// The measurements of a calibration together with the operators that they measure.
#pragma once

#include "platform/core/platform.hpp"
#include "scenario/calibration/calibration_file.hpp"
#include "workload/core/workload.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

enum class Half : std::uint8_t { forward, backward };

/// A measured time, and the operators that took it.
struct MeasuredPart {
  std::string name;   ///< "forward convolution"; empty: the whole step
  std::string layer;  ///< empty: of all layers
  Time time;
  /// By shape, each as often as it ran; those of the first are not empty.
  std::vector<std::vector<OperatorId>> operators;
  /// By shape, those that ran before one of `operators` and whose additions of gradients are in
  /// this time: a profiler of layers sees none of them, and times them with the layer that follows.
  std::vector<std::vector<OperatorId>> added_before = {};
  /// For the host, in this half, and how often: at each call of the first shape's operators, of
  /// which a backward of two products makes two.
  std::optional<Half> waits = std::nullopt;
  std::size_t waiting = 0;

  /// Whether additions are in the time of the operators whose gradients they add.
  [[nodiscard]] bool has_own_additions() const { return !waits; }
};

/// Of all steps that were measured, `parts` have these operators.
struct MeasuredShape {
  std::int64_t parts = 1;
  Workload workload;
  std::vector<OperatorId> runs;  ///< of a step, in order
};

struct Measurement {
  const MeasurementSpec* spec = nullptr;
  bool is_test = false;
  std::vector<MeasuredShape> shapes;  ///< one, but for a mix
  std::vector<MeasuredPart> parts;
};

/// All of a calibration, with the platform as it is.
struct MeasurementSet {
  Platform platform;
  ProcessorId processor{};
  Processor start;  ///< where the fit begins: `processor`, or that with numbers of another platform
  std::vector<Measurement> measurements;    ///< of `fit`, then of `test`
  std::vector<std::filesystem::path> read;  ///< files that were read beside the calibration's
};

/// Reads and builds what `spec` names, looked up next to `folder`; points into `spec`. A part of a
/// profile that the workload has no operators for is left out. Throws InputError with all that is
/// wrong.
[[nodiscard]] MeasurementSet read_measurements(const CalibrationSpec& spec,
                                               const std::filesystem::path& folder);

}  // namespace plimsoll
