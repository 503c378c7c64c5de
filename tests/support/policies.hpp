/// Policies from text, planned and played, for tests.
#pragma once

#include "execution/judge.hpp"
#include "policy/interface/policy.hpp"
#include "support/played.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace plimsoll::test {

inline BoundPolicy bound_policy(const std::string& policy) {
  Diagnostics diagnostics;
  auto bound = bind_policy(parse_document(policy, "policy"), diagnostics);
  diagnostics.throw_if_errors();
  return *bound;
}

[[nodiscard]] inline bool takes(const PolicyInfo& policy, const std::string& parameter) {
  return std::ranges::find(policy.parameters.fields, parameter, &Shape::Field::key) !=
         policy.parameters.fields.end();
}

/// `policy`, a name or a mapping, with `more` parameters: ", budget: 5 B".
inline std::string with_parameters(const std::string& policy, const std::string& more) {
  if (policy.front() == '{') return policy.substr(0, policy.size() - 1) + more + "}";
  return "{name: " + policy + more + "}";
}

/// Further parameters of a pipeline: in turn none, all slots recomputed, the first one.
inline const char* recomputation(int turn) {
  const char* const ways[] = {"", ", recompute: full", ", recompute: [0]"};
  return ways[turn % 3];
}

inline Planned answer(const std::string& policy, const Workload& workload,
                      const Platform& platform) {
  const Topology topology(platform);
  const BoundPolicy bound = bound_policy(policy);
  const ChainView view = bound.is_pipeline ? pipeline_view(workload) : chain_view(workload);
  return bound.plan(Problem{workload, view, platform, topology, judge_by_execution});
}

inline Plan planned(const std::string& policy, const Workload& workload, const Platform& platform) {
  return std::get<Plan>(answer(policy, workload, platform));
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

/// The plan, which must run and keep its claims and bounds; the smallest budget where there is
/// none.
inline std::variant<Played, Bytes> played_or_smallest(const std::string& policy,
                                                      const Workload& workload,
                                                      const Platform& platform) {
  Planned planned = answer(policy, workload, platform);
  if (const auto* no = std::get_if<Infeasible>(&planned)) return no->smallest_budget;
  Played it = play(std::get<Plan>(std::move(planned)), workload, platform);
  REQUIRE(it.execution.status == RunStatus::ok);
  REQUIRE(it.plan.claims.makespan);
  REQUIRE_FALSE(it.plan.claims.peak.empty());
  require_claims_hold(it);
  if (it.plan.bounds.makespan) REQUIRE(*it.plan.bounds.makespan <= it.execution.makespan);
  return it;
}

/// Plays `policy` within `budget` bytes of `memory`, or within the smallest that it says it can
/// keep to, which `budget` then is.
inline Played played_within(std::int64_t& budget, MemoryId memory, const std::string& policy,
                            const Workload& workload, const Platform& platform) {
  const auto within = [&](std::int64_t bytes) {
    return played_or_smallest(with_parameters(policy, fmt::format(", budget: {} B", bytes)),
                              workload, platform);
  };
  auto answer = within(budget);
  if (const auto* least = std::get_if<Bytes>(&answer)) {
    REQUIRE(least->count() > budget);
    budget = least->count();
    answer = within(budget);
  }
  Played it = std::get<Played>(std::move(answer));
  CHECK(it.peak(memory) <= budget);
  return it;
}

}  // namespace plimsoll::test
