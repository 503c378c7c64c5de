#include "policy/pipeline/schedule/replication.hpp"

#include "policy/pipeline/partition/pipedream_replicas.hpp"
#include "policy/pipeline/schedule/replica_symmetry.hpp"
#include "policy/pipeline/schedule/slot_savings.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// The most steps of one all-reduce that is played in full, and of turns that repeat.
constexpr std::size_t kMostReductions = 1'000'000;
constexpr std::int64_t kMostTurns = 4096;

/// What the backwards of a slot add up over microbatches.
std::vector<TensorId> gradients_of(const Problem& problem, const Slots& slots, std::size_t slot) {
  std::vector<TensorId> gradients;
  slots.for_backwards(slot, [&](Slots::StageBackward operators) {
    for (const OperatorId op : operators)
      for (const TensorId made : problem.workload.list(problem.workload[op].kept))
        if (problem.workload[made].lifetime == Lifetime::accumulated) gradients.push_back(made);
  });
  std::ranges::sort(gradients);
  gradients.erase(std::unique(gradients.begin(), gradients.end()), gradients.end());
  return gradients;
}

void refuse_tree_of(std::size_t replicas, const PipelineParameters& parameters) {
  if (parameters.all_reduce == AllReduce::ring || std::has_single_bit(replicas)) return;
  refuse_parameter(where_replicated(parameters),
                   fmt::format("a tree halves what it reduces until one part is left, so it takes "
                               "2, 4, 8, .. replicas; found {}",
                               replicas));
}

/// The ways of one replica: its messages, and its reductions.
std::vector<ReplicaWay> ways_of(const Problem& problem, const Slots& slots,
                                const std::vector<std::uint32_t>& partners,
                                const std::vector<CollectiveSend>& sends) {
  std::vector<ReplicaWay> ways;
  const auto add = [&](const ReplicaWay& way) {
    if (std::ranges::find(ways, way) == ways.end()) ways.push_back(way);
  };
  for (std::size_t slot = 0; slot < slots.count(); ++slot) {
    const std::uint32_t device = slots.device(slot);
    for (const bool forward : {true, false})
      for (const Message& message : slots.messages(slot, forward)) add({device, message.to_device});
    if (gradients_of(problem, slots, slot).empty()) continue;
    for (const CollectiveSend& send : sends) add({device, device, send.to});
  }
  for (std::uint32_t device = 0; device < partners.size(); ++device)
    add({device, partners[device]});
  return ways;
}

/// Why one replica cannot be played for all, or "".
std::string cannot_be_folded(const Problem& problem,
                             const std::vector<std::vector<ProcessorId>>& groups,
                             const std::vector<ReplicaWay>& ways, AllReduce algorithm) {
  for (const Link& link : problem.platform.links)
    if (link.power || link.energy)
      return fmt::format("link `{}` draws power, which would be summed up for one only", link.name);
  return told_apart(problem, groups, ways, algorithm == AllReduce::tree);
}

}  // namespace

const Location& where_replicated(const PipelineParameters& parameters) {
  if (parameters.data_parallel) return parameters.data_parallel->where;
  if (parameters.replicas) return parameters.replicas->where;
  return parameters.partition ? parameters.partition->where : parameters.where;
}

Replicas::Replicas(const std::vector<std::vector<ProcessorId>>& by_stage) : begin_{0} {
  for (const auto& group : by_stage) {
    devices_.insert(devices_.end(), group.begin(), group.end());
    begin_.push_back(static_cast<std::uint32_t>(devices_.size()));
  }
}

Schedule dealt_out(const Schedule& of_one, const Replicas& replicas) {
  const std::uint32_t n = replicas.count(0);
  Schedule schedule;
  schedule.messages_in_orders = of_one.messages_in_orders;
  schedule.recomputed = of_one.recomputed;
  schedule.turned_from = of_one.turned_from;
  const auto of_replica = [&](std::vector<std::uint32_t> placement, std::uint32_t replica) {
    for (std::uint32_t& device : placement) device = replicas.device(device, replica);
    return placement;
  };
  for (std::uint32_t replica = 0; replica < n; ++replica) {
    schedule.dealt.push_back(of_replica(of_one.placement, replica));
    for (const auto& placement : of_one.turned)
      schedule.turned.push_back(of_replica(placement, replica));
  }
  schedule.placement = schedule.dealt.front();
  for (std::uint32_t stage = 0; stage < replicas.stages(); ++stage)
    for (std::uint32_t replica = 0; replica < n; ++replica) {
      auto& order = schedule.orders.emplace_back(of_one.orders[stage]);
      for (Task& task : order) task.microbatch = task.microbatch * n + replica;
      if (!of_one.partners.empty())
        schedule.partners.push_back(replicas.device(of_one.partners[stage], replica));
    }
  return schedule;
}

