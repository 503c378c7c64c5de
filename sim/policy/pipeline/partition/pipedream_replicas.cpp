#include "policy/pipeline/partition/pipedream_replicas.hpp"

#include "plan/core/mirror_problems.hpp"
#include "policy/interface/entry.hpp"
#include "policy/pipeline/partition/stage_times.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// Machines, of which the levels look at every two.
constexpr std::size_t kMostMachines = 1024;

/// Splits that the program looks at; some seconds.
constexpr double kMostSplits = 2e9;

/// Bandwidths between devices.
class Ways {
 public:
  Ways(const Problem& problem, const std::vector<ProcessorId>& devices, const Location& where)
      : devices_(devices.size()) {
    for (const ProcessorId from : devices)
      for (const ProcessorId to : devices) {
        const MemoryId source = problem.platform[from].memory, target = problem.platform[to].memory;
        const Route* route = problem.topology.route(source, target);
        if (route == nullptr)
          refuse(where, fmt::format("no link leads from `{}` to `{}`",
                                    problem.platform[source].name, problem.platform[target].name));
        bandwidths_.push_back(route->bandwidth);
      }
  }

  /// Of blocks of so many devices: the least bandwidth within one, and the greatest between two.
  struct Blocks {
    ByteRate least_within = ByteRate::unlimited();
    std::optional<ByteRate> greatest_between;
    [[nodiscard]] bool is_level() const {
      return !greatest_between || least_within > *greatest_between;
    }
  };
  [[nodiscard]] Blocks blocks_of(std::size_t size) const {
    Blocks blocks;
    for (std::size_t from = 0; from < devices_; ++from)
      for (std::size_t to = 0; to < devices_; ++to) {
        if (from == to) continue;
        const ByteRate way = bandwidths_[from * devices_ + to];
        if (from / size == to / size)
          blocks.least_within = std::min(blocks.least_within, way);
        else
          blocks.greatest_between = std::max(blocks.greatest_between.value_or(way), way);
      }
    return blocks;
  }

 private:
  std::size_t devices_;
  std::vector<ByteRate> bandwidths_;  ///< from x devices + to
};

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

void refuse_too_many(std::size_t stages, const std::vector<PipedreamLevel>& levels,
                     const Location& where) {
  double splits = 0;
  for (std::size_t l = 0; l < levels.size(); ++l) {
    const double states = static_cast<double>(stages), machines = levels[l].machines;
    const bool outermost = l + 1 == levels.size();
    splits += states * states * (outermost ? 1.0 / 2 : states / 6) * machines * machines / 2;
  }
  if (splits > kMostSplits)
    refuse(where, fmt::format("PipeDream's program looks at some {:.1e} ways to split {} "
                              "stages over these devices; it does so for at most {:.0e}",
                              splits, stages, kMostSplits));
}

void refuse_unlike(const Problem& problem, const std::vector<ProcessorId>& devices,
                   const Location& where) {
  for (const ProcessorId device : devices)
    if (!are_alike(problem.platform, devices.front(), device))
      refuse(where,
             fmt::format("PipeDream's program takes equal machines; `{}` is not "
                         "like `{}`",
                         problem.platform[device].name, problem.platform[devices.front()].name));
  if (devices.size() > kMostMachines)
    refuse(where, fmt::format("PipeDream's program looks at the ways between any two of "
                              "{} devices; it does so for at most {}",
                              devices.size(), kMostMachines));
}

/// Follows a partition from its outermost level in, to the devices of each stage.
class Deal {
 public:
  Deal(const PipedreamPartition& partition, const std::vector<PipedreamLevel>& levels,
       const std::vector<ProcessorId>& devices)
      : partition_(partition), devices_(devices), next_(levels.size(), 0) {
    std::size_t size = 1;
    for (const PipedreamLevel& level : levels) {
      sizes_.insert(sizes_.begin(), size);
      size *= level.machines;
    }
  }

  [[nodiscard]] ReplicatedPartition all() {
    result_.partition = {{0}, partition_.stage_time};
    deal(0, partition_.levels.front().back().end, {0});
    return std::move(result_);
  }

 private:
  /// Cuts the stages up to `end` within `blocks`, which all hold them: the first device of each, in
  /// the order in which they take microbatches.
  void deal(std::size_t level, std::size_t end, const std::vector<std::size_t>& blocks) {
    std::size_t offset = 0;
    do {
      const ReplicatedStage& stage = partition_.levels[level][next_[level]++];
      std::vector<std::size_t> within;
      for (std::uint32_t replica = 0; replica < stage.replicas; ++replica)
        for (const std::size_t block : blocks)
          within.push_back(block + (offset + replica) * sizes_[level]);
      offset += stage.replicas;
      if (level + 1 < sizes_.size())
        deal(level + 1, stage.end, within);
      else
        add(stage, within);
      if (stage.end == end) return;
    } while (true);
  }

  void add(const ReplicatedStage& stage, const std::vector<std::size_t>& machines) {
    result_.partition.cuts.push_back(stage.end);
    auto& replicas = result_.replicas.emplace_back();
    for (const std::size_t machine : machines) replicas.push_back(devices_[machine]);
  }

  const PipedreamPartition& partition_;
  const std::vector<ProcessorId>& devices_;
  std::vector<std::size_t> sizes_;  ///< by level, the outermost first: devices of a machine of it
  std::vector<std::size_t> next_;   ///< by level: the stage that comes next
  ReplicatedPartition result_;
};

}  // namespace

std::vector<PipedreamLevel> levels_of(const Problem& problem,
                                      const std::vector<ProcessorId>& devices,
                                      const Location& where) {
  const Ways ways(problem, devices, where);
  std::vector<PipedreamLevel> levels;
  std::size_t within = 1;
  for (std::size_t size = std::min<std::size_t>(2, devices.size()); size <= devices.size();
       ++size) {
    if (devices.size() % size != 0) continue;
    problem.work.add(devices.size() * devices.size());
    const Ways::Blocks blocks = ways.blocks_of(size);
    if (!blocks.is_level()) continue;
    levels.push_back({static_cast<std::uint32_t>(size / within), blocks.least_within});
    within = size;
  }
  return levels;
}

ReplicatedPartition pipedream_replicas(const Problem& problem,
                                       const std::vector<ProcessorId>& devices,
                                       const Location& where) {
  refuse_unlike(problem, devices, where);
  const std::vector<PipedreamLevel> levels = levels_of(problem, devices, where);
  const std::size_t stages = problem.chain.stages.size();
  refuse_too_many(stages, levels, where);
  const std::vector<Time> times = stage_times(problem, devices.front());
  std::vector<PipedreamState> states;
  for (std::size_t s = 0; s < stages; ++s) {
    const ChainStage& it = problem.chain.stages[s];
    states.push_back({times[s], it.saved_bytes, gradients(problem, s), it.output_bytes});
  }
  const auto partition =
      pipedream_partition(states, levels, {.compression_ratio = 1, .work = problem.work});
  return Deal(*partition, levels, devices).all();
}

}  // namespace plimsoll
