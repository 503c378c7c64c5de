/// Limits on memory for rules that count from above.
///
/// A rule that plans within limits counts what there is at most: messages at their longest, the
/// largest operator of a device at any time. Its plan may need less, so a rule is asked for what it
/// may count, not for what there may be: without limits, in case it keeps to them; then for the
/// limits themselves, then on top of them what it counted too much in its last plan. A plan that
/// needs more than the limits is not taken, and halfway to it is asked for.
#pragma once

#include "policy/pipeline/schedule/slot_savings.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace plimsoll {

struct CountedPlan {
  Plan plan;
  std::vector<Bytes> counted;  ///< by device, what the rule says is there at most
};

struct CountingRule {
  /// The plan of least period that counts no more than so much on each device, or none.
  std::function<std::optional<CountedPlan>(const std::vector<Bytes>& allowances)> within;
  /// The plan that counts least on the device that it counts most on.
  std::function<CountedPlan()> least;
};

/// Whether the period that it claims is shorter, or it alone claims one; the makespan, of as many
/// microbatches, where neither claims a period.
[[nodiscard]] bool is_shorter(const Plan& plan, const Plan& than);

/// The one that has a plan, or the shorter one; of two that have none, the one that needs less.
[[nodiscard]] Planned better_of(Planned first, Planned second);

/// What `plan` makes of the parameters, or, where that is better, without their `offload`.
template <class Parameters, class MakePlan>
[[nodiscard]] Planned with_or_without_offload(const Parameters& parameters, MakePlan plan) {
  Planned planned = plan(parameters);
  if (!parameters.offloads()) return planned;
  Parameters staying = parameters;
  staying.offload.reset();
  return better_of(std::move(planned), plan(staying));
}

/// The plan of least period that keeps to the limits, of those that the rule gives for what it may
/// count; where it counts too much for any, from the one on that counts least. Infeasible where
/// that one needs more, too. Makes at most some ten plans.
[[nodiscard]] Planned plan_within(const Problem& problem, const std::vector<ProcessorId>& devices,
                                  const std::vector<Bytes>& limits, const CountingRule& rule);

}  // namespace plimsoll
