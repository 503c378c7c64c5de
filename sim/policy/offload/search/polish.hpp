/// Improves a schedule of offload by small changes.
#pragma once

#include "policy/offload/model/set_runs.hpp"

#include <cstddef>

namespace plimsoll {

/// Changes `run` as long as one of these makes it shorter in the model: a copy back up to
/// three places earlier or later, two copies out in the other order, one stage more or less to
/// move. Stops at `bound`, at a schedule that no change improves, or after playing `actions`
/// actions in all.
void polish(const OffloadModel& model, Timed& run, Time bound, std::size_t actions);

}  // namespace plimsoll
