/// Where two executions of one scenario and policy begin to differ, and what that says about the
/// cause.
#pragma once

#include "scenario/suite/recorded_execution.hpp"

#include <string>

namespace plimsoll {

/// A few sentences for people, never none:
///
///   another plan    the steps of each stream and channel are compared one by one; of the first
///                   difference in each, the earliest counts. If steps take other times than
///                   before, that is reported as well: it may be why the planner decided otherwise
///   the same plan   the first step that takes another time, starts at another time, or allocates
///                   other bytes: the platform, the workload or the engine changed
///
/// O(steps log steps).
[[nodiscard]] std::string explain_difference(const RecordedExecution& was,
                                             const RecordedExecution& is);

}  // namespace plimsoll
