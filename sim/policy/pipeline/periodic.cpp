#include "policy/pipeline/device_limits.hpp"
#include "policy/pipeline/modular_ilp.hpp"
#include "policy/pipeline/partition.hpp"
#include "policy/pipeline/periodic_allocation.hpp"
#include "policy/pipeline/placement.hpp"
#include "policy/registry.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

struct PeriodicParameters : PipelineParameters {
  std::optional<Located<std::vector<std::int64_t>>> placement;
  std::optional<Located<Bytes>> memory_limit;
  std::int64_t nodes = 2000;
};

constexpr std::int64_t kMostSlots = 24;

Record<PeriodicParameters> periodic_record() {
  auto record = pipeline_record<PeriodicParameters>("pipeline/periodic");
  record
      .optional("placement", &PeriodicParameters::placement,
                located(list_of(integer(0, 65'535), 1, kMostSlots)),
                "by slot, along the network: its device, counted from 0 in `devices`; default: one "
                "slot a device")
      .optional("memory_limit", &PeriodicParameters::memory_limit, located(quantity<Bytes>()),
                "bytes of each device's memory for all that is there; default: no limit")
      .optional("nodes", &PeriodicParameters::nodes, integer(1, 10'000'000),
                "nodes of the search tree after which the best schedule so far is taken; default "
                "2000");
  return record;
}

std::vector<std::uint32_t> checked_placement(const Problem& problem,
                                             const PeriodicParameters& parameters,
                                             const std::vector<ProcessorId>& devices) {
  if (!parameters.placement) {
    if (std::ssize(devices) > kMostSlots)
      refuse_parameter(parameters.where,
                       fmt::format("{} devices, each with a slot; `{}` searches for at most {} "
                                   "slots",
                                   devices.size(), parameters.name, kMostSlots));
    return loop_placement(static_cast<std::uint32_t>(devices.size()), 1);
  }
  const Location& where = parameters.placement->where;
  std::vector<std::uint32_t> placement;
  std::vector<bool> used(devices.size(), false);
  for (const std::int64_t device : parameters.placement->value) {
    if (device >= std::ssize(devices))
      refuse_parameter(where, fmt::format("slot {} is on device {}; the pipeline has {}, counted "
                                          "from 0",
                                          placement.size(), device, devices.size()));
    if (!placement.empty() && placement.back() == device)
      refuse_parameter(where, fmt::format("slots {} and {} follow each other on device {}; make "
                                          "them one slot",
                                          placement.size() - 1, placement.size(), device));
    placement.push_back(static_cast<std::uint32_t>(device));
    used[static_cast<std::size_t>(device)] = true;
  }
  const auto idle = std::ranges::find(used, false) - used.begin();
  if (idle < std::ssize(devices))
    refuse_parameter(where,
                     fmt::format("device {}, `{}`, has no slot; leave it out of `devices`", idle,
                                 problem.platform[devices[static_cast<std::size_t>(idle)]].name));
  return placement;
}

/// partition_for() counts slots by devices, so a device with several is there several times.
Partition checked_partition(const Problem& problem, const PeriodicParameters& parameters,
                            const std::vector<ProcessorId>& of_slots) {
  const std::size_t stages = problem.chain.stages.size(), slots = of_slots.size();
  if (parameters.placement && slots > stages)
    refuse_parameter(parameters.placement->where,
                     fmt::format("{} slots, but `{}` can be cut into {} stages at most", slots,
                                 problem.workload.name, stages));
  if (parameters.placement && parameters.partition)
    if (const auto* cuts = std::get_if<std::vector<std::int64_t>>(&parameters.partition->value);
        cuts != nullptr && cuts->size() + 1 != slots)
      refuse_parameter(parameters.partition->where,
                       fmt::format("{} cuts make {} slots; `placement` has {}", cuts->size(),
                                   cuts->size() + 1, slots));
  return partition_for(problem, parameters, of_slots);
}

class PeriodicSearch {
 public:
  PeriodicSearch(const Problem& problem, const PeriodicParameters& parameters)
      : problem_(problem),
        parameters_(parameters),
        devices_(pipeline_devices(problem, parameters)),
        placement_(checked_placement(problem, parameters, devices_)),
        of_slots_(devices_of_slots()),
        partition_(checked_partition(problem, parameters, of_slots_)),
        microbatches_(std::max(parameters.microbatches, microbatches_for_period(of_slots_.size()))),
        costs_(problem, of_slots_, microbatches_, parameters.where),
        limits_(device_limits(problem, devices_, parameters.memory_limit)) {
    require_time();
  }

  Planned run() {
    PipelineParameters played = parameters_;
    played.microbatches = microbatches_;
    refuse_too_many_steps(problem_, played);
    const PeriodicAllocation allocation(costs_, partition_.cuts, placement_, limits_);
    const PeriodCounts first = one_at_a_time(allocation.tasks());
    if (!fits(allocation.tasks(), first))
      return too_little(problem_, devices_, limits_, allocation.least_memory());
    const LeastPeriod found = least_period_by_ilp(allocation.tasks(), first, allocation.bound(),
                                                  static_cast<int>(parameters_.nodes));
    return plan(allocation, found);
  }

 private:
  std::vector<ProcessorId> devices_of_slots() const {
    std::vector<ProcessorId> of_slots;
    for (const std::uint32_t device : placement_) of_slots.push_back(devices_[device]);
    return of_slots;
  }

  void require_time() const {
    for (std::size_t slot = 0; slot < of_slots_.size(); ++slot)
      for (const bool forward : {true, false}) {
        const std::size_t begin = partition_.cuts[slot], end = partition_.cuts[slot + 1];
        if ((forward ? costs_.forward(slot, begin, end) : costs_.backward(slot, begin, end)) >
            Time{})
          continue;
        refuse_parameter(parameters_.where,
                         fmt::format("the {} of slot {} takes no time; what is alive when it runs "
                                     "is not certain, so `{}` wants some",
                                     forward ? "forward" : "backward", slot, parameters_.name));
      }
  }

  Plan plan(const PeriodicAllocation& allocation, const LeastPeriod& found) const {
    const Slots slots(problem_, partition_, devices_, placement_);
    Plan plan = periodic_plan(problem_, parameters_.name, slots, devices_,
                              allocation.pattern(found.counts, found.period), microbatches_);
    // The plan is not rounded up to whole picoseconds as its pattern is.
    plan.bounds.period = std::min(found.bound, plan.claims.period.value_or(found.bound));
    plan.claims.optimal = found.proven();
    return plan;
  }

  const Problem& problem_;
  const PeriodicParameters& parameters_;
  const std::vector<ProcessorId> devices_;
  const std::vector<std::uint32_t> placement_;
  const std::vector<ProcessorId> of_slots_;
  const Partition partition_;
  const std::int64_t microbatches_;
  const PeriodicCosts costs_;
  const std::vector<Bytes> limits_;
};

Planned plan_periodic(const Problem& problem, const PeriodicParameters& parameters) {
  require_one_virtual_stage(parameters);
  return PeriodicSearch(problem, parameters).run();
}

}  // namespace

PolicyInfo pipeline_periodic_policy() {
  return make_policy<PeriodicParameters>(
      {.name = "pipeline/periodic",
       .summary = "The periodic schedule of least period for slots on given devices, several on "
                  "one if need be.",
       .paper = "Beaumont, Eyraud-Dubois, Shilova 2020, \"Pipelined Model Parallelism: Complexity "
                "Results and Memory Considerations\", hal-02968802: the integer program for a "
                "given allocation, as reconstructed, with the period as a variable",
       .assumes = "slots whose forwards and backwards take time; one version of the parameters "
                  "with its gradient, the optimizer at the end; plays as many microbatches as the "
                  "steady state takes, at least `microbatches`",
       .guarantees =
           "peaks keep to the limit; where it says that the period is optimal, none is shorter for "
           "its bound on memory (saved values at the same time, messages each at their most, the "
           "largest operator of a device); else the bound says by how much one could be",
       .complexity = "at most `nodes` linear programs of slots^2 rows (strongly NP-hard)"},
      periodic_record(), plan_periodic);
}

}  // namespace plimsoll
