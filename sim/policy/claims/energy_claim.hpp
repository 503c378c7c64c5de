/// The energy of a plan with a known makespan, if only processors draw any.
///
///   E = sum over processors of  idle * makespan + sum over its operators of (power - idle) * time
///                               + energy of its operators - (idle - sleep) * slept
///
/// divided by the regulator's efficiency. Busy times are the operators' own, so nothing needs to be
/// played; how long a processor sleeps follows from the gaps of the timeline. Memories and links at work overlap in ways that a sum does not show: where one of them
/// has a power or an energy, or a processor has several streams, nothing is claimed.
#pragma once

#include "policy/claims/timeline.hpp"

#include <optional>

namespace plimsoll {

/// O(steps); O(steps log steps) where a processor sleeps.
[[nodiscard]] std::optional<Energy> energy_claim(const Plan& plan, const Problem& problem,
                                                 const Timeline& timeline, Time makespan);

}  // namespace plimsoll
