#include "policy/pipeline/partition/partition.hpp"

#include "policy/pipeline/partition/cut_times.hpp"
#include "policy/pipeline/partition/layout.hpp"
#include "policy/pipeline/partition/slot_weights.hpp"
#include "policy/pipeline/partition/stage_bytes.hpp"
#include "policy/pipeline/partition/stage_times.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// Fills slots greedily up to `limit` each, leaving one stage for every slot still to come.
std::optional<Partition> fill(const std::vector<Time>& times, std::size_t slots, Time limit) {
  Partition partition{{0}, std::nullopt};
  std::size_t next = 0;
  for (std::size_t slot = 0; slot < slots; ++slot) {
    const std::size_t end = times.size() - (slots - slot - 1);
    if (times[next] > limit) return std::nullopt;
    Time sum = times[next++];
    while (next < end && sum + times[next] <= limit) sum += times[next++];
    partition.cuts.push_back(next);
  }
  if (next < times.size()) return std::nullopt;
  return partition;
}

/// Sums over the first stages, 0 first; in a quantity's arithmetic, which tells an overflow.
std::vector<std::int64_t> sums_before(std::size_t stages, const auto& of_stage) {
  std::vector<std::int64_t> sums{0};
  for (std::size_t s = 0; s < stages; ++s)
    sums.push_back((Bytes{sums.back()} + Bytes{of_stage(s)}).count());
  return sums;
}

/// What partitioners look at, of all slots along the network.
struct CutTask {
  const Problem& problem;
  const PipelineParameters& parameters;
  std::vector<ProcessorId> of_slots;

  [[nodiscard]] std::size_t stages() const { return problem.chain.stages.size(); }
  [[nodiscard]] std::size_t slots() const { return of_slots.size(); }
  [[nodiscard]] std::size_t passes() const {
    return static_cast<std::size_t>(parameters.virtual_stages);
  }
};

/// The microbatches that a slot keeps at once: those that are under way between its forward and
/// its backward, while every device has its slots of all passes to do for each.
std::int64_t kept_microbatches(const CutTask& task, std::size_t slot) {
  const std::size_t passes = task.passes();
  return std::min(task.parameters.microbatches,
                  static_cast<std::int64_t>((task.slots() - slot + passes - 1) / passes));
}

/// Parameters, gradients, optimizer state, inputs, and for every microbatch that a slot keeps, or
/// for all of them, what is saved and received.
SlotWeights memory_weights(const CutTask& task, bool keeps_all) {
  const std::vector<StageBytes> bytes = stage_bytes(task.problem);
  const std::int64_t all = task.parameters.microbatches;
  const auto resident = sums_before(bytes.size(), [&](std::size_t s) {
    return (bytes[s].resident + bytes[s].stays * all).count();
  });
  const auto inputs =
      sums_before(bytes.size(), [&](std::size_t s) { return input_bytes(bytes[s]).count(); });
  const auto saved =
      sums_before(bytes.size(), [&](std::size_t s) { return bytes[s].saved.count(); });
  std::vector<std::int64_t> kept, inputs_there;
  for (std::size_t slot = 0; slot < task.slots(); ++slot) {
    kept.push_back(keeps_all ? all : kept_microbatches(task, slot));
    inputs_there.push_back(task.parameters.inputs_there(kept.back(), all));
  }
  return {[=](std::size_t slot, std::size_t s) {
            return (Bytes{resident[s]} + Bytes{saved[s]} * kept[slot] +
                    Bytes{inputs[s]} * inputs_there[slot])
                .count();
          },
          [bytes, kept](std::size_t slot, std::size_t s) {
            return (bytes[s].received * kept[slot]).count();
          },
          [](std::size_t, std::size_t) { return 0; }, task.problem.work};
}

/// The times of stages on the device of each slot, and of what crosses the cut before it.
class SlotTimes {
 public:
  explicit SlotTimes(const CutTask& task) {
    for (std::size_t slot = 0; slot < task.slots(); ++slot) {
      const ProcessorId device = task.of_slots[slot];
      auto& times = before_of_[device];
      if (times.empty()) {
        const std::vector<Time> of_stages = stage_times(task.problem, device);
        times = sums_before(task.stages(), [&](std::size_t s) { return of_stages[s].count(); });
      }
      before_.push_back(&times);
      crossing_.push_back(slot == 0 ? nullptr : &crossing(task, task.of_slots[slot - 1], device));
    }
  }

  [[nodiscard]] std::int64_t before(std::size_t slot, std::size_t stage) const {
    return (*before_[slot])[stage];
  }
  [[nodiscard]] std::int64_t crossing(std::size_t slot, std::size_t stage) const {
    return (*crossing_[slot])[stage];
  }

 private:
  using Times = std::vector<std::int64_t>;

