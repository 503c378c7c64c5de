/// The order of least peak of small graphs, by dynamic programming over downsets.
///
/// A state is the set of nodes that have run, closed under what they wait for: a downset of the
/// graph. What is there follows from it, so the least peak of an order is the least bottleneck of a
/// path from the empty set to all nodes. Dijkstra's algorithm for bottlenecks finds it; it looks
/// past no state that needs as much as a known order, and at each state that has a safe chain
/// (look_ahead.hpp), at that alone.
#pragma once

#include "base/work.hpp"
#include "policy/order/order_graph.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

/// So many nodes fit in a state; so many states fit in memory.
inline constexpr std::size_t kMostOrderNodes = 64, kMostOrderStates = std::size_t{1} << 21;

struct ExactOrder {
  bool is_proven = false;            ///< all states below the known peak have been looked at
  std::vector<std::uint32_t> order;  ///< empty: none is better than the known one
  std::size_t states = 0;
};

/// An order of least peak, if that is below `known`; `bound` is one that no order is below. Ends
/// unproven at `most_states`. Exponential in the width of the graph: O(2^nodes nodes) time, 40 B
/// a state. Precondition: at most kMostOrderNodes nodes.
[[nodiscard]] ExactOrder exact_order(const OrderGraph& graph, std::int64_t bound,
                                     std::int64_t known, std::size_t most_states, const Work& work);

}  // namespace plimsoll
