/// Claims taken from an execution of the plan, for plans of which claims_of() can claim nothing.
#pragma once

#include "policy/interface/policy.hpp"

#include <span>

namespace plimsoll {

/// Where `plan` claims no makespan (copies share a link, an allocator breaks up) and the problem
/// has a judge that sees it end: claims the makespan and the peak of `memory` that the judge saw.
/// Whether it claims a makespan then. O(steps log steps).
bool claim_by_judge(Plan& plan, const Problem& problem, MemoryId memory);
/// The same with the peaks of several memories.
bool claim_by_judge(Plan& plan, const Problem& problem, std::span<const MemoryId> memories);

/// What `plan` claims of itself (policy/claims/claims.hpp); if that includes no makespan, what the
/// judge measured.
void claim_or_judge(Plan& plan, const Problem& problem, MemoryId memory);

}  // namespace plimsoll
