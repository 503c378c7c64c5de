#include "policy/interface/registry.hpp"
#include "policy/pipeline/parameters/device_limits.hpp"
#include "policy/pipeline/partition/partition.hpp"
#include "policy/pipeline/partition/placement.hpp"
#include "policy/pipeline/periodic/madpipe_search.hpp"
#include "policy/pipeline/periodic/next_fit_plans.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

struct PeriodicParameters : PipelineParameters {
  std::optional<Located<std::vector<std::int64_t>>> placement;
  std::optional<Located<Bytes>> memory_limit;
  std::int64_t nodes = 2000;
};

constexpr std::int64_t kMostPeriodicSlots = 24;

Record<PeriodicParameters> periodic_record() {
  auto record = cut_record<PeriodicParameters>("pipeline/periodic", 1);
  add_loading(record);
  add_slot_recompute(record);
  add_offload(record);
  record
      .optional("placement", &PeriodicParameters::placement,
                located(list_of(integer(0, 65'535), 1, kMostPeriodicSlots)),
                "by slot, along the network: its device, counted from 0 in `devices`; default: one "
                "slot a device")
      .optional("memory_limit", &PeriodicParameters::memory_limit,
                located(quantity<Bytes>(Unlimited::allowed)),
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
    if (std::ssize(devices) > kMostPeriodicSlots)
      refuse(parameters.where,
             fmt::format("{} devices, each with a slot; `{}` searches for at most {} "
                         "slots",
                         devices.size(), parameters.name, kMostPeriodicSlots));
    return loop_placement(static_cast<std::uint32_t>(devices.size()), 1);
  }
  const Location& where = parameters.placement->where;
  std::vector<std::uint32_t> placement;
  std::vector<bool> used(devices.size(), false);
  for (const std::int64_t device : parameters.placement->value) {
    if (device >= std::ssize(devices))
      refuse(where, fmt::format("slot {} is on device {}; the pipeline has {}, counted "
                                "from 0",
                                placement.size(), device, devices.size()));
    if (!placement.empty() && placement.back() == device)
      refuse(where, fmt::format("slots {} and {} follow each other on device {}; make "
                                "them one slot",
                                placement.size() - 1, placement.size(), device));
    placement.push_back(static_cast<std::uint32_t>(device));
    used[static_cast<std::size_t>(device)] = true;
  }
  const auto idle = std::ranges::find(used, false) - used.begin();
  if (idle < std::ssize(devices))
    refuse(where, fmt::format("device {}, `{}`, has no slot; leave it out of `devices`", idle,
                              problem.platform[devices[static_cast<std::size_t>(idle)]].name));
  return placement;
}

/// partition_for() counts slots by devices, so a device with several is there several times.
Partition checked_partition(const Problem& problem, const PeriodicParameters& parameters,
                            const std::vector<ProcessorId>& of_slots) {
  const std::size_t stages = problem.chain.stages.size(), slots = of_slots.size();
  if (parameters.placement && slots > stages)
    refuse(parameters.placement->where,
           fmt::format("{} slots, but `{}` can be cut into {} stages at most", slots,
                       problem.workload.name, stages));
  if (parameters.placement && parameters.partition)
    if (const auto* cuts = std::get_if<std::vector<std::int64_t>>(&parameters.partition->value);
        cuts != nullptr && cuts->size() + 1 != slots)
      refuse(parameters.partition->where, fmt::format("{} cuts make {} slots; `placement` has {}",
                                                      cuts->size(), cuts->size() + 1, slots));
  return partition_for(problem, parameters, of_slots);
}

/// The given allocation, or MadPipe's.
class PeriodicSearch {
 public:
  PeriodicSearch(const Problem& problem, const PeriodicParameters& parameters)
      : parameters_(parameters),
        setting_{problem, parameters, pipeline_devices(problem, parameters)} {
    setting_.nodes = static_cast<int>(parameters.nodes);
    setting_.limits = device_limits(problem, setting_.devices, parameters.memory_limit);
  }

  Planned run() { return parameters_.asks_for_partition("madpipe") ? madpipe() : given(); }

 private:
  Planned given() {
    SharedAllocation allocation;
    allocation.placement = checked_placement(setting_.problem, parameters_, setting_.devices);
    play_for(allocation.placement.size());
    const auto of_slots = processors_of(setting_.devices, allocation.placement);
    allocation.cuts = checked_partition(setting_.problem, parameters_, of_slots).cuts;
    return plan_within(
        setting_.problem, setting_.devices, setting_.limits,
        {[&](const auto& allowances) { return planned(scheduled_within(allowances, allocation)); },
         [&] { return plan(one_at_a_time(setting_, allocation)); }});
  }

  std::optional<ScheduledAllocation> scheduled_within(const std::vector<Bytes>& allowances,
                                                      const SharedAllocation& allocation) const {
    PeriodicSetting setting = setting_;
    setting.limits = allowances;
    return schedule(setting, allocation);
  }

  Planned madpipe() {
    const Location& where = parameters_.partition->where;
    if (parameters_.placement)
      refuse(parameters_.placement->where,
             "`placement` is what `partition: madpipe` looks for; give one of the two");
    if (parameters_.recompute && !parameters_.recompute->value.slots.slots.empty())
      refuse(parameters_.recompute->where,
             "`partition: madpipe` looks for the slots; expected `full` or `none`");
    if (parameters_.offload && !parameters_.offload->value.slots.empty())
      refuse(parameters_.offload->where,
             "`partition: madpipe` looks for the slots; expected `all` or `none`");
    (void)checked_placement(setting_.problem, parameters_, setting_.devices);
    PipelineParameters contiguous = parameters_;
    contiguous.partition.reset();
    (void)partition_for(setting_.problem, contiguous, setting_.devices);
    play_for(most_shared_slots(setting_.devices.size(), setting_.problem.chain.stages.size()));
    std::optional<Planned> apart = plan_apart();
    Planned shared = shared_plan(where);
    return apart ? better_of(std::move(shared), std::move(*apart)) : shared;
  }

  /// Of the allocation that is found without limits, if that keeps to them, or for the limits. What
  /// it counts too much changes when its slots run, not where.
  Planned shared_plan(const Location& where) const {
    const CountedPlan free = free_plan(where);
    std::optional<ScheduledAllocation> first;
    Bytes smallest = Bytes::unlimited();
    const auto within = [&](const std::vector<Bytes>& allowances) -> std::optional<CountedPlan> {
      if (std::ranges::all_of(allowances, &Bytes::is_unlimited)) return free;
      if (first) {
        auto next = scheduled_within(allowances, first->of);
        if (next) next->bound = next->model_bound = first->bound;
        return planned(next);
      }
      const auto answer = search_allocations(setting_, where);
      if (const auto* least = std::get_if<Bytes>(&answer)) {
        smallest = *least;
        return std::nullopt;
      }
      return plan(first.emplace(std::get<ScheduledAllocation>(answer)));
    };
    Planned found = plan_within(setting_.problem, setting_.devices, setting_.limits,
                                {within, [&] { return free; }});
    if (smallest.is_unlimited()) return found;
    return better_of(std::move(found), too_little_at_most(setting_.problem, setting_.devices,
                                                          setting_.limits, smallest));
  }

  CountedPlan free_plan(const Location& where) const {
    PeriodicSetting free = setting_;
    free.limits.assign(free.limits.size(), Bytes::unlimited());
    return plan(std::get<ScheduledAllocation>(search_allocations(free, where)));
  }

  /// A slot a device, where no two cuts share a link.
  std::optional<Planned> plan_apart() const {
    const PeriodicCosts costs(setting_.problem, setting_.devices, parameters_,
                              setting_.microbatches);
    if (costs.shared_link()) return std::nullopt;
    return contiguous_plan(setting_, costs);
  }

  void play_for(std::size_t slots) {
    setting_.microbatches = played_microbatches(setting_.problem, parameters_, slots);
  }

  std::optional<CountedPlan> planned(const std::optional<ScheduledAllocation>& found) const {
    return found ? std::optional(plan(*found)) : std::nullopt;
  }

  CountedPlan plan(const ScheduledAllocation& found) const {
    const Partition partition{found.of.cuts};
    const Slots slots(setting_.problem, partition, setting_.devices, found.of.placement);
    Plan plan = periodic_plan(setting_.problem, parameters_, slots, setting_.devices, found.pattern,
                              setting_.microbatches);
    // The plan is not rounded up to whole picoseconds as its pattern is.
    plan.bounds.period = std::min(found.bound, plan.claims.period.value_or(found.bound));
    plan.claims.optimal = found.bound == found.pattern.period;
    if (found.model_bound > found.bound) plan.claims.model_period = found.model_bound;
    return {std::move(plan), found.counted};
  }

  const PeriodicParameters& parameters_;
  PeriodicSetting setting_;
};

Planned plan_periodic(const Problem& problem, const PeriodicParameters& parameters) {
  if (parameters.virtual_stages != 1)
    refuse(parameters.where,
           fmt::format("`placement` says how many slots a device has; virtual_stages is "
                       "{}",
                       parameters.virtual_stages));
  return with_or_without_offload(
      parameters, [&](const PeriodicParameters& it) { return PeriodicSearch(problem, it).run(); });
}

}  // namespace

PolicyInfo pipeline_periodic_policy() {
  return make_policy<PeriodicParameters>(
      {.name = "pipeline/periodic",
       .summary = "The periodic schedule of least period for slots on given devices, several on "
                  "one if need be, or on those that MadPipe chooses.",
       .paper =
           "Beaumont, Eyraud-Dubois, Shilova 2020, \"Pipelined Model Parallelism: Complexity "
           "Results and Memory Considerations\", hal-02968802: the integer program for a "
           "given allocation; \"MadPipe: Memory Aware Dynamic Programming Algorithm for "
           "Pipelined Model Parallelism\", 2022, hal-03025305: the allocation with `partition: "
           "madpipe`. Both as reconstructed: the period is a variable of the program; "
           "MadPipe's states lie on a grid of 16 x 16 over load and memory, its 16 targets "
           "come from a bisection",
       .assumes = "`madpipe`: devices alike, one of which may hold several slots; slots whose "
                  "forwards and backwards take time; one version of the parameters "
                  "with its gradient, the optimizer at the end; plays as many microbatches as the "
                  "steady state takes, at least `microbatches`, whose inputs are on their devices "
                  "from the start unless `load_from` is given; with `offload` periods are at least "
                  "as long as copies, unless all that stays is faster; the last slot stays",
       .guarantees =
           "peaks keep to the limit; where it says that the period is optimal, none is shorter. Of "
           "memory the program counts what there is at most (saved values at the same time, "
           "messages, the largest operator of a device); what that is more than a plan turns out "
           "to need is allowed for the next. claims.model_period is the least by that count, or "
           "its bound; a limit is refused only where one microbatch at a time exceeds it. "
           "`madpipe`: heuristic, never worse than the best contiguous allocation where no "
           "two of its cuts share a link and nothing is recomputed; its bound is that of all "
           "allocations",
       .complexity =
           "at most `nodes` linear programs of slots^2 rows (strongly NP-hard); `madpipe`: "
           "32 times that and O(devices x stages^2) for each of 256 cells"},
      periodic_record(), plan_periodic);
}

}  // namespace plimsoll
