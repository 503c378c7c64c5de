/// What a plan cannot tell of itself, its execution does.
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

/// What `plan` claims of itself (policy/claims/claims.hpp); where that is no makespan, what the judge saw.
void claim_or_judge(Plan& plan, const Problem& problem, MemoryId memory);

}  // namespace plimsoll
