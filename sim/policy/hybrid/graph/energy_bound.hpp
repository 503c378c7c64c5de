/// A lower bound on the energy of plans that run operators again and copy tensors out and back.
///
/// A value that is absent at a first run t which needs more than the room, in one of its gaps
/// (policy/graph/gaps.hpp), is made again in that gap, x_g, or comes back in it, z_g; together they
/// free what t lacks. With r_g the energy of a rerun and c_g that of copies, a plan takes at least
/// that of all operators, each once, and
///
///   sum of r_g x_g + sum of c_g z_g
///
/// A rerun makes the step longer by its time: it costs the idle power of everything, what the
/// processor and its memory draw beyond that at work, and its own energy. Copies cost what they
/// cost a byte, and half of what links and storage draw at work, since copies both ways may share
/// that time. A value leaves at least once, of which each of its gaps bears an equal part. Waiting
/// counts nothing. The least energy is a linear program [derived]; its dual prices, rounded to
/// integers, give a bound that holds without trust in the solver's arithmetic.
#pragma once

#include "policy/graph/rerun_groups.hpp"
#include "policy/offload/copies/storage.hpp"

namespace plimsoll {

/// Of all operators, each once, without a wait: no plan takes less. In whole picojoules, rounded
/// down. O(operators).
[[nodiscard]] Energy energy_of_operators(const Problem& problem, ProcessorId processor,
                                         const OperatorGraph& graph);

/// Of all plans within `room` whose first runs are in the order of the graph and that copy over one
/// route between the two memories; in whole picojoules, rounded down. A linear program over the
/// gaps.
[[nodiscard]] Energy energy_bound(const Problem& problem, const OffloadMemories& memories,
                                  const OperatorGraph& graph, const RerunGroups& groups,
                                  std::int64_t room);

}  // namespace plimsoll
