#include "policy/parallel/rank_symmetry.hpp"

#include "platform/core/machines.hpp"
#include "policy/pipeline/schedule/replica_symmetry.hpp"

#include <algorithm>
#include <bit>
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

ReplicaSymmetry symmetry_of(const SpreadPlan& plan, const Problem& problem,
                            const Spreading& spreading) {
  const PlayedRanks& played = plan.played;
  const auto stage = [&](const RankDevice& of) { return of.device * played.count() + of.rank; };
  std::vector<ReplicaWay> ways;
  for (const RankWay& way : plan.ways)
    ways.push_back({stage(way.from), stage(way.to), way.to_replica, way.form});
  std::vector<ReplicaShifts> shifts;
  for (const CollectiveForm& form : plan.forms) {
    auto renamed = shifts_of(spreading, played, form);
    if (!renamed) return {"nodes of collectives lie across replicas", {}};
    shifts.push_back(std::move(*renamed));
  }
  return replica_symmetry(problem, by_replica(spreading, played), ways, shifts);
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

std::string what_all_use(const SpreadPlan& plan, const Problem& problem,
                         const Spreading& spreading) {
  if (!plan.common.empty()) {
    const std::string& common = problem.platform[plan.common.front()].name;
    return spreading.homes.empty()
               ? fmt::format("copies of all ranks to and from `{}` would meet", common)
               : fmt::format("the state of each moves to and from `{}`", common);
  }
  for (const Link& link : problem.platform.links)
    if (link.power || link.energy)
      return fmt::format("link `{}` draws power, which would be summed up for one only", link.name);
  return {};
}

std::string cannot_stand_for_all(SpreadPlan& plan, const Problem& problem,
                                 const Spreading& spreading, RankSymmetry& known) {
  if (std::string used = what_all_use(plan, problem, spreading); !used.empty()) return used;
  TriedRanks& tried = found_of(plan.played, known);
  if (tried.ways != plan.ways || tried.forms != plan.forms) {
    auto [told_apart, links] = symmetry_of(plan, problem, spreading);
    tried = {plan.played, plan.ways, plan.forms, std::move(told_apart), std::move(links)};
  }
  if (tried.told_apart.empty()) plan.plan.link_mirrors = tried.links;
  return tried.told_apart;
}

}  // namespace plimsoll
