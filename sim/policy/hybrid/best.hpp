/// hybrid/best, as hybrid/graph asks it.
#pragma once

#include "policy/offload/search/planner.hpp"

namespace plimsoll {

/// What hybrid/best answers with `parameters` and its defaults. Plans that are not faster than
/// `useful` are of no use: who cannot be faster need not be asked.
[[nodiscard]] Planned fastest_of_all(const Problem& problem,
                                     const OffloadPlannerParameters& parameters, Time useful);

}  // namespace plimsoll
