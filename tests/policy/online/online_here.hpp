/// Programs run under online policies, for tests.
#pragma once

#include "policy/online/dtr_policy.hpp"
#include "policy/online/run/online_plan.hpp"
#include "policy/remat/graph/graph_here.hpp"
#include "support/policies.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <catch2/catch.hpp>

namespace plimsoll::test {

inline constexpr std::int64_t kManyReruns = 1'000'000;

/// What an online run ended in.
struct OnlinePlayed {
  Played played;
  bool is_ok = false;
  [[nodiscard]] const EvictionClaims& eviction() const { return *played.plan.claims.eviction; }
  [[nodiscard]] std::size_t reruns(const Workload& workload) const {
    return played.plan.steps.size() - workload.operators.size();
  }
};

/// Plays what the policy did. A run that ends well has claims, which hold; one that does not is out
/// of memory at an operator.
inline OnlinePlayed play_online(const std::string& policy, const Workload& workload,
                                const Platform& platform) {
  OnlinePlayed it{play_policy(policy, workload, platform), false};
  REQUIRE(it.played.plan.claims.eviction);
  it.is_ok = it.played.execution.status == RunStatus::ok;
  if (it.is_ok) {
    REQUIRE(it.played.plan.claims.makespan);
    require_claims_hold(it.played);
    REQUIRE_FALSE(it.played.execution.waited_for_memory);
  } else {
    REQUIRE(it.played.execution.status == RunStatus::oom);
    REQUIRE_FALSE(it.played.plan.claims.makespan);
  }
  return it;
}

}  // namespace plimsoll::test
