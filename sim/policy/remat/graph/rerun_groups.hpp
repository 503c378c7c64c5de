/// Which operators run again together.
///
/// A storage that is changed in place has one final state. To make it again, its maker and all that
/// change it run again; a forward that reads it in between sees the right state only among them. So
/// these form a group, and a group runs again as a whole.
#pragma once

#include "policy/remat/graph/operator_graph.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

struct RerunGroups {
  struct Group {
    std::vector<std::uint32_t> nodes = {};  ///< ascending
    std::int64_t time = 0;                  ///< of all of them, in ps
    bool runs_once = false;                 ///< one of them does
  };
  std::vector<Group> groups;           ///< by first node
  std::vector<std::uint32_t> of_node;  ///< group
};

/// O(nodes + reads), nearly.
[[nodiscard]] RerunGroups rerun_groups(const OperatorGraph& graph);

}  // namespace plimsoll