  /// By the stage before which the cut is: of what crosses there, and of the gradients back.
  const Times& crossing(const CutTask& task, ProcessorId before, ProcessorId after) {
    const Problem& problem = task.problem;
    const MemoryId from = problem.platform[before].memory, to = problem.platform[after].memory;
    Times& times = crossing_of_[{from, to}];
    if (!times.empty()) return times;
    times.assign(task.stages(), 0);
    if (from == to || !problem.topology.route(from, to) || !problem.topology.route(to, from))
      return times;
    for (std::size_t stage = 1; stage < task.stages(); ++stage) {
      const ChainStage& last = problem.chain.stages[stage - 1];
      times[stage] =
          (value_time(problem, from, to, last) + gradient_time(problem, to, from, last)).count();
    }
    return times;
  }

  std::map<ProcessorId, Times> before_of_;
  std::map<std::pair<MemoryId, MemoryId>, Times> crossing_of_;
  std::vector<const Times*> before_, crossing_;  ///< by slot
};

/// Of the cuts whose sum over passes is least, those whose passes have fewest stages first.
SlotCuts cut_passes(const CutTask& task, const SlotWeights& weights) {
  const PassCuts best =
      least_sum_over_passes(weights, task.stages(), task.slots() / task.passes(), task.passes());
  SlotCuts all{{0}, 0};
  for (const SlotRun& pass : best.passes) {
    const SlotCuts found = least_greatest(weights, pass);
    all.cuts.insert(all.cuts.end(), found.cuts.begin() + 1, found.cuts.end());
    all.cost = (Bytes{all.cost} + Bytes{found.cost}).count();
  }
  return all;
}

Partition balanced_memory(const CutTask& task) {
  return {cut_passes(task, memory_weights(task, task.parameters.keeps_all)).cuts, std::nullopt};
}

Partition pipedream(const CutTask& task) {
  const SlotTimes times(task);
  const SlotWeights weights{
      [&](std::size_t slot, std::size_t stage) { return times.before(slot, stage); },
      [](std::size_t, std::size_t) { return 0; },
      [&](std::size_t slot, std::size_t stage) { return times.crossing(slot, stage); },
      task.problem.work};
  SlotCuts found = cut_passes(task, weights);
  return {std::move(found.cuts), Time{found.cost}};
}

/// A slot costs what its stages take on its device, and what its device waits for: messages across
/// the cut before it. The factors are those of twice the estimated time of a mini-batch of m
/// microbatches on p devices: all m go through every pass, and at both ends p - 1 slots of some
/// pass are waited for: between those of the first pass, where the pipeline fills and drains, and
/// those of the costliest one, so that the one counts half, and the other in full.
///
/// Of the cuts of a pass whose slots cost no more than the costliest of the pass has to, those are
/// taken with which the device that has most to do in this pass and those before has least to do;
/// of these, those whose greatest slot holds least.
Partition balanced_passes(const CutTask& task) {
  const SlotTimes times(task);
  const SlotWeights::Weight none = [](std::size_t, std::size_t) { return 0; };
  const SlotWeights::Weight before = [&](std::size_t slot, std::size_t stage) {
    return times.before(slot, stage);
  };
  const SlotWeights weights{
      before, [&](std::size_t slot, std::size_t stage) { return times.crossing(slot, stage); },
      none, task.problem.work};
  const std::int64_t m = task.parameters.microbatches;
  const std::size_t devices = task.slots() / task.passes();
  const auto waiting = static_cast<std::int64_t>(devices) - 1;
  const PassCuts best = least_sum_over_passes(weights, task.stages(), devices, task.passes(),
                                              {2 * m, 2 * waiting, waiting});
  std::map<ProcessorId, std::int64_t> done;  // by the passes so far
  const SlotWeights load{before,
                         [&](std::size_t slot, std::size_t) { return done[task.of_slots[slot]]; },
                         none, task.problem.work};
  const SlotWeights memory = memory_weights(task, false);
  std::vector<std::size_t> cuts{0};
  for (std::size_t pass = 0; pass < best.passes.size(); ++pass) {
    const SlotRun& run = best.passes[pass];
    const SlotCap by_cost{weights, best.costs[pass]};
    const SlotCap by_load{load, least_greatest(load, run, {by_cost}).cost};
    const SlotCuts found = least_greatest(memory, run, {by_cost, by_load});
    for (std::size_t k = 0; k < devices; ++k) {
      const std::size_t slot = run.first_slot + k;
      done[task.of_slots[slot]] +=
          times.before(slot, found.cuts[k + 1]) - times.before(slot, found.cuts[k]);
    }
    cuts.insert(cuts.end(), found.cuts.begin() + 1, found.cuts.end());
  }
  return {std::move(cuts), std::nullopt};
}

/// The most slots x stages that a search over cuts looks at.
constexpr std::size_t kMostCuts = 100'000'000;

void refuse_too_many_cuts(const CutTask& task, const std::string& name, const Location& where) {
  if (task.slots() <= kMostCuts / task.stages()) return;
  refuse(where, fmt::format("`{}` looks at every cut of {} stages for {} slots; it does "
                            "so for at most {} pairs",
                            name, task.stages(), task.slots(), kMostCuts));
}

