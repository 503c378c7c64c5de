/// hybrid/best, as hybrid/graph asks it.
#pragma once

#include "policy/offload/search/planner.hpp"

namespace plimsoll {

/// What hybrid/best answers with `parameters` and its defaults.
[[nodiscard]] Planned fastest_of_all(const Problem& problem,
                                     const OffloadPlannerParameters& parameters);

}  // namespace plimsoll
