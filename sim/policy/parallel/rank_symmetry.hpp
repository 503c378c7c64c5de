/// Which ranks of a mesh may be played for all of them.
///
/// The replicas that a mesh consists of (plan/build/played_ranks.hpp) do the same if they cannot be told apart
/// (policy/pipeline/schedule/replica_symmetry.hpp), the ranks that are played as the stages of one replica. Tried are,
/// from the fewest ranks on:
///
///   1. one rank;
///   2. of each axis that goes from machine to machine, the places in one machine: a ring through several ranks of a
///      machine leaves it at one of them only;
///   3. all ranks of one machine, which may share a way out of it.
#pragma once

#include "plan/build/spread_plan.hpp"
#include "policy/interface/policy.hpp"

#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

/// Whether the replicas of a plan can be told apart.
struct TriedRanks {
  PlayedRanks played;
  std::vector<RankWay> ways;
  std::vector<CollectiveForm> forms;
  std::string told_apart;         ///< by what; empty where they cannot be
  std::vector<LinkMirror> links;  ///< then: ReplicaSymmetry::links
};

/// What is known of ranks from plans that were made before, so that it is not worked out for each plan anew.
struct RankSymmetry {
  std::vector<TriedRanks> tried;  ///< of each that was tried, what was found last
  std::vector<TakenForm> taken;   ///< SpreadPlan::taken of the last plan
  std::optional<std::string>
      rings;  ///< what a run says of slow rings; nothing: it is not known yet
};

/// Beside one rank, those that may stand for all: few ranks first. O(ranks + links).
[[nodiscard]] std::vector<PlayedRanks> played_by_machine(const Spreading& spreading,
                                                         const Platform& platform);

/// Empty, or why the ranks of a plan cannot stand for all; where they can, it has the mirrors of links and hosts afterwards.
/// O(ranks x ways x hops), where `known` has not seen the same.
[[nodiscard]] std::string cannot_stand_for_all(SpreadPlan& plan, const Problem& problem,
                                               const Spreading& spreading, RankSymmetry& known);

}  // namespace plimsoll
