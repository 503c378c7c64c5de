#include "policy/pipeline/partition.hpp"

#include "workload/cost_model.hpp"

#include <algorithm>
#include <numeric>

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

/// Forward and backward of every chain stage on one processor.
std::vector<Time> stage_times(const Problem& problem, ProcessorId processor) {
  const std::vector<Time> times = durations(problem.workload, problem.platform, processor);
  std::vector<Time> sums(problem.chain.stages.size());
  for (std::size_t s = 0; s < sums.size(); ++s) {
    const ChainStage& stage = problem.chain.stages[s];
    for (std::uint32_t op = stage.forward_begin; op < stage.forward_end; ++op) sums[s] += times[op];
    for (const OperatorId op : problem.chain.backward(s))
      sums[s] += times[static_cast<std::size_t>(op)];
  }
  return sums;
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

Partition partition_for(const Problem& problem, const PipelineParameters& parameters,
                        const std::vector<ProcessorId>& devices) {
  const std::size_t stages = problem.chain.stages.size();
  const std::size_t slots = devices.size() * static_cast<std::size_t>(parameters.virtual_stages);
  const Location where = parameters.partition ? parameters.partition->where : parameters.where;
  if (slots > stages)
    refuse_parameter(
        where, fmt::format("{} devices x {} virtual stages make {} slots, but `{}` can be cut "
                           "into {} stages at most",
                           devices.size(), parameters.virtual_stages, slots, problem.workload.name,
                           stages));
  if (parameters.partition)
    if (const auto* cuts = std::get_if<std::vector<std::int64_t>>(&parameters.partition->value))
      return explicit_partition(*cuts, stages, slots, where);
  if (stages == slots && !parameters.partition) {
    Partition one_each{std::vector<std::size_t>(slots + 1)};
    std::iota(one_each.cuts.begin(), one_each.cuts.end(), std::size_t{0});
    return one_each;
  }
  return balanced_partition(stage_times(problem, devices.front()), slots);
}

}  // namespace plimsoll
