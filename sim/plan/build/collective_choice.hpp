/// Which form of a collective takes the least time where nothing else is on the links: a ring; a tree,
/// where all sizes are powers of two; or rings in levels, with nodes of k neighbours on the outermost
/// axis, for every k that divides it.
///
/// The time of a form is that of its rounds, one after the other, behind what opens it
/// (plan/core/collective_opening.hpp). A round takes as long as the longest of its sends, latency and
/// bytes over bandwidth of its way, or as the direction of a link that several of them take, which
/// carries these one after the other. That is exact where all ways of a round are alike, and of a ring
/// with any ways, each of links of its own: its slowest send paces it.
///
/// So where a ring of n is overtaken follows: on links of latency a and bandwidth b, each member with
/// its own, a tree needs 2 log2(n) a less than 2 (n-1) a, and moves as much.
#pragma once

#include "plan/build/spreading.hpp"
#include "plan/core/collective_opening.hpp"

#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

namespace plimsoll {

class CollectiveChoice {
 public:
  /// The arguments must outlive it.
  CollectiveChoice(const Spreading& spreading, const Platform& platform);

  /// Of `bytes` in the memories of all ranks; of forms that take the same, the first. A ring where no
  /// form has all its ways. Precondition: Spreading::chosen_on. O(forms x ranks), once for a size.
  [[nodiscard]] CollectiveForm of(const Collective& collective, std::span<const MemoryId> memories,
                                  Bytes bytes);

  /// Whose sends a link carries: those of all groups at the same time, as they are in a plan; or those
  /// of the first rank's group alone, which bounds what that takes.
  enum class Groups : std::uint8_t { all, first };

  /// Nothing where a way is missing. O(ranks of the groups x distinct rounds).
  [[nodiscard]] std::optional<Time> time_of(const CollectiveForm& form,
                                            const Collective& collective,
                                            std::span<const MemoryId> memories, Bytes bytes,
                                            Groups groups = Groups::all) const;

 private:
  using Key = std::tuple<CollectiveKind, MeshAxis, bool, MemoryId, Bytes>;

  [[nodiscard]] std::vector<CollectiveForm> forms_of(const Collective& collective) const;
  [[nodiscard]] std::optional<Time> time_of_round(std::span<const RankLevel> levels,
                                                  const CollectiveForm& form, std::uint32_t to,
                                                  std::span<const MemoryId> memories, Bytes bytes,
                                                  Groups groups) const;

  const Spreading& spreading_;
  const Platform& platform_;
  const CollectiveOpenings openings_;
  std::map<Key, CollectiveForm> chosen_;
};

}  // namespace plimsoll
