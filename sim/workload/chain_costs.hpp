/// A chain in the numbers of the literature: what planners of offload and recomputation compute
/// with.
///
/// Stage i (from 0) runs forward in `forward`, leaving `saved` (a kept forward; the output is
/// counted in it) or `output` (a bare one), and backward in `backward`. While backward i runs,
/// saved_i, the gradient of its output, the gradient of its input, `backward_workspace` and
/// `lasting` are there. For the stages of an abstract chain these are the numbers of its file. For
/// a stage of a network they come from playing its operators alone, in order, with every release
/// after the last use; a workspace is then what the play needs beyond what it leaves. Such a stage
/// may free part of its input or of saved_i early; the model does not know, so that what a
/// planner adds up is an upper bound of what the engine measures, and equal to it on abstract
/// chains.
#pragma once

#include "workload/chain_view.hpp"

#include <vector>

namespace plimsoll {

struct StageCosts {
  Time forward, backward;
  Bytes output;              ///< a_i
  Bytes saved;               ///< left by a kept forward: what backwards read, and a_i
  Bytes gradient;            ///< delta_i
  Bytes keep_workspace;      ///< while a kept forward runs, beyond `saved`
  Bytes bare_workspace;      ///< while a bare forward runs, beyond `output`
  Bytes backward_workspace;  ///< while the backward runs
  Bytes lasting;             ///< left by the backward for good: gradients of parameters
  /// The most that is there of this stage while its backward runs, each tensor until its last
  /// reader; at most saved + both gradients + backward_workspace + lasting, and equal to it on
  /// abstract chains with one backward a stage.
  Bytes backward_peak;
};

struct ChainCosts {
  std::vector<StageCosts> stages;
  Bytes input;                ///< a_0; resident throughout
  Bytes input_gradient;       ///< delta_0, left by the backward of stage 0 for good
  Bytes resident;             ///< there throughout: a_0, parameters, optimizer state
  Time optimizer;             ///< all optimizer operators
  Bytes optimizer_workspace;  ///< while they run, beyond what is resident and lasting

  /// Sum of all forwards, backwards and the optimizer: the time of `none`.
  [[nodiscard]] Time compute_time() const;
};

/// The costs of one microbatch whose operators last `durations` (by operator id, of
/// workload/cost_model.hpp). O(operators + reads).
[[nodiscard]] ChainCosts chain_costs(const Workload& workload, const ChainView& chain,
                                     const std::vector<Time>& durations);

}  // namespace plimsoll
