/// The host's time per operator, fitted to steps that wait for the host.
#pragma once

#include "scenario/calibration/calibration_rows.hpp"

#include <optional>
#include <vector>

namespace plimsoll {

/// What a step waits for its host on `processor`; zero of parts of steps, whose times hold no such
/// wait. O(operators).
[[nodiscard]] Time wait_for_host(const MeasurementSet& set, const Measurement& it,
                                 const Processor& processor);

/// By measurement: what a step that is fitted waits for its host. Zero of parts of steps, whose
/// times hold no such wait, and of what only judges. O(operators).
[[nodiscard]] std::vector<Time> waits_for_host(const MeasurementSet& set,
                                               const Processor& processor);

/// The least multiple of 1 ns with which the mean of log(ours / t) over the host-bound steps is not
/// below 0; nothing where there are none. `processor` has all else fitted. O(log(it / 1 ns) *
/// operators). Throws InputError where a step is no longer than its operators alone, or longer than
/// with 100 s for each.
[[nodiscard]] std::optional<Time> fit_host_overhead(const MeasurementSet& set,
                                                    const Processor& processor);

}  // namespace plimsoll
