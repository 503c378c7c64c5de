/// What a plan would use of a memory if that memory were unlimited.
#pragma once

#include "policy/interface/policy.hpp"

#include <optional>

namespace plimsoll {

/// claims_of() `plan` where nothing limits `memory`: no step waits for room there, no arena breaks
/// up. Nothing is claimed where a link makes claims uncertain. O(steps log steps).
[[nodiscard]] Claims claims_with_room(const Plan& plan, const Problem& problem, MemoryId memory);

/// The peak of `memory` among `claims`; nothing where none is claimed.
[[nodiscard]] std::optional<Bytes> claimed_peak(const Claims& claims, MemoryId memory);

}  // namespace plimsoll
