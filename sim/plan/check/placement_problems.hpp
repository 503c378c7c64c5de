/// Whether the places that a plan gives can be: in an arena with offsets, in whole units, within it.
///
/// That no two overlap that are there at once: plan/check/placement_overlaps.hpp.
#pragma once

#include "plan/core/plan.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace plimsoll {

/// At most `most`, one sentence each. Precondition: check_ranges() found nothing, and lanes are of
/// the kind that their steps need. O(buffers + steps).
[[nodiscard]] std::vector<std::string> placement_problems(const Plan& plan,
                                                          const Workload& workload,
                                                          const Platform& platform,
                                                          std::size_t most);

}  // namespace plimsoll
