/// A graph cut into halves again and again by the bags of a tree decomposition.
#pragma once

#include "policy/remat/graph/separators/elimination_order.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

struct SeparatorTree {
  struct Part {
    std::vector<std::uint32_t> separator = {};  ///< ascending: of its vertices
    std::vector<std::uint32_t> children = {};   ///< what is left without these, in parts
    std::uint32_t end = 0;                      ///< its parts, its own first, end before this one
  };
  std::vector<Part> parts;               ///< the whole first; a part before those in it
  std::vector<std::uint32_t> of_vertex;  ///< the part whose separator it is in

  [[nodiscard]] bool is_in(std::uint32_t vertex, std::uint32_t part) const {
    return part <= of_vertex[vertex] && of_vertex[vertex] < parts[part].end;
  }
  [[nodiscard]] std::size_t depth() const;
};

/// A part is cut by the bag without which its largest part is smallest, so that no part has more
/// than half of its vertices. O(vertices x width x log(vertices)).
[[nodiscard]] SeparatorTree separator_tree(const TreeDecomposition& tree);

}  // namespace plimsoll
