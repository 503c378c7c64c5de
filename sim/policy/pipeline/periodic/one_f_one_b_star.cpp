#include "base/quantity_text.hpp"
#include "policy/pipeline/partition/partition.hpp"
#include "policy/pipeline/partition/placement.hpp"
#include "policy/pipeline/periodic/next_fit.hpp"
#include "policy/pipeline/schedule/device_limits.hpp"
#include "policy/registry.hpp"

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
  add_recompute(record);
  record
      .optional("period", &StarParameters::period, located(quantity<Time>()),
                "time from microbatch to microbatch that the counts in flight are made for; "
                "default: the least")
      .optional("memory_limit", &StarParameters::memory_limit,
                located(quantity<Bytes>(Unlimited::allowed)),
                "bytes of each device's memory for all that is there; default: no limit");
  return record;
}

bool has_free_cuts(const StarParameters& parameters) {
  const auto* name =
      parameters.partition ? std::get_if<std::string>(&parameters.partition->value) : nullptr;
  return name != nullptr && *name == "1f1b-star";
}

/// What does not depend on the cuts.
struct StarDevices {
  StarDevices(const Problem& problem, const StarParameters& parameters)
      : devices(pipeline_devices(problem, parameters)),
        microbatches(std::max(parameters.microbatches, microbatches_for_period(devices.size()))),
        costs(problem, devices, parameters, microbatches),
        limits(device_limits(problem, devices, parameters.memory_limit)) {
    costs.require_links_apart(parameters.where);
  }
  StarDevices(const StarDevices&) = delete;  // the costs refer to `devices`
  StarDevices& operator=(const StarDevices&) = delete;

  const std::vector<ProcessorId> devices;
  const std::int64_t microbatches;
  const PeriodicCosts costs;
  const std::vector<Bytes> limits;
};

class StarPlanner {
 public:
  /// Refers to all three.
  StarPlanner(const Problem& problem, const StarParameters& parameters, const StarDevices& star)
      : problem_(problem),
        parameters_(parameters),
        devices_(star.devices),
        partition_(first_partition(star)),
        microbatches_(star.microbatches),
        costs_(star.costs),
        limits_(star.limits),
        search_(costs_, limits_, is_free() ? std::vector<std::size_t>{} : partition_.cuts) {}

  Planned run() {
    PipelineParameters played = parameters_;
    played.microbatches = microbatches_;
    refuse_too_many_steps(problem_, played);
    const auto period = parameters_.period ? given_period() : search_.least_period();
    const auto cuts = period ? search_.cuts_for(*period) : std::nullopt;
    if (!cuts)
      return too_little_at_most(problem_, devices_, limits_,
                                *search_.least_cap(period.value_or(costs_.whole())));
    return plan(*cuts, *period);
  }

 private:
  bool is_free() const { return has_free_cuts(parameters_); }

  Partition first_partition(const StarDevices& star) const {
    PipelineParameters parameters = parameters_;
    parameters.microbatches = star.microbatches;
    if (!is_free()) return partition_for(problem_, parameters, devices_);
    const std::size_t stages = problem_.chain.stages.size();
    if (devices_.size() > kMostRuns / stages / stages)
      refuse_parameter(parameters_.partition->where,
                       fmt::format("`1f1b-star` looks at every run of {} stages on {} devices; it "
                                   "does so for at most {}",
                                   stages, devices_.size(), kMostRuns));
    parameters.partition.reset();
    return partition_for(problem_, parameters, devices_);
  }

  std::optional<Time> given_period() const {
    const Time period = parameters_.period->value;
    const std::vector<Bytes> none(devices_.size(), Bytes::unlimited());
    const NextFit unlimited(costs_, none, is_free() ? std::vector<std::size_t>{} : partition_.cuts);
    if (const Time least = *unlimited.least_period(); period < least)
      refuse_parameter(parameters_.period->where,
                       fmt::format("a period of {} is shorter than what a device or link does in "
                                   "it; expected at least {}",
                                   to_text(period), to_text(least)));
    return std::min(period, costs_.whole());  // beyond, one in flight is all that there is
  }

