/// hybrid/pofo, as hybrid/best asks it.
#pragma once

#include "policy/offload/search/planner.hpp"

namespace plimsoll {

/// What hybrid/pofo answers with `improve`, where only plans faster than `useful` are of use and
/// whoever asks has those of remat/rotor and offload/dynamic. Infeasible where it has none.
[[nodiscard]] Planned pofo_faster_than(const Problem& problem,
                                       const OffloadPlannerParameters& parameters, Time useful);

}  // namespace plimsoll
