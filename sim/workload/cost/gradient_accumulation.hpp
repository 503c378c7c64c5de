/// A step whose optimizer runs after several microbatches.
///
/// The gradients of parameters are there throughout, as a framework leaves them that sets them to
/// zero after each step: every backward makes its own and adds it to the one that is there. The
/// peak of any microbatch but the first of a step that begins without gradients is the same.
#pragma once

#include "workload/core/workload.hpp"

namespace plimsoll {

/// Turns `workload` into one microbatch of such a step. `makes_apart`: whether what a backward
/// makes is beside the gradient to which it is added, while it runs (a network's), and not in its
/// workspace already (with master weights), or nobody's affair (where bytes are given).
/// O(operators + reads).
void keep_gradients(Workload& workload, bool makes_apart);

/// Lets microbatches take turns: the input of each takes the place of the one before, and what a
/// chain would leave to the end (delta_0) goes with its microbatch. For a plan that is made:
/// planners tell inputs from what is resident.
void take_turns(Workload& workload);

}  // namespace plimsoll
