/// Which operators run again together.
///
/// A storage that is changed in place has one final state. To make it again, its maker and all that
/// change it run again; a forward that reads it in between sees the right state only among them. So
/// these form a group, and a group runs again as a whole.
///
/// Some changes are by what runs once: a backward that turns an activation into another (Rota Bulò,
/// Porzi and Kontschieder 2018, "In-Place Activated BatchNorm for Memory-Optimized Training of DNNs",
/// CVPR, arXiv:1712.02616). Such a node needs no group: before its run the storage may be made again,
/// and it changes the latest copy. After it nothing that reads the old state runs again, nor, if the
/// new state is read, what would make the old one in its place.
///
/// Where values can leave for another memory, a value that comes back is a group, too: one without
/// nodes. It takes nothing to be there but the room.
#pragma once

#include "policy/graph/operator_graph.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll {

struct RerunGroups {
  struct Group {
    std::vector<std::uint32_t> nodes = {};  ///< ascending
    std::int64_t time = 0;                  ///< of all of them, or the price of a return; in ps
    bool runs_once = false;                 ///< one of them does
    std::uint32_t returns = OperatorGraph::kNone;  ///< the value that comes back, if one does
    std::uint32_t after = 0;                       ///< the node that leaves it as it will be read
    /// The last stage (StagedSchedule) in which it may run again or return.
    std::uint32_t until = OperatorGraph::kNone;
  };
  std::vector<Group> groups;                 ///< by first node; then the returns, by value
  std::vector<std::uint32_t> of_node;        ///< group
  std::vector<std::uint32_t> of_value = {};  ///< group of its return, or kNone; empty: none returns
  /// The first change by a node that runs once of what may run again until then, or kNone.
  std::vector<std::uint32_t> changed_by_once = {};  ///< by value; empty: none is

  [[nodiscard]] std::uint32_t end_of(std::uint32_t value) const {
    return changed_by_once.empty() ? OperatorGraph::kNone : changed_by_once[value];
  }
  [[nodiscard]] std::uint32_t return_of(std::uint32_t value) const {
    return of_value.empty() ? OperatorGraph::kNone : of_value[value];
  }
};

/// Where a node that runs once changes what another makes: whether the two are a group, which then
/// runs once, or may run again until then.
enum class ChangesByOnce : std::uint8_t { join, end };

/// O(nodes + reads), nearly.
[[nodiscard]] RerunGroups rerun_groups(const OperatorGraph& graph,
                                       ChangesByOnce changes = ChangesByOnce::end);

/// Lets values come back from another memory, each at its price in ps; 0 or less: it does not.
/// Precondition: the groups are those of the graph, without returns. O(values + changes).
void add_returns(RerunGroups& groups, const OperatorGraph& graph,
                 std::span<const std::int64_t> prices);

}  // namespace plimsoll