Partition named_partition(const CutTask& task, const std::string& name, const Location& where) {
  const PipelineParameters& parameters = task.parameters;
  if (name == "1f1b-star")
    refuse(where, fmt::format("`1f1b-star` finds the cuts for `pipeline/1f1b-star`; "
                              "`{}` has another schedule",
                              parameters.name));
  if (name == "madpipe")
    refuse(where, fmt::format("`madpipe` finds cuts and placement for "
                              "`pipeline/periodic`; `{}` has another schedule",
                              parameters.name));
  if (name == "balanced-memory" && !parameters.equal_replicas())
    refuse(where, "`balanced-memory` cuts for stages with as many replicas each");
  refuse_too_many_cuts(task, name, where);
  return name == "pipedream" ? pipedream(task) : balanced_memory(task);
}

/// A pipeline of one pass is cut by time alone.
std::vector<Partition> balanced(const CutTask& task, const Location& where) {
  Partition slots =
      balanced_partition(stage_times(task.problem, task.of_slots.front()), task.slots());
  if (task.passes() == 1) return {std::move(slots)};
  refuse_too_many_cuts(task, "balanced", where);
  std::vector<Partition> both{balanced_passes(task)};
  if (slots.cuts != both.front().cuts) both.push_back(std::move(slots));
  return both;
}

Partition explicit_partition(const std::vector<std::int64_t>& cuts, std::size_t stages,
                             std::size_t slots, const Location& where) {
  if (cuts.size() + 1 != slots)
    refuse(where, fmt::format("{} cuts make {} slots; expected {} (devices x virtual_stages)",
                              cuts.size(), cuts.size() + 1, slots));
  Partition partition{{0}};
  for (const std::int64_t cut : cuts) {
    if (static_cast<std::size_t>(cut) <= partition.cuts.back() ||
        static_cast<std::size_t>(cut) >= stages)
      refuse(where, fmt::format("cut {} is not between {} and {}; cuts increase and leave no slot "
                                "empty",
                                cut, partition.cuts.back(), stages));
    partition.cuts.push_back(static_cast<std::size_t>(cut));
  }
  partition.cuts.push_back(stages);
  return partition;
}

}  // namespace

Partition balanced_partition(const std::vector<Time>& times, std::size_t slots) {
  Time low = *std::ranges::max_element(times);
  Time high = std::accumulate(times.begin(), times.end(), Time{});
  while (low < high) {
    const Time middle{low.count() + (high.count() - low.count()) / 2};
    if (fill(times, slots, middle))
      high = middle;
    else
      low = middle + Time{1};
  }
  return *fill(times, slots, low);
}

std::vector<Partition> partitions_for(const Problem& problem, const PipelineParameters& parameters,
                                      const std::vector<ProcessorId>& devices,
                                      const SlotPlacement& placement) {
  const std::size_t stages = problem.chain.stages.size();
  const std::size_t slots = devices.size() * static_cast<std::size_t>(parameters.virtual_stages);
  const Location where = parameters.partition ? parameters.partition->where : parameters.where;
  if (parameters.layout) {
    if (parameters.partition)
      refuse(parameters.layout->where,
             "`layout` and `partition` both say where to cut; give one of the two");
    return {layout_partition(problem, *parameters.layout, slots)};
  }
  if (slots > stages)
    refuse(where, fmt::format("{} devices x {} virtual stages make {} slots, but `{}` can be cut "
                              "into {} stages at most",
                              devices.size(), parameters.virtual_stages, slots,
                              problem.workload.name, stages));
  if (stages == slots && !parameters.partition) {
    Partition one_each{std::vector<std::size_t>(slots + 1), std::nullopt};
    std::iota(one_each.cuts.begin(), one_each.cuts.end(), std::size_t{0});
    return {std::move(one_each)};
  }
  CutTask task{problem, parameters, {}};
  for (const std::uint32_t device :
       placement(static_cast<std::uint32_t>(devices.size()),
                 static_cast<std::uint32_t>(parameters.virtual_stages)))
    task.of_slots.push_back(devices[device]);
  if (!parameters.partition) return balanced(task, where);
  const PartitionChoice& choice = parameters.partition->value;
  if (const auto* cuts = std::get_if<std::vector<std::int64_t>>(&choice))
    return {explicit_partition(*cuts, stages, slots, where)};
  const auto& name = std::get<std::string>(choice);
  if (name == "balanced") return balanced(task, where);
  return {named_partition(task, name, where)};
}

Partition partition_for(const Problem& problem, const PipelineParameters& parameters,
                        const std::vector<ProcessorId>& devices, const SlotPlacement& placement) {
  return partitions_for(problem, parameters, devices, placement).front();
}

PartitionChoice as_choice(const Partition& partition) {
  return std::vector<std::int64_t>(partition.cuts.begin() + 1, partition.cuts.end() - 1);
}

}  // namespace plimsoll
