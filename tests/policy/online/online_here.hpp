/// Programs run under online policies, for tests.
#pragma once

#include "plan/file/plan_file.hpp"
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

/// The same steps at the same times, and the same end.
inline void require_same(const Execution& a, const Execution& b) {
  REQUIRE(a.status == b.status);
  REQUIRE(a.start == b.start);
  REQUIRE(a.end == b.end);
  for (std::size_t m = 0; m < a.memories.size(); ++m)
    REQUIRE(a.memories[m].peak == b.memories[m].peak);
  REQUIRE(a.oom.has_value() == b.oom.has_value());
  if (a.oom) REQUIRE(a.oom->step == b.oom->step);
}

/// Within the budget; from its file it plays the same.
inline OnlinePlayed run_online(const std::string& policy, std::int64_t budget,
                               const Workload& workload, const Platform& platform) {
  const std::string within =
      with_parameters(policy, fmt::format(", budget: {} B, recompute_limit: 1000", budget));
  CAPTURE(within);
  const OnlinePlayed it = play_online(within, workload, platform);
  REQUIRE(it.played.peak(MemoryId{0}) <= budget);
  const std::string file = to_bytes(it.played.plan, PlanForm::json, workload, platform);
  const Played again =
      play(parse_plan(file, PlanForm::json, "plan", workload, platform), workload, platform);
  require_same(it.played.execution, again.execution);
  REQUIRE(again.plan.claims.eviction == it.played.plan.claims.eviction);
  return it;
}

}  // namespace plimsoll::test
