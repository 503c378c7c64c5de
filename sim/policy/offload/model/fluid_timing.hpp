/// The fluid timing model of offload, and the best sets to move in it.
///
/// The recursion over stages of the public POFO solver, restricted to kept forwards. Before stage i
/// the state is what stays of the earlier stages' saved tensors (kept), what of them has still to
/// leave (out), and what must be back before backward i runs (in, the mirror image of out):
///
///   wait_out = max(0, kept + out + saved_{i-1} + need of forward i - M)
///   wait_in  = the same for backward i
///   cost     = forward_i + backward_i + wait_out / bandwidth out + wait_in / bandwidth in
///
/// Then out and in shrink by what moves in forward and backward i and in the waits, and
/// saved_{i-1} either joins `kept`, or both `out` (before) and `in` (after they shrank).
///
/// At the loss the backlogs are cleared one after the other. A model of time, not of an execution:
/// memory is free byte by byte, the two directions never overlap at the turn-around. Waits are
/// rounded up to 1 ps. The input of the chain stays. All of a set is in storage at the loss, and is
/// no more than the storage holds.
///
/// Which of the open choices this is: the recursion is that of a program, and that it is the
/// paper's (Beaumont, Eyraud-Dubois, Shilova 2020, "a dynamic program on the relaxed memory and
/// idle time") is a reconstruction.
#pragma once

#include "policy/offload/model/offload_model.hpp"

#include <optional>
#include <vector>

namespace plimsoll {

struct TimedSet {
  OffloadSet set;
  Time makespan;  ///< in the model
};

/// The `count` best sets, the best first, ties to the one with less to move; empty where none fits.
///
/// States that are no better in any number than `count` others are dropped. Where more than
/// `kTimingStates` are left, one is kept for each cell of a grid of slots over (kept, out + in), so
/// that the answer is then a good set and no longer the best.
/// O(stages x kTimingStates^2), space O(stages x kTimingStates).
[[nodiscard]] std::vector<TimedSet> best_sets(const OffloadModel& model, std::size_t count);

inline constexpr std::size_t kTimingStates = 256;

}  // namespace plimsoll
