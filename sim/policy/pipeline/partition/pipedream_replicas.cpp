#include "policy/pipeline/partition/pipedream_replicas.hpp"

#include "plan/mirror_problems.hpp"
#include "policy/entry.hpp"
#include "policy/pipeline/partition/stage_times.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// Of states x machines, which the program squares; some seconds.
constexpr std::size_t kMostPairs = 10'000;

ByteRate least_bandwidth(const Problem& problem, const std::vector<ProcessorId>& devices,
                         const Location& where) {
  ByteRate least = ByteRate::unlimited();
  for (const ProcessorId from : devices)
    for (const ProcessorId to : devices) {
      const MemoryId source = problem.platform[from].memory, target = problem.platform[to].memory;
      if (from == to) continue;
      const Route* route = problem.topology.route(source, target);
      if (route == nullptr)
        refuse_parameter(
            where, fmt::format("no link leads from `{}` to `{}`", problem.platform[source].name,
                               problem.platform[target].name));
      least = std::min(least, route->bandwidth);
    }
  return least;
}

/// What the replicas of a stage reduce.
Bytes gradients(const Problem& problem, std::size_t stage) {
  std::vector<TensorId> made;
  for (const OperatorId op : problem.chain.backward(stage))
    for (const TensorId tensor : problem.workload.list(problem.workload[op].kept))
      if (problem.workload[tensor].lifetime == Lifetime::accumulated) made.push_back(tensor);
  std::ranges::sort(made);
  made.erase(std::unique(made.begin(), made.end()), made.end());
  Bytes sum;
  for (const TensorId tensor : made) sum += problem.workload[tensor].bytes;
  return sum;
}

}  // namespace

std::vector<ReplicatedStage> pipedream_replicas(const Problem& problem,
                                                const std::vector<ProcessorId>& devices,
                                                const Location& where) {
  const std::size_t stages = problem.chain.stages.size();
  if (devices.size() > kMostPairs / stages)
    refuse_parameter(where, fmt::format("PipeDream's program looks at every cut of {} stages for "
                                        "{} devices; it does so for at most {} pairs",
                                        stages, devices.size(), kMostPairs));
  for (const ProcessorId device : devices)
    if (!are_alike(problem.platform, devices.front(), device))
      refuse_parameter(where, fmt::format("PipeDream's program takes equal machines; `{}` is not "
                                          "like `{}`",
                                          problem.platform[device].name,
                                          problem.platform[devices.front()].name));
  const std::vector<Time> times = stage_times(problem, devices.front());
  std::vector<PipedreamState> states;
  for (std::size_t s = 0; s < stages; ++s) {
    const ChainStage& it = problem.chain.stages[s];
    states.push_back({times[s], it.saved_bytes, gradients(problem, s), it.output_bytes});
  }
  const PipedreamLevel level{static_cast<std::uint32_t>(devices.size()),
                             least_bandwidth(problem, devices, where)};
  return pipedream_partition(states, {level}, {.compression_ratio = 1})->levels.front();
}

}  // namespace plimsoll
