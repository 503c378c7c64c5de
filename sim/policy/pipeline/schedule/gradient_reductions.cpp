#include "policy/pipeline/schedule/gradient_reductions.hpp"

#include "plan/build/spreading.hpp"
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
  plimsoll::refuse(where_replicated(parameters),
                   fmt::format("a tree halves what it reduces until one part is left, so it takes "
                               "2, 4, 8, .. replicas; found {}",
                               replicas));
}

/// The ways of one replica: its messages, and its reductions, between the holders of tied gradients
/// as `between` says.
std::vector<ReplicaWay> ways_of(const Slots& slots, const std::vector<std::uint32_t>& partners,
                                const std::vector<CollectiveSend>& sends,
                                const std::vector<TiedGradients>& tied, AllReduce between) {
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
  for (const TiedGradients& it : tied) {
    const std::vector<Holder>& holders = it.holders.front();
    const auto n = static_cast<std::uint32_t>(holders.size());
    for (std::uint32_t i = 0; i < n; ++i)
      for (const CollectiveSend& send : sends_of(between, n, i))
        add({holders[i].device, holders[send.to].device});
  }
  return ways;
}

/// Whether one replica may be played for all.
ReplicaSymmetry folding(const Problem& problem, const std::vector<std::vector<ProcessorId>>& groups,
                        const std::vector<ReplicaWay>& ways, AllReduce algorithm) {
  for (std::string why :
       {link_with_power(problem.platform), unlike_devices(problem.platform, groups)})
    if (!why.empty()) return {std::move(why), {}};
  std::vector<std::vector<MemoryId>> memories;
  for (const auto& group : groups) memories.push_back(memories_of(group, problem.platform));
  const auto replicas = static_cast<std::uint32_t>(groups.front().size());
  const ReplicaShifts shifts{{{replicas, algorithm == AllReduce::tree}}};
  return replica_symmetry(problem, memories, ways, {&shifts, 1});
}

/// For a reason; none where it is "".
void refuse_to_fold(const PipelineParameters& parameters, const std::string& why) {
  if (why.empty()) return;
  plimsoll::refuse(where_replicated(parameters), "one replica cannot be played for all: " + why,
                   fmt::format("`replicas: {}` plays every one", parameters.data_parallel->value));
}

