#include "base/quantity_text.hpp"
#include "policy/interface/registry.hpp"
#include "policy/pipeline/parameters/device_limits.hpp"
#include "policy/pipeline/partition/partition.hpp"
#include "policy/pipeline/periodic/next_fit_plans.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

struct StarParameters : PipelineParameters {
  std::optional<Located<Time>> period;
  std::optional<Located<Bytes>> memory_limit;
};

Record<StarParameters> star_record() {
  auto record = cut_record<StarParameters>("pipeline/1f1b-star", 1);
  add_loading(record);
  add_slot_recompute(record);
  add_offload(record);
  record
      .optional("period", &StarParameters::period, located(quantity<Time>()),
                "time from microbatch to microbatch that the counts in flight are made for; "
                "default: the least")
      .optional("memory_limit", &StarParameters::memory_limit,
                located(quantity<Bytes>(Unlimited::allowed)),
                "bytes of each device's memory for all that is there; default: no limit");
  return record;
}

/// What does not depend on the cuts.
struct StarDevices {
  StarDevices(const Problem& problem, const StarParameters& parameters)
      : setting(setting_of(problem, parameters)),
        costs(problem, setting.devices, parameters, setting.microbatches) {
    costs.require_links_apart(parameters.where);
    setting.limits = device_limits(problem, setting.devices, parameters.memory_limit);
  }
  StarDevices(const StarDevices&) = delete;  // the costs refer to the setting
  StarDevices& operator=(const StarDevices&) = delete;

  static PeriodicSetting setting_of(const Problem& problem, const StarParameters& parameters) {
    PeriodicSetting setting{problem, parameters, pipeline_devices(problem, parameters)};
    setting.microbatches = played_microbatches(problem, parameters, setting.devices.size());
    return setting;
  }

  PeriodicSetting setting;
  const PeriodicCosts costs;
};

/// Where the parameters say so; empty where the cuts are free.
std::vector<std::size_t> given_cuts(const StarParameters& parameters, const StarDevices& star) {
  const auto& [problem, unplayed, devices, limits, microbatches, nodes] = star.setting;
  PipelineParameters played = parameters;
  played.microbatches = microbatches;
  if (!parameters.asks_for_partition("1f1b-star"))
    return partition_for(problem, played, devices).cuts;
  constexpr std::size_t kMostStarRuns = 4'000'000;
  const std::size_t stages = problem.chain.stages.size();
  if (devices.size() > kMostStarRuns / stages / stages)
    refuse(parameters.partition->where,
           fmt::format("`1f1b-star` looks at every run of {} stages on {} devices; it "
                       "does so for at most {}",
                       stages, devices.size(), kMostStarRuns));
  played.partition.reset();
  (void)partition_for(problem, played, devices);
  return {};
}

std::optional<Time> given_period(const StarParameters& parameters, const StarDevices& star,
                                 const std::vector<std::size_t>& cuts) {
  if (!parameters.period) return std::nullopt;
  const Time period = parameters.period->value;
  const std::vector<Bytes> none(star.costs.slots(), Bytes::unlimited());
  if (const Time least = *NextFit(star.costs, none, cuts).least_period(); period < least)
    refuse(parameters.period->where,
           fmt::format("a period of {} is shorter than what a device or link does in "
                       "it; expected at least {}",
                       to_text(period), to_text(least)));
  return std::min(period, star.costs.whole());  // beyond, one in flight is all that there is
}

Planned plan_as_given(const Problem& problem, const StarParameters& parameters) {
  const StarDevices star(problem, parameters);
  const std::vector<std::size_t> cuts = given_cuts(parameters, star);
  const auto period = given_period(parameters, star, cuts);
  if (cuts.empty() && !period) return contiguous_plan(star.setting, star.costs);
  return NextFitPlans(star.setting, star.costs, cuts, period).run();
}

Planned plan_star(const Problem& problem, const StarParameters& parameters) {
  require_one_virtual_stage(parameters);
  return with_or_without_offload(
      parameters, [&](const StarParameters& it) { return plan_as_given(problem, it); });
}

}  // namespace

PolicyInfo pipeline_1f1b_star_policy() {
  return make_policy<StarParameters>(
      {.name = "pipeline/1f1b-star",
       .summary = "A periodic 1F1B with the fewest microbatches in flight on every stage at once.",
       .paper = "Beaumont, Eyraud-Dubois, Shilova 2020, \"Pipelined Model Parallelism: Complexity "
                "Results and Memory Considerations\", hal-02968802; as reconstructed: Next-Fit "
                "from the last stage, a half-duplex link as one more item",
       .assumes =
           "one stage a device, links that no two cuts share; one version of the "
           "parameters with its gradient, the optimizer at the end; plays as many "
           "microbatches as the steady state takes, at least `microbatches`, whose inputs are on "
           "their devices from the start unless `load_from` is given; `offload` names "
           "slots that may leave: the last one stays, and those whose copies take longer than the "
           "period",
       .guarantees =
           "no schedule of these stages at that period has fewer in flight on any of them; the "
           "period is the least for its bound on memory (what is kept, two gradients on their way "
           "at a cut, the largest operator) by this rule, with `partition: 1f1b-star` over all "
           "cuts, and, where nothing is recomputed, never longer than with the cuts of another "
           "partition; peaks keep to the limit. What the bound counts more than a plan turns out "
           "to need is allowed for the next, so that a limit is refused only where the plan that "
           "counts least exceeds it. Played, it may be shorter where links are half-duplex, or "
           "slots recomputed: their bound takes the longest pause before a value is sent. A given "
           "period that is longer than its counts need is not waited for",
       .complexity = "O(log(time) x stages + microbatches x operators); free cuts "
                     "O(log(time) x devices x stages^2)"},
      star_record(), plan_star);
}

}  // namespace plimsoll
