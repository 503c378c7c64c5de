#include "policy/pipeline/partition/partition.hpp"

#include "policy/claims/copy_time.hpp"
#include "policy/pipeline/partition/layout.hpp"
#include "policy/pipeline/partition/stage_bytes.hpp"
#include "policy/pipeline/partition/stage_times.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// Fills slots greedily up to `limit` each, leaving one stage for every slot still to come.
std::optional<Partition> fill(const std::vector<Time>& times, std::size_t slots, Time limit) {
  Partition partition{{0}};
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

/// Which cuts leave the slots from a given one on at most `limit` each.
class Suffixes {
 public:
  Suffixes(const SlotWeights& weights, std::size_t stages, std::size_t slots, std::int64_t limit)
      : weights_(weights), stages_(stages), slots_(slots), limit_(limit) {
    can_.assign(slots + 1, std::vector<bool>(stages + 1, false));
    can_[slots][stages] = true;
    for (std::size_t slot = slots; slot-- > 0;) find_begins(slot);
  }

  [[nodiscard]] bool feasible() const { return can_[0][0]; }

  /// Every slot takes as many stages as leave the rest a way. Precondition: feasible.
  [[nodiscard]] Partition fullest_first() const {
    Partition partition{{0}};
    for (std::size_t slot = 0; slot < slots_; ++slot) {
      const std::size_t begin = partition.cuts.back();
      std::size_t longest = begin;
      for (std::size_t end = begin + 1; end <= stages_ && cost(slot, begin, end) <= limit_; ++end)
        if (can_[slot + 1][end]) longest = end;
      partition.cuts.push_back(longest);
    }
    return partition;
  }

 private:
  std::int64_t cost(std::size_t slot, std::size_t begin, std::size_t end) const {
    return weights_.before(slot, end) - weights_.before(slot, begin) +
           (slot == 0 ? 0 : weights_.entry(slot, begin));
  }

  /// A slot may begin where it reaches the nearest place at which the next one may.
  void find_begins(std::size_t slot) {
    std::size_t nearest = stages_ + 1;
    for (std::size_t begin = stages_; begin-- > 0;) {
      if (can_[slot + 1][begin + 1]) nearest = begin + 1;
      if (nearest > stages_ || (slot == 0) != (begin == 0)) continue;
      can_[slot][begin] = cost(slot, begin, nearest) <= limit_ &&
                          (slot == 0 || weights_.crossing(slot, begin) <= limit_);
    }
  }

  const SlotWeights& weights_;
  const std::size_t stages_, slots_;
  const std::int64_t limit_;
  std::vector<std::vector<bool>> can_;  ///< by slot and where it begins
};

/// The microbatches that slot `k` keeps at once.
std::int64_t kept_microbatches(const PipelineParameters& parameters, std::size_t slot,
                               std::size_t slots) {
  if (parameters.name == "pipeline/gpipe") return parameters.microbatches;
  return std::min(parameters.microbatches, static_cast<std::int64_t>(slots - slot));
}

Partition balanced_memory(const Problem& problem, const PipelineParameters& parameters,
                          std::size_t slots) {
  const std::vector<StageBytes> bytes = stage_bytes(problem);
  const auto resident = sums_before(bytes.size(), [&](std::size_t s) {
    return (bytes[s].resident + bytes[s].stays * parameters.microbatches).count();
  });
  const auto inputs =
      sums_before(bytes.size(), [&](std::size_t s) { return input_bytes(bytes[s]).count(); });
  const auto saved =
      sums_before(bytes.size(), [&](std::size_t s) { return bytes[s].saved.count(); });
  const auto kept = [&](std::size_t slot) { return kept_microbatches(parameters, slot, slots); };
  const SlotWeights weights{
      [&](std::size_t slot, std::size_t s) {
        return (Bytes{resident[s]} + Bytes{saved[s]} * kept(slot) +
                Bytes{inputs[s]} * parameters.inputs_there(kept(slot), parameters.microbatches))
            .count();
      },
      [&](std::size_t slot, std::size_t s) { return (bytes[s].received * kept(slot)).count(); },
      [](std::size_t, std::size_t) { return 0; }};
  return least_greatest(weights, bytes.size(), slots).partition;
}

/// The time of what crosses a cut before `stage`, from one device to the next and back.
Time transfer_at_cut(const Problem& problem, const std::vector<ProcessorId>& devices,
                     std::size_t slot, std::size_t stage) {
  const MemoryId from = problem.platform[devices[slot - 1]].memory;
  const MemoryId to = problem.platform[devices[slot]].memory;
  if (!problem.topology.route(from, to) || !problem.topology.route(to, from)) return Time{};
  const ChainStage& before = problem.chain.stages[stage - 1];
  return copy_time(problem, from, to, before.output_bytes) +
         copy_time(problem, to, from, before.gradient_bytes);
}

Partition pipedream(const Problem& problem, const std::vector<ProcessorId>& devices) {
  const std::size_t stages = problem.chain.stages.size();
  std::vector<std::vector<std::int64_t>> before;
  for (const ProcessorId device : devices) {
    const std::vector<Time> times = stage_times(problem, device);
    before.push_back(sums_before(stages, [&](std::size_t s) { return times[s].count(); }));
  }
  const SlotWeights weights{[&](std::size_t slot, std::size_t s) { return before[slot][s]; },
                            [](std::size_t, std::size_t) { return 0; },
                            [&](std::size_t slot, std::size_t s) {
                              return transfer_at_cut(problem, devices, slot, s).count();
                            }};
  LeastGreatest found = least_greatest(weights, stages, devices.size());
  found.partition.model_period = Time{found.cost};
  return std::move(found.partition);
}

/// The most slots x stages that a search over cuts looks at.
constexpr std::size_t kMostCuts = 100'000'000;

Partition named_partition(const Problem& problem, const PipelineParameters& parameters,
                          const std::vector<ProcessorId>& devices, const std::string& name,
                          const Location& where) {
  const std::size_t stages = problem.chain.stages.size();
  if (name == "1f1b-star")
    refuse_parameter(where, fmt::format("`1f1b-star` finds the cuts for `pipeline/1f1b-star`; "
                                        "`{}` has another schedule",
                                        parameters.name));
  if (name == "madpipe")
    refuse_parameter(where, fmt::format("`madpipe` finds cuts and placement for "
                                        "`pipeline/periodic`; `{}` has another schedule",
                                        parameters.name));
  if (name == "balanced-memory" && !parameters.equal_replicas())
    refuse_parameter(where, "`balanced-memory` cuts for stages with as many replicas each");
  if (parameters.virtual_stages != 1)
    refuse_parameter(where, fmt::format("`{}` cuts for one stage a device; virtual_stages is {}",
                                        name, parameters.virtual_stages));
  if (devices.size() > kMostCuts / stages)
    refuse_parameter(where, fmt::format("`{}` looks at every cut of {} stages for {} devices; it "
                                        "does so for at most {} pairs",
                                        name, stages, devices.size(), kMostCuts));
  return name == "pipedream" ? pipedream(problem, devices)
                             : balanced_memory(problem, parameters, devices.size());
}

Partition explicit_partition(const std::vector<std::int64_t>& cuts, std::size_t stages,
                             std::size_t slots, const Location& where) {
  if (cuts.size() + 1 != slots)
    refuse_parameter(where,
                     fmt::format("{} cuts make {} slots; expected {} (devices x virtual_stages)",
                                 cuts.size(), cuts.size() + 1, slots));
  Partition partition{{0}};
  for (const std::int64_t cut : cuts) {
    if (static_cast<std::size_t>(cut) <= partition.cuts.back() ||
        static_cast<std::size_t>(cut) >= stages)
      refuse_parameter(
          where, fmt::format("cut {} is not between {} and {}; cuts increase and leave no slot "
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

LeastGreatest least_greatest(const SlotWeights& weights, std::size_t stages, std::size_t slots) {
  std::int64_t low = 0, high = 0;
  for (std::size_t slot = 0; slot < slots; ++slot) {
    std::int64_t aside = 0;
    for (std::size_t s = 1; slot > 0 && s < stages; ++s)
      aside = std::max({aside, weights.entry(slot, s), weights.crossing(slot, s)});
    high = std::max(high, (Bytes{weights.before(slot, stages)} + Bytes{aside}).count());
  }
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (Suffixes(weights, stages, slots, middle).feasible())
      high = middle;
    else
      low = middle + 1;
  }
  return {Suffixes(weights, stages, slots, low).fullest_first(), low};
}

Partition partition_for(const Problem& problem, const PipelineParameters& parameters,
                        const std::vector<ProcessorId>& devices) {
  const std::size_t stages = problem.chain.stages.size();
  const std::size_t slots = devices.size() * static_cast<std::size_t>(parameters.virtual_stages);
  const Location where = parameters.partition ? parameters.partition->where : parameters.where;
  if (parameters.layout) {
    if (parameters.partition)
      refuse_parameter(parameters.layout->where,
                       "`layout` and `partition` both say where to cut; give one of the two");
    return layout_partition(problem, *parameters.layout, slots);
  }
  if (slots > stages)
    refuse_parameter(
        where, fmt::format("{} devices x {} virtual stages make {} slots, but `{}` can be cut "
                           "into {} stages at most",
                           devices.size(), parameters.virtual_stages, slots, problem.workload.name,
                           stages));
  if (parameters.partition) {
    const PartitionChoice& choice = parameters.partition->value;
    if (const auto* cuts = std::get_if<std::vector<std::int64_t>>(&choice))
      return explicit_partition(*cuts, stages, slots, where);
    if (const auto& name = std::get<std::string>(choice); name != "balanced")
      return named_partition(problem, parameters, devices, name, where);
  }
  if (stages == slots && !parameters.partition) {
    Partition one_each{std::vector<std::size_t>(slots + 1)};
    std::iota(one_each.cuts.begin(), one_each.cuts.end(), std::size_t{0});
    return one_each;
  }
  return balanced_partition(stage_times(problem, devices.front()), slots);
}

}  // namespace plimsoll