/// The copies to and from the host of replicas that are not played would meet its own there.
void refuse_host_copies(const PipelineParameters& parameters) {
  const auto refuse = [&](const auto& given, const char* way) {
    if (given)
      plimsoll::refuse(
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

/// By memory: the place of its device among those of the parameters.
std::vector<std::size_t> places_of(const Problem& problem, const PipelineParameters& parameters) {
  std::vector<std::size_t> places(problem.platform.memories.size());
  std::size_t next = 0;
  for (const ProcessorId device : all_devices(problem, parameters))
    places[index(problem.platform[device].memory)] = next++;
  return places;
}

void sort_by_place(std::vector<MemoryId>& members, const std::vector<std::size_t>& places) {
  std::ranges::sort(members, {}, [&](MemoryId m) { return places[index(m)]; });
}

/// By slot: the memories that hold a copy, in the order of their places.
std::vector<std::vector<MemoryId>> members_of_copies(const GradientReductions::Copies& copies,
                                                     const std::vector<std::size_t>& places) {
  std::vector<std::vector<MemoryId>> all(copies.front()->count());
  for (std::size_t slot = 0; slot < all.size(); ++slot) {
    auto& members = all[slot];
    for (const Slots* slots : copies) {
      const MemoryId memory = slots->memory(slots->device(slot));
      if (std::ranges::find(members, memory) == members.end()) members.push_back(memory);
    }
    sort_by_place(members, places);
  }
  return all;
}

void require_links(const Problem& problem, const PipelineParameters& parameters,
                   const std::vector<MemoryId>& members, const char* what) {
  const auto n = static_cast<std::uint32_t>(members.size());
  for (std::uint32_t i = 0; i < n; ++i)
    for (const CollectiveSend& send : sends_of(parameters.all_reduce, n, i))
      require_link(problem, members[i], members[send.to], what, where_replicated(parameters));
}

}  // namespace

void require_alike_replicas(const Problem& problem, const PipelineParameters& parameters) {
  if (parameters.is_folded())
    refuse_to_fold(parameters,
                   unlike_devices(problem.platform, replica_groups(problem, parameters)));
}

GradientReductions::GradientReductions(const Problem& problem, const PipelineParameters& parameters,
                                       const Copies& copies,
                                       const std::vector<std::uint32_t>& partners, Times times,
                                       PlanBuilder& builder)
    : problem_(problem),
      parameters_(parameters),
      slots_(*copies.front()),
      builder_(builder),
      is_folded_(parameters.is_folded()) {
  const auto groups =
      is_folded_ ? replica_groups(problem, parameters) : std::vector<std::vector<ProcessorId>>();
  const std::vector<std::size_t> places = places_of(problem, parameters);
  members_ =
      is_folded_ ? members_of_groups(problem, slots_, groups) : members_of_copies(copies, places);
  if (!times.one_by_one) tied_ = tied_gradients(copies);
  for (std::size_t slot = 0; slot < members_.size(); ++slot) {
    gradients_.push_back(slots_.gradients(slot));
    for (const TiedGradients& it : tied_)
      std::erase_if(gradients_.back(), [&](TensorId gradient) {
        return std::ranges::binary_search(it.gradients, gradient);
      });
    check(members_[slot], is_folded_, times.count);
    if (!is_folded_ && !gradients_.back().empty())
      require_links(problem, parameters, members_[slot], "replicas of a stage");
  }
  for (const TiedGradients& it : tied_) {
    rings_.push_back(rings_of(it, groups, places));
    for (const Ring& ring : rings_.back()) {
      check(ring.members, ring.is_folded, times.count);
      if (!ring.is_folded) require_links(problem, parameters, ring.members, "the same weight");
    }
  }
  refuse_state_elsewhere();
  if (is_folded_) fold(groups, partners);
}

/// Such a plan cannot be spread over ranks (plan/build/state_moves.hpp), and takes long to make.
void GradientReductions::refuse_state_elsewhere() const {
  const auto check_homes = [&](const std::vector<TensorId>& gradients) {
    for (const TensorId gradient : gradients) {
      const Tensor& tensor = problem_.workload[gradient];
      if (tensor.home != Home::processor)
        plimsoll::refuse(
            parameters_.where,
            fmt::format("a plan of policy `{}` copies or sums up `{}`, which lives in a "
                        "memory of its own",
                        parameters_.name, tensor.name));
    }
  };
  for (std::size_t slot = 0; slot < members_.size(); ++slot)
    if (members_[slot].size() > 1) check_homes(gradients_[slot]);
  for (std::size_t t = 0; t < tied_.size(); ++t)
    if (std::ranges::any_of(rings_[t], [](const Ring& ring) { return ring.members.size() > 1; }))
      check_homes(tied_[t].gradients);
}

/// First the replicas of each holder, then the holders of each replica; or all of them.
std::vector<GradientReductions::Ring> GradientReductions::rings_of(
    const TiedGradients& tied, const std::vector<std::vector<ProcessorId>>& groups,
    const std::vector<std::size_t>& places) const {
  std::vector<Ring> rings;
  const auto add = [&](const auto& holders) {
    Ring& ring = rings.emplace_back();
    for (const Holder& holder : holders) ring.members.push_back(holder.memory);
    sort_by_place(ring.members, places);
  };
  if (!tied.is_grid()) {
    add(tied.all_holders());
    return rings;
  }
  for (std::size_t i = 0; i < tied.holders.front().size(); ++i) {
    Ring& ring = rings.emplace_back(Ring{{}, is_folded_});
    if (is_folded_)
      for (const ProcessorId replica : groups[tied.holders.front()[i].device])
        ring.members.push_back(problem_.platform[replica].memory);
    else
      for (const auto& of_copy : tied.holders) ring.members.push_back(of_copy[i].memory);
  }
  for (const auto& of_copy : tied.holders) add(of_copy);
  return rings;
}

void GradientReductions::check(const std::vector<MemoryId>& members, bool is_folded,
                               std::size_t times) const {
  refuse_tree_of(members.size(), parameters_);
  const std::size_t count = members.size(), played = is_folded ? 1 : count;
  if (count == 1 || count <= kMostReductions / (2 * played * times)) return;
  plimsoll::refuse(
      where_replicated(parameters_),
      fmt::format("{} replicas reduce their gradients in more than {} steps", count,
                  kMostReductions),
      !is_folded_ && parameters_.equal_replicas() ? "`data_parallel` plays one of them" : "");
}

void GradientReductions::fold(const std::vector<std::vector<ProcessorId>>& groups,
                              const std::vector<std::uint32_t>& partners) {
  refuse_host_copies(parameters_);
  const auto n = static_cast<std::uint32_t>(groups.front().size());
  const auto ways = ways_of(slots_, partners, sends_of(parameters_.all_reduce, n, 0), tied_,
                            parameters_.all_reduce);
  const ReplicaSymmetry symmetry = folding(problem_, groups, ways, parameters_.all_reduce);
  refuse_to_fold(parameters_, symmetry.told_apart);
  builder_.mirror(symmetry.links);
  for (const auto& group : groups)
    for (std::size_t replica = 1; replica < n; ++replica)
      builder_.mirror(group[replica], group.front());
}

AllReduceEnds GradientReductions::add(std::size_t slot) {
  const auto add = is_folded_ ? add_folded_all_reduce : add_all_reduce;
  return add(builder_, parameters_.all_reduce, members_[slot], gradients_[slot]);
}

void GradientReductions::add_tied() {
  for (std::size_t i = 0; i < tied_.size(); ++i)
    for (const Ring& ring : rings_[i]) {
      const auto add = ring.is_folded ? add_folded_all_reduce : add_all_reduce;
      add(builder_, parameters_.all_reduce, ring.members, tied_[i].gradients);
    }
}

}  // namespace plimsoll
