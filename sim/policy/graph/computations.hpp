/// The common judge of planners of graphs: what a sequence of computations needs and takes.
///
/// A node's outputs and workspace are there from the start of a run; what it reads and makes, until
/// its end. Each read is of the latest run of the maker, and has to find the value in the state in
/// which it was when the reader ran first: a storage that has been changed in place since has to be
/// made again. A value is released after its last reader, one without readers after its maker. Of
/// what only the form `keep` leaves there is a copy where a later run reads one. The state of the
/// random generator is there from the first run of a node to its last, if that is another.
#pragma once

#include "policy/graph/operator_graph.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace plimsoll {

struct ComputationCost {
  Time time;
  Bytes peak;                ///< of values and workspaces, what is resident aside
  std::vector<Bytes> bytes;  ///< the same at each computation
  std::vector<Form> forms;   ///< of each computation
};

/// Nothing where a computation reads what is not there, a node that runs once is named again, or a
/// node is missing. Peak and time are those of the engine for plan_of_computations(), in an ideal
/// memory that is large enough. O(computations + reads).
[[nodiscard]] std::optional<ComputationCost> judge_computations(
    const OperatorGraph& graph, std::span<const std::uint32_t> computations);

/// Each node once, in the order of the graph.
[[nodiscard]] std::vector<std::uint32_t> all_once(const OperatorGraph& graph);

}  // namespace plimsoll
