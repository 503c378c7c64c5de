/// A chain in the numbers of the literature: what planners of offload and recomputation compute
/// with.
///
/// Stage i (from 0) runs forward in `forward`, leaving `saved` (a kept forward; the output is
/// counted in it) or `output` (a bare one), and backward in `backward`. While backward i runs,
/// saved_i, the gradient of its output, the gradient of its input, `backward_workspace` and
/// `lasting` are there, less what gone_in_backward() says. For the stages of an abstract chain
/// these are the numbers of its file. For a stage of a network they come from playing its operators
/// alone, in order, with every release after the last use; a workspace is then what the play needs
/// beyond what it leaves. Such a stage may also be done with its input before its end, and its
/// output may go after the next forward; a model that does not look at that adds up an upper bound
/// of what the engine measures, equal to it on abstract chains.
#pragma once

#include "base/work.hpp"
#include "workload/chain/chain_view.hpp"

#include <vector>

namespace plimsoll {

struct StageCosts {
  Time forward, backward;
  Bytes output;              ///< a_i
  Bytes saved;               ///< left by a kept forward: what backwards read, and a_i
  Bytes passing;             ///< a_i where no backward reads it: over when the next forward is
  Bytes gradient;            ///< delta_i
  Bytes keep_workspace;      ///< while a kept forward runs, beyond `saved`
  Bytes bare_workspace;      ///< while a bare forward runs, beyond `output`
  Bytes backward_workspace;  ///< while the backward runs
  Bytes lasting;             ///< left by the backward for good: gradients of parameters
  /// The state of the random generator (Operator::generator) of the first operator that draws: there
  /// from the first forward to the end of the last where there are several.
  Bytes generator;
  /// How much of saved + both gradients + backward_workspace + lasting is never there together with
  /// the rest, since each tensor goes after its last reader; none on abstract chains.
  Bytes freed_early;
};

struct ChainCosts {
  std::vector<StageCosts> stages;
  Bytes input;                ///< a_0; resident throughout
  Bytes input_gradient;       ///< delta_0, left by the backward of stage 0 for good
  Bytes resident;             ///< there throughout: a_0, parameters, optimizer state
  Time optimizer;             ///< all optimizer operators
  Bytes optimizer_workspace;  ///< while they run, beyond what is resident and lasting
  Work work;                  ///< where searches in these costs count their steps

  /// Sum of all forwards, backwards and the optimizer: the time of `none`.
  [[nodiscard]] Time compute_time() const;
  /// The gradient that backward `s` makes.
  [[nodiscard]] Bytes gradient_before(std::size_t s) const {
    return s > 0 ? stages[s - 1].gradient : input_gradient;
  }
  /// The most that is there of stage `s` while its backward runs.
  [[nodiscard]] Bytes backward_peak(std::size_t s) const;
  /// What is not there at the peak of backward `s` of all that lies in a_{s-1}, saved_s, both
  /// gradients, workspace and lasting: an input that passes is gone.
  [[nodiscard]] Bytes gone_in_backward(std::size_t s) const {
    return stages[s].freed_early + (s > 0 ? stages[s - 1].passing : Bytes{});
  }
};

/// The costs of one microbatch whose operators last `durations` (by operator id, of
/// workload/cost/cost_model.hpp). O(operators + reads).
[[nodiscard]] ChainCosts chain_costs(const Workload& workload, const ChainView& chain,
                                     const std::vector<Time>& durations);

}  // namespace plimsoll
