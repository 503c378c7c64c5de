/// An order in which everything comes after what it needs.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace plimsoll {

/// Vertex `first` needs vertex `second` before it.
using Need = std::pair<std::uint32_t, std::uint32_t>;

/// Either an order of all vertices, or a cycle: each of its vertices needs the next, the last one
/// needs the first.
struct TopologicalOrder {
  std::vector<std::uint32_t> order;
  std::vector<std::uint32_t> cycle;
};

/// Stable: an order that is valid already stays as it is; otherwise a vertex moves only to come
/// after what it needs. O(vertices + needs).
[[nodiscard]] TopologicalOrder topological_order(std::uint32_t vertices,
                                                 std::span<const Need> needs);

}  // namespace plimsoll
