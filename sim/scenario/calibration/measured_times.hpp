/// The times of measured steps, and of parts of them, on a processor.
#pragma once

#include "scenario/calibration/calibration_rows.hpp"

#include <vector>

namespace plimsoll {

/// Of the operators of a shape of a measurement, by id.
struct ShapeTimes {
  std::vector<Time> whole;
  std::vector<Time> additions;  ///< of these, by kernels that add gradients
};

/// Of all its shapes.
[[nodiscard]] std::int64_t parts_of(const Measurement& it);

/// On `processor` in the place of the set's; of parts of a step without waits for the host, and
/// layer by layer without launches, which are in the waits of the profiler.
/// O(operators). Throws InputError, at the measurement, where one has no time.
[[nodiscard]] std::vector<ShapeTimes> durations_on(const MeasurementSet& set, const Measurement& it,
                                                   const Processor& processor);

/// Of one of its parts, the mean over its shapes, each as often as it was; rounded down.
[[nodiscard]] Time mean_of(const Measurement& it, const MeasuredPart& part,
                           const std::vector<ShapeTimes>& durations);

[[nodiscard]] inline double in_picoseconds(Time time) {
  return static_cast<double>(time.count());
}

}  // namespace plimsoll
