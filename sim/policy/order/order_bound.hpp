/// A lower bound of the peak of every order: what has to be there while one operator runs.
#pragma once

#include "base/work.hpp"
#include "policy/order/order_graph.hpp"

#include <cstdint>
#include <span>

namespace plimsoll {

/// While a node runs, a value is there if one of its starters is the node or one of those that have
/// run before it in every order, and one of its enders is the node or one of those after it in every
/// order. The most of such values and workspace at any of `nodes`. O(size of the graph) time and
/// memory for every 64 nodes, and an addition for each value at each node.
[[nodiscard]] std::int64_t cut_bound(const OrderGraph& graph, std::span<const std::uint32_t> nodes,
                                     const Work& work);

}  // namespace plimsoll