  Plan plan(const std::vector<std::size_t>& cuts, Time period) const {
    const PeriodicPattern pattern = search_.pattern(cuts, period);
    const Partition partition{cuts};
    const Slots slots(problem_, partition, devices_,
                      loop_placement(static_cast<std::uint32_t>(devices_.size()), 1));
    Plan plan = periodic_plan(problem_, parameters_, slots, devices_, pattern, microbatches_);
    plan.bounds.period = bound(cuts);
    if (!parameters_.period && plan.claims.period)
      plan.claims.optimal = *plan.claims.period == *plan.bounds.period;
    return plan;
  }

  /// Of free cuts, or of these.
  Time bound(const std::vector<std::size_t>& cuts) const {
    if (is_free()) return costs_.bound();
    Time greatest;
    for (std::size_t slot = 0; slot < devices_.size(); ++slot) {
      greatest = std::max(greatest, costs_.forward(slot, cuts[slot], cuts[slot + 1]) +
                                        costs_.backward(slot, cuts[slot], cuts[slot + 1]));
      greatest = std::max(greatest, costs_.load(slot, cuts[slot], cuts[slot + 1]));
      if (slot > 0) greatest = std::max(greatest, costs_.cut(slot, cuts[slot]).load());
    }
    return greatest;
  }

  static constexpr std::size_t kMostRuns = 4'000'000;

  const Problem& problem_;
  const StarParameters& parameters_;
  const std::vector<ProcessorId>& devices_;
  const Partition partition_;
  const std::int64_t microbatches_;
  const PeriodicCosts& costs_;
  const std::vector<Bytes>& limits_;
  const NextFit search_;
};

/// The rule takes both messages of a half-duplex link for one item, so a plan may be played in less
/// than the period that it was made for: of free cuts, too, where those of another partition are.
void prefer_other_cuts(const Problem& problem, const StarParameters& parameters,
                       const StarDevices& star, Plan& best) {
  for (const char* partition : {"balanced", "balanced-memory", "pipedream"}) {
    StarParameters other = parameters;
    other.partition->value = partition;
    Planned planned = StarPlanner(problem, other, star).run();
    Plan* plan = std::get_if<Plan>(&planned);
    if (plan == nullptr || !plan->claims.period || !best.claims.period ||
        *plan->claims.period >= *best.claims.period)
      continue;
    plan->bounds.period = best.bounds.period;
    plan->claims.optimal = *plan->claims.period == *plan->bounds.period;
    best = std::move(*plan);
  }
}

Planned plan_star(const Problem& problem, const StarParameters& parameters) {
  require_one_virtual_stage(parameters);
  const StarDevices star(problem, parameters);
  Planned planned = StarPlanner(problem, parameters, star).run();
  if (Plan* plan = std::get_if<Plan>(&planned);
      plan != nullptr && has_free_cuts(parameters) && !parameters.period)
    prefer_other_cuts(problem, parameters, star, *plan);
  return planned;
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
           "their devices from the start unless `load_from` is given",
       .guarantees =
           "no schedule of these stages at that period has fewer in flight on any of them; the "
           "period is the least for its bound on memory (what is kept, two gradients on their way "
           "at a cut, the largest operator) by this rule, with `partition: 1f1b-star` over all "
           "cuts, and, where nothing is recomputed, never longer than with the cuts of another "
           "partition; peaks keep to the limit. "
           "Played, it may be shorter where links are half-duplex, or slots recomputed: their "
           "bound "
           "takes the longest pause before a value is sent. A given period that is longer "
           "than its "
           "counts need is not waited for",
       .complexity = "O(log(time) x stages + microbatches x operators); free cuts "
                     "O(log(time) x devices x stages^2)"},
      star_record(), plan_star);
}

}  // namespace plimsoll
