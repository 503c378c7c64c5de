#include "scenario/run/room_ahead.hpp"

#include "base/dense_id.hpp"
#include "base/quantity_text.hpp"
#include "execution/judge.hpp"
#include "platform/core/without_limits.hpp"
#include "policy/interface/registry.hpp"
#include "scenario/run/accumulated_step.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// How often a policy is asked for another plan, and by which part of its room a budget is less at least.
constexpr int kTries = 4;
constexpr std::int64_t kSteps = 128;

class RoomAhead {
 public:
  RoomAhead(const Scenario& scenario, const Node& policy, const BoundPolicy& bound,
            const Ranks& ranks, const Problem& problem)
      : scenario_(scenario),
        policy_(policy),
        ranks_(ranks),
        problem_(problem),
        played_(played_step(problem.workload, scenario, ranks)),
        roomy_(without_limits(problem.platform)),
        memory_(ranks.memory_of_first()),
        room_(problem.platform[memory_].usable()) {
    if (bound.budget) room_ = std::min(room_, *bound.budget);
  }

  PlanWithRoom run(Plan first) {
    const std::int64_t ahead = scenario_.sharding.prefetch;
    if (ahead == 0 || time_of(first, ahead)) return {std::move(first), ahead, ""};
    const auto time_without = time_of(first, 0);
    Bytes left = room_ - std::min(room_, lacking(first, ahead));
    // A plan of a smaller budget may have another unit in its way, or pieces of an allocator.
    for (int tries = 0; tries < kTries; ++tries) {
      auto smaller = plan_for(left, first);
      if (!smaller) break;
      if (const auto time = time_of(*smaller, ahead)) {
        if (time_without && *time > *time_without) break;
        return {std::move(*smaller), ahead,
                fmt::format("the plan is one for a budget of {}, which leaves room for what "
                            "`prefetch: {}` brings ahead",
                            to_text(left), ahead)};
      }
      left -= std::min(left, std::max(lacking(*smaller, ahead), Bytes{room_.count() / kSteps}));
    }
    return {std::move(first), 0,
            fmt::format("parameters come right before the stages that read them: there is no room "
                        "for what `prefetch: {}` brings ahead",
                        ahead)};
  }

 private:
  [[nodiscard]] Judgement judged(const Plan& plan, std::int64_t ahead,
                                 const Platform& platform) const {
    const Problem problem{played_,           problem_.chain, platform,
                          problem_.topology, problem_.judge, problem_.work};
    return judge_by_execution(ranks_.of_all(accumulated(plan, scenario_, problem), problem, ahead),
                              problem);
  }

  /// Nothing where it does not fit.
  [[nodiscard]] std::optional<Time> time_of(const Plan& plan, std::int64_t ahead) const {
    const Judgement its = judged(plan, ahead, problem_.platform);
    if (!its.is_ok || its.peak[index(memory_)] > room_) return std::nullopt;
    return its.makespan;
  }

  /// What `plan` would use beyond its room.
  [[nodiscard]] Bytes lacking(const Plan& plan, std::int64_t ahead) const {
    const Bytes peak = judged(plan, ahead, roomy_).peak[index(memory_)];
    return peak - std::min(room_, peak);
  }

  /// The policy's for such a budget, where it takes any; it may use as much as `first`.
  [[nodiscard]] std::optional<Plan> plan_for(Bytes budget, const Plan& first) const {
    if (budget == Bytes{}) return std::nullopt;
    Diagnostics diagnostics;
    Node policy = parse_value("{}", "budget");
    const Node of_one = ranks_.policy_of_one(policy_);
    if (of_one.is_scalar())
      policy.set("name", of_one, diagnostics);
    else
      policy = of_one;
    policy.set("budget", parse_value(fmt::format("{} B", budget.count()), "budget"), diagnostics);
    const auto bound = bind_policy(policy, diagnostics);
    if (!bound || diagnostics.has_errors()) return std::nullopt;
    Planned planned = ranks_.planned(bound->plan, problem_);
    Plan* plan = std::get_if<Plan>(&planned);
    if (plan == nullptr) return std::nullopt;
    plan->limits = first.limits;
    return std::move(*plan);
  }

  const Scenario& scenario_;
  const Node& policy_;
  const Ranks& ranks_;
  const Problem& problem_;
  const Workload played_;
  const Platform roomy_;
  const MemoryId memory_;
  Bytes room_;
};

}  // namespace

PlanWithRoom with_room_ahead(Plan plan, const Scenario& scenario, const Node& policy,
                             const BoundPolicy& bound, const Ranks& ranks, const Problem& problem) {
  return RoomAhead(scenario, policy, bound, ranks, problem).run(std::move(plan));
}

}  // namespace plimsoll
