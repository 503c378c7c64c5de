/// What replicas of ranks (played_ranks.hpp) have beside the processors of ranks and their memories: memories of hosts,
/// and processors that update for ranks. Where each replica has its own, those of the played one stand for the others.
///
/// Example: machines of 8 ranks and a host each, of which one machine is played. `dram0` stands for all hosts. Of one
/// rank that is played it would not: the other 7 of its machine copy to `dram0`, too.
#pragma once

#include "plan/build/played_ranks.hpp"
#include "platform/core/platform.hpp"

#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace plimsoll {

/// Things of one kind, each with its likes by replica.
template <class Id>
class ThingsOfReplicas {
 public:
  /// `by_rank`: what each rank uses. O(ranks log things).
  void add(std::span<const Id> by_rank, const PlayedRanks& ranks) {
    for (std::uint32_t replica = 0; replica < ranks.replicas() && !shared_; ++replica)
      for (std::uint32_t played = 0; played < ranks.count(); ++played)
        add(by_rank[ranks.rank(played)], by_rank[ranks.rank(played, replica)], replica);
  }

  /// Each of the played replica, in the order in which they were added, and its likes.
  [[nodiscard]] const std::vector<std::vector<Id>>& groups() const { return groups_; }
  /// What two replicas use, or a replica in the place of two of another one.
  [[nodiscard]] std::optional<Id> shared() const { return shared_; }

 private:
  using Place = std::pair<std::size_t, std::uint32_t>;  ///< group and replica

  void add(Id of_played, Id its, std::uint32_t replica) {
    const auto [played, is_new] = place_of_.try_emplace(of_played, groups_.size(), 0U);
    if (is_new) groups_.emplace_back();
    const Place place(played->second.first, replica);
    std::vector<Id>& likes = groups_[place.first];
    if (likes.size() <= replica) likes.push_back(its);
    const auto known = place_of_.try_emplace(its, place).first;
    if (known->second != place || likes[replica] != its) shared_ = its;
  }

  std::vector<std::vector<Id>> groups_;
  std::map<Id, Place> place_of_;
  std::optional<Id> shared_;
};

struct HostsOfReplicas {
  ThingsOfReplicas<MemoryId> memories;
  ThingsOfReplicas<ProcessorId> updaters;
};

}  // namespace plimsoll
