/// An order in which the vertices of an undirected graph leave it, and the tree decomposition that
/// it makes: with each vertex go edges between all its neighbours, and they and it are a bag.
#pragma once

#include "base/work.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

/// By vertex, its neighbours, ascending; no vertex is its own.
using UndirectedGraph = std::vector<std::vector<std::uint32_t>>;

struct TreeDecomposition {
  /// In the order of elimination: the vertex that goes, then those that it leaves behind.
  std::vector<std::vector<std::uint32_t>> bags;
  std::vector<std::uint32_t> parents;  ///< by bag, a later one; of the last it is itself

  [[nodiscard]] std::size_t width() const;  ///< the most neighbours of one that goes
};

/// By the min-fill rule: first the vertex whose neighbours lack the fewest edges; of several that
/// with the fewest neighbours, and then the first. O(edges of the filled graph x width), nearly.
[[nodiscard]] TreeDecomposition min_fill_decomposition(UndirectedGraph graph, const Work& work);

}  // namespace plimsoll
