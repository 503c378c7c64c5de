#include "policy/budget/claims_with_room.hpp"

#include "policy/budget/problem_with_capacity.hpp"
#include "policy/claims/claims.hpp"

#include <algorithm>

namespace plimsoll {

Claims claims_with_room(const Plan& plan, const Problem& problem, MemoryId memory) {
  return claims_of(plan, ProblemWithCapacity(problem, memory).problem());
}

std::optional<Bytes> claimed_peak(const Claims& claims, MemoryId memory) {
  const auto found = std::ranges::find(claims.peak, memory, &std::pair<MemoryId, Bytes>::first);
  if (found == claims.peak.end()) return std::nullopt;
  return found->second;
}

}  // namespace plimsoll
