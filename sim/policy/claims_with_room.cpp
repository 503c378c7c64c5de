#include "policy/claims_with_room.hpp"

#include "base/dense_id.hpp"
#include "policy/claims.hpp"

#include <algorithm>

namespace plimsoll {

Claims claims_with_room(const Plan& plan, const Problem& problem, MemoryId memory) {
  Platform roomy = problem.platform;
  roomy.memories[index(memory)].capacity = Bytes::unlimited();
  return claims_of(plan, {problem.workload, problem.chain, roomy, problem.topology});
}

std::optional<Bytes> claimed_peak(const Claims& claims, MemoryId memory) {
  const auto found = std::ranges::find(claims.peak, memory, &std::pair<MemoryId, Bytes>::first);
  if (found == claims.peak.end()) return std::nullopt;
  return found->second;
}

}  // namespace plimsoll
