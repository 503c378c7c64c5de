/// What runs as one in plans whose first runs may come in another order, and what it needs before
/// it.
///
/// A group that may run again is a unit (rerun_groups.hpp), and so are groups between which needs
/// go both ways. Nodes that run once are units of their own; those that touch a storage which is
/// changed in place do so in the order of the graph.
#pragma once

#include "policy/graph/rerun_groups.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

struct RunUnit {
  std::vector<std::uint32_t> nodes = {};  ///< ascending
  std::vector<std::uint32_t> needs = {};  ///< units, ascending
  bool runs_once = false;
};

/// Of the nodes before `end`, in an order in which each comes after what it needs, near to that of
/// the graph. O((nodes + reads) log nodes).
[[nodiscard]] std::vector<RunUnit> run_units(const OperatorGraph& graph, const RerunGroups& groups,
                                             std::uint32_t end);

}  // namespace plimsoll
