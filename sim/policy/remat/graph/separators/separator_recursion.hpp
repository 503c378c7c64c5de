/// The recursion of Kumar, Purohit, Svitkina, Vee and Wang 2019, "Efficient Rematerialization for
/// Deep Networks", NeurIPS: a part of the graph is run for what is wanted of it by running its
/// separator, vertex by vertex, and before each vertex the parts below for what that reads.
///
/// With k the width and d <= log2(n) + 1 the depth of the separators, each unit runs at most
/// (k + 2)^(d - 1) times. A unit that runs once is there from then on.
#pragma once

#include "policy/remat/graph/separators/run_units.hpp"
#include "policy/remat/graph/separators/separator_tree.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace plimsoll {

/// Units in the order of their runs, for all that nobody needs; nothing where there would be more
/// than `most`. O(runs x width + units visited).
[[nodiscard]] std::optional<std::vector<std::uint32_t>> separator_recursion(
    const std::vector<RunUnit>& units, const SeparatorTree& separators, std::size_t most,
    const Work& work);

/// Who needs whom, either way.
[[nodiscard]] UndirectedGraph undirected(const std::vector<RunUnit>& units);

}  // namespace plimsoll
