#include "policy/pipeline/planning/replication.hpp"

#include "policy/pipeline/partition/pipedream_replicas.hpp"
#include "policy/pipeline/reruns/rerun_planner.hpp"
#include "policy/pipeline/schedule/slot_savings.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// The most turns that repeat.
constexpr std::int64_t kMostTurns = 4096;

}  // namespace

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
  schedule.updates = of_one.updates;
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
    refuse(where_replicated(parameters),
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
        refuse(
            where_replicated(parameters),
            fmt::format("with {} of them, `microbatches` leaves replica {} of stage {} without one",
                        m, replica + 1, stage + 1));
      schedule.orders.push_back(order(replicas, stage, own));
    }
  return schedule;
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
  return plan_with_reruns(problem, parameters, schedule, partition, replicas.devices());
}

}  // namespace plimsoll
