#include "policy/parallel/rank_symmetry.hpp"

#include "plan/core/mirror_problems.hpp"
#include "platform/core/machines.hpp"
#include "policy/pipeline/schedule/replica_symmetry.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// How replicas are renamed by a form of collectives; nothing where those are not whole parts of its nodes, and
/// its nodes not of them.
std::optional<ReplicaShifts> shifts_of(const Spreading& spreading, const PlayedRanks& played,
                                       const CollectiveForm& form) {
  ReplicaShifts shifts;
  for (std::uint32_t a = 0; a < spreading.axes.size(); ++a) {
    const RankAxis& axis = spreading.axes[a];
    const std::uint32_t node = std::max(axis.node, a == form.axis ? form.node : 1);
    const std::uint32_t places = played.places(a);
    if (node % places != 0 && places % node != 0) return std::nullopt;
    const bool exchanges = form.algorithm == AllReduce::tree && std::has_single_bit(axis.size);
    if (node > places) shifts.axes.push_back({node / places, exchanges});
    shifts.axes.push_back({axis.size / std::max(node, places), exchanges});
  }
  return shifts;
}

/// By processor of a rank that is played: it and its likes, by replica.
std::vector<std::vector<ProcessorId>> by_replica(const Spreading& spreading,
                                                 const PlayedRanks& played) {
  std::vector<std::vector<ProcessorId>> groups;
  for (const auto& likes : spreading.likes)
    for (std::uint32_t rank = 0; rank < played.count(); ++rank) {
      auto& group = groups.emplace_back();
      for (std::uint32_t replica = 0; replica < played.replicas(); ++replica)
        group.push_back(likes[played.rank(rank, replica)]);
    }
  return groups;
}

/// Why hosts cannot stand for those of other replicas; empty where they can.
std::string unlike_hosts(const HostsOfReplicas& hosts, const Problem& problem,
                         const Spreading& spreading) {
  const Platform& platform = problem.platform;
  if (const auto shared = hosts.memories.shared())
    return spreading.homes.empty()
               ? fmt::format("copies of all ranks to and from `{}` would meet",
                             platform[*shared].name)
               : fmt::format("the state of each moves to and from `{}`", platform[*shared].name);
  if (const auto shared = hosts.updaters.shared())
    return fmt::format("`{}` updates for several", platform[*shared].name);
  const auto look_at = [&](const auto& groups) -> std::string {
    for (const auto& group : groups)
      for (const auto host : group)
        if (!are_alike(platform, group.front(), host))
          return fmt::format("`{}` and `{}` are not alike", platform[group.front()].name,
                             platform[host].name);
    return {};
  };
  std::string why = look_at(hosts.memories.groups());
  return why.empty() ? look_at(hosts.updaters.groups()) : why;
}

ReplicaSymmetry symmetry_of(const SpreadPlan& plan, const Problem& problem,
                            const Spreading& spreading) {
  const auto devices = by_replica(spreading, plan.played);
  for (std::string why :
       {unlike_devices(problem.platform, devices), unlike_hosts(plan.hosts, problem, spreading)})
    if (!why.empty()) return {std::move(why), {}};
  std::vector<std::vector<MemoryId>> groups;
  for (const auto& group : devices) groups.push_back(memories_of(group, problem.platform));
  const auto& hosts = plan.hosts.memories.groups();
  groups.insert(groups.end(), hosts.begin(), hosts.end());
  std::map<MemoryId, std::uint32_t> group_of;
  for (std::uint32_t g = 0; g < groups.size(); ++g) group_of.emplace(groups[g].front(), g);
  std::vector<ReplicaWay> ways;
  for (const RankWay& way : plan.ways)
    ways.push_back({group_of.at(way.from), group_of.at(way.to), way.to_replica, way.form});
  std::vector<ReplicaShifts> shifts;
  for (const CollectiveForm& form : plan.forms) {
    auto renamed = shifts_of(spreading, plan.played, form);
    if (!renamed) return {"nodes of collectives lie across replicas", {}};
    shifts.push_back(std::move(*renamed));
  }
  return replica_symmetry(problem, groups, ways, shifts);
}

/// Of hosts.
void add_mirrors(Plan& plan, const HostsOfReplicas& hosts, const Platform& platform) {
  std::set<MemoryId> of_updaters;
  for (const auto& group : hosts.updaters.groups())
    for (const ProcessorId its : std::span(group).subspan(1)) {
      plan.mirrors.push_back({its, group.front()});
      of_updaters.insert(platform[its].memory);
    }
  for (const auto& group : hosts.memories.groups())
    for (const MemoryId its : std::span(group).subspan(1))
      if (!of_updaters.contains(its)) plan.memory_mirrors.push_back({its, group.front()});
}

/// What was found of the same ranks, or nothing yet.
TriedRanks& found_of(const PlayedRanks& played, RankSymmetry& known) {
  const auto found = std::ranges::find(known.tried, played, &TriedRanks::played);
  if (found != known.tried.end()) return *found;
  return known.tried.emplace_back(TriedRanks{played, {}, {}, {}, {}});
}

}  // namespace

std::vector<PlayedRanks> played_by_machine(const Spreading& spreading, const Platform& platform) {
  const std::vector<std::uint32_t> machines = machines_of(platform, spreading.likes.front());
  std::vector<std::uint32_t> across, all;
  std::uint32_t stride = 1;
  for (const RankAxis& axis : spreading.axes) {
    std::uint32_t places = 1;
    while (places < axis.size && machines[places * stride] == machines.front()) ++places;
    if (axis.size % places != 0) return {};
    across.push_back(places == axis.size ? 1 : places);
    all.push_back(places);
    stride *= axis.size;
  }
  std::vector<PlayedRanks> played;
  for (const auto* places : {&across, &all}) {
    const PlayedRanks ranks(spreading.axes, *places);
    if (ranks.count() > 1 && !ranks.are_all() && std::ranges::count(played, ranks) == 0)
      played.push_back(ranks);
  }
  return played;
}

std::string cannot_stand_for_all(SpreadPlan& plan, const Problem& problem,
                                 const Spreading& spreading, RankSymmetry& known) {
  if (plan.played.are_all()) return {};
  if (std::string why = link_with_power(problem.platform); !why.empty()) return why;
  TriedRanks& tried = found_of(plan.played, known);
  if (tried.ways != plan.ways || tried.forms != plan.forms) {
    auto [told_apart, links] = symmetry_of(plan, problem, spreading);
    tried = {plan.played, plan.ways, plan.forms, std::move(told_apart), std::move(links)};
  }
  if (!tried.told_apart.empty()) return tried.told_apart;
  plan.plan.link_mirrors = tried.links;
  add_mirrors(plan.plan, plan.hosts, problem.platform);
  return {};
}

}  // namespace plimsoll
