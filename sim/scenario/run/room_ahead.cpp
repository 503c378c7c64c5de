#include "scenario/run/room_ahead.hpp"

#include "base/dense_id.hpp"
#include "base/quantity_text.hpp"
#include "execution/judge.hpp"
#include "platform/core/without_limits.hpp"
#include "policy/budget/problem_with_capacity.hpp"
#include "scenario/run/accumulated_step.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

namespace {

class RoomAhead {
 public:
  RoomAhead(const Scenario& scenario, const BoundPolicy& bound, const Ranks& ranks,
            const Problem& problem)
      : scenario_(scenario),
        bound_(bound),
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
    const Bytes peak = peak_of(first, ahead);
    const Bytes lacking = peak - std::min(room_, peak);
    const auto time_without = time_of(first, 0);
    if (auto smaller = plan_for(room_ - std::min(lacking, room_), first)) {
      const auto time = time_of(*smaller, ahead);
      if (time && (!time_without || *time <= *time_without))
        return {std::move(*smaller), ahead,
                fmt::format("the plan leaves {} of the memory to what `prefetch: {}` brings ahead",
                            to_text(lacking), ahead)};
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

  [[nodiscard]] Bytes peak_of(Plan plan, std::int64_t ahead) const {
    plan.limits.clear();
    return judged(plan, ahead, roomy_).peak[index(memory_)];
  }

  /// The policy's for so much memory; it may use as much as `first`.
  [[nodiscard]] std::optional<Plan> plan_for(Bytes room, const Plan& first) const {
    const ProblemWithCapacity smaller(problem_, memory_, room);
    Planned planned = ranks_.planned(bound_.plan, smaller.problem());
    Plan* plan = std::get_if<Plan>(&planned);
    if (plan == nullptr) return std::nullopt;
    plan->limits = first.limits;
    return std::move(*plan);
  }

  const Scenario& scenario_;
  const BoundPolicy& bound_;
  const Ranks& ranks_;
  const Problem& problem_;
  const Workload played_;
  const Platform roomy_;
  const MemoryId memory_;
  Bytes room_;
};

}  // namespace

PlanWithRoom with_room_ahead(Plan plan, const Scenario& scenario, const BoundPolicy& bound,
                             const Ranks& ranks, const Problem& problem) {
  return RoomAhead(scenario, bound, ranks, problem).run(std::move(plan));
}

}  // namespace plimsoll
