#include "policy/pipeline/schedule/gradient_reductions.hpp"

#include "policy/pipeline/schedule/replica_symmetry.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// The most steps that the all-reduces of one slot take.
constexpr std::size_t kMostReductions = 1'000'000;

void refuse_tree_of(std::size_t replicas, const PipelineParameters& parameters) {
  if (parameters.all_reduce == AllReduce::ring || std::has_single_bit(replicas)) return;
  refuse_parameter(where_replicated(parameters),
                   fmt::format("a tree halves what it reduces until one part is left, so it takes "
                               "2, 4, 8, .. replicas; found {}",
                               replicas));
}

/// The ways of one replica: its messages, and its reductions.
std::vector<ReplicaWay> ways_of(const Slots& slots, const std::vector<std::uint32_t>& partners,
                                const std::vector<CollectiveSend>& sends) {
  std::vector<ReplicaWay> ways;
  const auto add = [&](const ReplicaWay& way) {
    if (std::ranges::find(ways, way) == ways.end()) ways.push_back(way);
  };
  for (std::size_t slot = 0; slot < slots.count(); ++slot) {
    const std::uint32_t device = slots.device(slot);
    for (const bool forward : {true, false})
      for (const Message& message : slots.messages(slot, forward)) add({device, message.to_device});
    if (slots.gradients(slot).empty()) continue;
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

/// For a reason; none where it is "".
void refuse_to_fold(const PipelineParameters& parameters, const std::string& why) {
  if (why.empty()) return;
  refuse_parameter(where_replicated(parameters), "one replica cannot be played for all: " + why,
                   fmt::format("`replicas: {}` plays every one", parameters.data_parallel->value));
}

/// The copies to and from the host of replicas that are not played would meet its own there.
void refuse_host_copies(const PipelineParameters& parameters) {
  const auto refuse = [&](const auto& given, const char* way) {
    if (given)
      refuse_parameter(
          given->where,
          fmt::format("with `data_parallel` one replica is played for all, whose "
                      "copies {} the host would meet",
                      way),
          fmt::format("`replicas: {}` plays every one", parameters.data_parallel->value));
  };
  refuse(parameters.offload, "to");
  refuse(parameters.load_from, "from");
}

/// By slot: the memories of the replicas of its device.
std::vector<std::vector<MemoryId>> members_of_groups(
    const Problem& problem, const Slots& slots,
    const std::vector<std::vector<ProcessorId>>& groups) {
  std::vector<std::vector<MemoryId>> members(slots.count());
  for (std::size_t slot = 0; slot < slots.count(); ++slot)
    for (const ProcessorId device : groups[slots.device(slot)])
      members[slot].push_back(problem.platform[device].memory);
  return members;
}

/// By slot: the memories that hold a copy, in the order of the parameters' devices.
std::vector<std::vector<MemoryId>> members_of_copies(const Problem& problem,
                                                     const PipelineParameters& parameters,
                                                     const GradientReductions::Copies& copies) {
  std::vector<std::size_t> places(problem.platform.memories.size());
  std::size_t next = 0;
  for (const ProcessorId device : all_devices(problem, parameters))
    places[index(problem.platform[device].memory)] = next++;
  std::vector<std::vector<MemoryId>> all(copies.front()->count());
  for (std::size_t slot = 0; slot < all.size(); ++slot) {
    auto& members = all[slot];
    for (const Slots* slots : copies) {
      const MemoryId memory = slots->memory(slots->device(slot));
      if (std::ranges::find(members, memory) == members.end()) members.push_back(memory);
    }
    std::ranges::sort(members, {}, [&](MemoryId m) { return places[index(m)]; });
  }
  return all;
}

void require_links(const Problem& problem, const PipelineParameters& parameters,
                   const std::vector<MemoryId>& members) {
  const auto n = static_cast<std::uint32_t>(members.size());
  for (std::uint32_t i = 0; i < n; ++i)
    for (const CollectiveSend& send : sends_of(parameters.all_reduce, n, i))
      require_link(problem, members[i], members[send.to], "replicas of a stage",
                   where_replicated(parameters));
}

}  // namespace

void require_alike_replicas(const Problem& problem, const PipelineParameters& parameters) {
  if (parameters.is_folded())
    refuse_to_fold(parameters,
                   unlike_devices(problem.platform, replica_groups(problem, parameters)));
}

GradientReductions::GradientReductions(const Problem& problem, const PipelineParameters& parameters,
                                       const Copies& copies,
                                       const std::vector<std::uint32_t>& partners,
                                       std::size_t times, PlanBuilder& builder)
    : problem_(problem),
      parameters_(parameters),
      slots_(*copies.front()),
      builder_(builder),
      is_folded_(parameters.is_folded()) {
  const auto groups =
      is_folded_ ? replica_groups(problem, parameters) : std::vector<std::vector<ProcessorId>>();
  members_ = is_folded_ ? members_of_groups(problem, slots_, groups)
                        : members_of_copies(problem, parameters, copies);
  for (std::size_t slot = 0; slot < members_.size(); ++slot) {
    const std::vector<MemoryId>& members = members_[slot];
    refuse_tree_of(members.size(), parameters);
    refuse_too_many(members.size(), times);
    gradients_.push_back(slots_.gradients(slot));
    if (!is_folded_ && !gradients_.back().empty()) require_links(problem, parameters, members);
  }
  if (is_folded_) fold(groups, partners);
}

void GradientReductions::refuse_too_many(std::size_t members, std::size_t times) const {
  const std::size_t played = is_folded_ ? 1 : members;
  if (members == 1 || members <= kMostReductions / (2 * played * times)) return;
  refuse_parameter(
      where_replicated(parameters_),
      fmt::format("{} replicas reduce their gradients in more than {} steps", members,
                  kMostReductions),
      !is_folded_ && parameters_.equal_replicas() ? "`data_parallel` plays one of them" : "");
}

void GradientReductions::fold(const std::vector<std::vector<ProcessorId>>& groups,
                              const std::vector<std::uint32_t>& partners) {
  refuse_host_copies(parameters_);
  const auto n = static_cast<std::uint32_t>(groups.front().size());
  const auto ways = ways_of(slots_, partners, sends_of(parameters_.all_reduce, n, 0));
  refuse_to_fold(parameters_, cannot_be_folded(problem_, groups, ways, parameters_.all_reduce));
  for (const auto& group : groups)
    for (std::size_t replica = 1; replica < n; ++replica)
      builder_.mirror(group[replica], group.front());
}

AllReduceEnds GradientReductions::add(std::size_t slot) {
  const auto add = is_folded_ ? add_folded_all_reduce : add_all_reduce;
  return add(builder_, parameters_.all_reduce, members_[slot], gradients_[slot]);
}

}  // namespace plimsoll
