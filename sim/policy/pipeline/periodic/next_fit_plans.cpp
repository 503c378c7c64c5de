#include "policy/pipeline/periodic/next_fit_plans.hpp"

#include "policy/pipeline/partition/placement.hpp"

#include <algorithm>

namespace plimsoll {

Planned NextFitPlans::run() const {
  return plan_within(
      setting_.problem, setting_.devices, setting_.limits,
      {[this](const auto& allowances) { return within(allowances); }, [this] { return least(); }});
}

std::optional<CountedPlan> NextFitPlans::within(const std::vector<Bytes>& allowances) const {
  const NextFit search(costs_, allowances, cuts_);
  const auto period = period_ ? period_ : search.least_period();
  const auto cuts = period ? search.cuts_for(*period) : std::nullopt;
  if (!cuts) return std::nullopt;
  return plan(search, *cuts, *period);
}

CountedPlan NextFitPlans::least() const {
  const std::vector<Bytes> none(costs_.slots(), Bytes::unlimited());
  const NextFit unlimited(costs_, none, cuts_);
  const Time period = period_.value_or(costs_.whole());
  return plan(unlimited, *unlimited.cuts_for(period, *unlimited.least_cap(period)), period);
}

CountedPlan NextFitPlans::plan(const NextFit& search, const std::vector<std::size_t>& cuts,
                               Time period) const {
  const Partition partition{cuts};
  const Slots slots(setting_.problem, partition, setting_.devices,
                    loop_placement(static_cast<std::uint32_t>(costs_.slots()), 1));
  Plan plan = periodic_plan(setting_.problem, setting_.parameters, slots, setting_.devices,
                            search.pattern(cuts, period), setting_.microbatches);
  plan.bounds.period = bound(cuts);
  if (!period_ && plan.claims.period)
    plan.claims.optimal = *plan.claims.period == *plan.bounds.period;
  return {std::move(plan), search.memories(cuts, period)};
}

/// Of free cuts, or of these.
Time NextFitPlans::bound(const std::vector<std::size_t>& cuts) const {
  if (cuts_.empty()) return costs_.bound();
  Time greatest;
  for (std::size_t slot = 0; slot < costs_.slots(); ++slot) {
    const std::size_t begin = cuts[slot], end = cuts[slot + 1];
    greatest = std::max({greatest, costs_.load(slot, begin, end),
                         costs_.forward(slot, begin, end) + costs_.backward(slot, begin, end)});
    if (slot > 0) greatest = std::max(greatest, costs_.cut(slot, begin).load());
  }
  return greatest;
}

namespace {

std::vector<std::size_t> cuts_of(const PeriodicSetting& setting, const char* partition) {
  PipelineParameters parameters = setting.parameters;
  parameters.partition->value = partition;
  parameters.microbatches = setting.microbatches;
  return partition_for(setting.problem, parameters, setting.devices).cuts;
}

}  // namespace

Planned contiguous_plan(const PeriodicSetting& setting, const PeriodicCosts& costs) {
  Planned best = NextFitPlans(setting, costs, {}, std::nullopt).run();
  Plan* plan = std::get_if<Plan>(&best);
  if (plan == nullptr) return best;
  for (const char* partition : {"balanced", "balanced-memory", "pipedream"}) {
    Planned planned = NextFitPlans(setting, costs, cuts_of(setting, partition), std::nullopt).run();
    Plan* other = std::get_if<Plan>(&planned);
    if (other == nullptr || !is_shorter(*other, *plan)) continue;
    other->bounds.period = plan->bounds.period;
    other->claims.optimal = *other->claims.period == *other->bounds.period;
    *plan = std::move(*other);
  }
  return best;
}

}  // namespace plimsoll