Schedule dealt_in_turn(const Replicas& replicas, const PipelineParameters& parameters,
                       ReplicaOrder order) {
  std::int64_t turns = 1;
  for (std::uint32_t stage = 0; stage < replicas.stages() && turns <= kMostTurns; ++stage)
    turns = std::lcm(turns, std::int64_t{replicas.count(stage)});
  if (turns > kMostTurns)
    refuse_parameter(where_replicated(parameters),
                     fmt::format("with these replicas a microbatch takes the way of the first one "
                                 "again only after more than {}",
                                 kMostTurns));
  const auto m = static_cast<std::uint32_t>(parameters.microbatches);
  Schedule schedule;
  for (std::uint32_t turn = 0; turn < turns; ++turn) {
    auto& placement = schedule.dealt.emplace_back();
    for (std::uint32_t stage = 0; stage < replicas.stages(); ++stage)
      placement.push_back(replicas.device(stage, turn % replicas.count(stage)));
  }
  schedule.placement = schedule.dealt.front();
  for (std::uint32_t stage = 0; stage < replicas.stages(); ++stage)
    for (std::uint32_t replica = 0; replica < replicas.count(stage); ++replica) {
      std::vector<std::uint32_t> own;
      for (std::uint32_t k = replica; k < m; k += replicas.count(stage)) own.push_back(k);
      if (own.empty())
        refuse_parameter(
            where_replicated(parameters),
            fmt::format("with {} of them, `microbatches` leaves replica {} of stage {} without one",
                        m, replica + 1, stage + 1));
      schedule.orders.push_back(order(replicas, stage, own));
    }
  return schedule;
}

void add_all_reduces(PlanBuilder& builder, const Problem& problem,
                     const PipelineParameters& parameters,
                     const std::vector<const Slots*>& placements) {
  std::vector<std::size_t> places(problem.platform.memories.size());
  std::size_t next = 0;
  for (const ProcessorId device : all_devices(problem, parameters))
    places[static_cast<std::size_t>(problem.platform[device].memory)] = next++;
  for (std::size_t slot = placements.front()->count(); slot-- > 0;) {
    std::vector<MemoryId> members;
    for (const Slots* slots : placements) {
      const MemoryId memory = slots->memory(slots->device(slot));
      if (std::ranges::find(members, memory) == members.end()) members.push_back(memory);
    }
    std::ranges::sort(members, {}, [&](MemoryId m) { return places[static_cast<std::size_t>(m)]; });
    refuse_tree_of(members.size(), parameters);
    if (members.size() > kMostReductions / (2 * members.size()))
      refuse_parameter(where_replicated(parameters),
                       fmt::format("{} replicas reduce their gradients in more than {} steps",
                                   members.size(), kMostReductions),
                       parameters.equal_replicas() ? "`data_parallel` plays one of them" : "");
    add_all_reduce(builder, parameters.all_reduce, members,
                   gradients_of(problem, *placements.front(), slot));
  }
}

void add_folded_all_reduces(PlanBuilder& builder, const Problem& problem,
                            const PipelineParameters& parameters, const Slots& slots,
                            const std::vector<std::uint32_t>& partners) {
  const auto groups = replica_groups(problem, parameters);
  const std::size_t n = groups.front().size();
  const auto refuse_copies = [&](const auto& given, const char* way) {
    if (n > 1 && given)
      refuse_parameter(given->where,
                       fmt::format("with `data_parallel` one replica is played for all, whose "
                                   "copies {} the host would meet",
                                   way),
                       fmt::format("`replicas: {}` plays every one", n));
  };
  refuse_copies(parameters.offload, "to");
  refuse_copies(parameters.load_from, "from");
  refuse_tree_of(n, parameters);
  const auto ways = ways_of(problem, slots, partners,
                            sends_of(parameters.all_reduce, static_cast<std::uint32_t>(n), 0));
  const std::string why = cannot_be_folded(problem, groups, ways, parameters.all_reduce);
  if (!why.empty())
    refuse_parameter(where_replicated(parameters), "one replica cannot be played for all: " + why,
                     fmt::format("`replicas: {}` plays every one", n));
  for (std::size_t slot = slots.count(); slot-- > 0;) {
    std::vector<MemoryId> members;
    for (const ProcessorId device : groups[slots.device(slot)])
      members.push_back(problem.platform[device].memory);
    add_folded_all_reduce(builder, parameters.all_reduce, members,
                          gradients_of(problem, slots, slot));
  }
  for (const auto& group : groups)
    for (std::size_t replica = 1; replica < n; ++replica)
      builder.mirror(group[replica], group.front());
}

namespace {

ReplicatedPartition partition_in_turn(const Problem& problem,
                                      const PipelineParameters& parameters) {
  if (parameters.finds_replicas())
    return pipedream_replicas(problem, all_devices(problem, parameters),
                              parameters.partition->where);
  return {partition_for(problem, parameters, pipeline_devices(problem, parameters)),
          replica_groups(problem, parameters)};
}

}  // namespace

Planned plan_in_turn(const Problem& problem, const PipelineParameters& parameters,
                     ReplicaOrder order) {
  refuse_too_many_steps(problem, parameters);
  const auto [partition, by_stage] = partition_in_turn(problem, parameters);
  const Replicas replicas(by_stage);
  Schedule schedule = dealt_in_turn(replicas, parameters, order);
  save_memory(schedule, problem, parameters, replicas.devices());
  return plan_schedule(problem, parameters, schedule, partition, replicas.devices());
}

}  // namespace plimsoll
