/// A reader of all that has to be there at the end of a plan.
///
/// In a staged plan nodes run again in front of first runs. A node that runs last, takes nothing and
/// reads what stays opens one more stage behind all others, in which that can be made again. It
/// needs no more than the step before, so that the plan without it is within the same room.
#pragma once

#include "policy/graph/operator_graph.hpp"

namespace plimsoll {

/// The graph with such a node as its last, which comes after all others in every order, and nothing
/// that stays otherwise; the same graph where nothing stays. O(nodes + reads).
[[nodiscard]] OperatorGraph with_final_reader(const OperatorGraph& graph);

}  // namespace plimsoll
