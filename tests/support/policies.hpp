/// Policies from text, planned and played, for tests.
#pragma once

#include "policy/policy.hpp"
#include "support/played.hpp"

#include <string>

namespace plimsoll::test {

inline BoundPolicy bound_policy(const std::string& policy) {
  Diagnostics diagnostics;
  auto bound = bind_policy(parse_document(policy, "policy"), diagnostics);
  diagnostics.throw_if_errors();
  return *bound;
}

inline Plan planned(const std::string& policy, const Workload& workload, const Platform& platform) {
  const Topology topology(platform);
  const ChainView view = chain_view(workload);
  return std::get<Plan>(bound_policy(policy).plan(Problem{workload, view, platform, topology}));
}

inline Played play_policy(const std::string& policy, const Workload& workload,
                          const Platform& platform) {
  return play(planned(policy, workload, platform), workload, platform);
}

/// What the plan claims is what was measured.
inline void require_claims_hold(const Played& it) {
  const Claims& claims = it.plan.claims;
  if (!claims.makespan) return;
  REQUIRE(it.execution.status == RunStatus::ok);
  REQUIRE(*claims.makespan == it.execution.makespan);
  if (claims.period) REQUIRE(*claims.period == it.execution.period);
  for (const auto& [memory, bytes] : claims.peak) {
    Bytes alive;
    for (const Bytes of_class : it.execution.memories[static_cast<std::size_t>(memory)].at_peak)
      alive += of_class;
    REQUIRE(bytes == alive);
  }
}

}  // namespace plimsoll::test
