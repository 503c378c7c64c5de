/// The energy of a plan with a known makespan, if only processors draw any.
///
///   E = sum over processors of  idle * makespan + (active - idle) * busy + energy of its operators
///
/// divided by the regulator's efficiency. Busy times are the operators' own, so nothing needs to be
/// played. Memories and links at work overlap in ways that a sum does not show: where one of them
/// has a power or an energy, or a processor has several streams, nothing is claimed.
#pragma once

#include "policy/interface/policy.hpp"

#include <optional>

namespace plimsoll {

/// O(steps).
[[nodiscard]] std::optional<Energy> energy_claim(const Plan& plan, const Problem& problem,
                                                 Time makespan);

}  // namespace plimsoll
