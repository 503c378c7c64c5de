/// The order of the runs of a plan, first ones and others, that needs less memory.
///
/// Each run reads the copies that it has read, so that the runs of a sequence of computations, and
/// what one leaves for another, are a graph of their own, whose nodes run once: the search for the
/// order of least peak (policy/order/beam_order.hpp) takes it as any other.
#pragma once

#include "base/work.hpp"
#include "policy/graph/operator_graph.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace plimsoll {

/// The same computations in an order whose peak is lower; nothing where none is found.
/// Preconditions: `graph` is plain; every computation finds what it reads.
[[nodiscard]] std::optional<std::vector<std::uint32_t>> leaner_order(
    const OperatorGraph& graph, std::span<const std::uint32_t> computations, const Work& work);

/// The graph with its nodes numbered as they first run in `computations`, all of which do.
/// Precondition: it is plain. O(reads log reads).
struct RenumberedGraph {
  OperatorGraph graph;
  std::vector<std::uint32_t> old_number;  ///< by node
  std::vector<std::uint32_t> new_number;  ///< by node of the given graph
};
[[nodiscard]] RenumberedGraph numbered_as_run(const OperatorGraph& graph,
                                              std::span<const std::uint32_t> computations);

}  // namespace plimsoll
