/// A chain and a budget as plain numbers for the searches over all schedules: stages from 1 as in
/// the literature, bytes and picoseconds as bare counts.
///
/// Between backward d + 1 and backward d ("phase d") `fixed(d)` bytes are there whatever the
/// schedule does: parameters and a_0, delta_d, and the parameter gradients of the stages behind d.
/// delta_L comes with backward L.
///
/// Normal form [derived]. Where no bare forward needs more than the kept one of its stage
/// (output + bare workspace <= saved + kept workspace, which holds for every stage whose forms
/// share their temporaries), some optimal schedule makes each saved_i once and holds it until
/// backward i: a stay of saved_i that no backward reads may leave a_i alone instead, in less memory
/// and the same time. Only outputs are dropped early and made again, so that the time of a schedule
/// is that of `none` plus its bare forwards.
#pragma once

#include "workload/chain/chain_costs.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

struct ChainModel {
  std::uint32_t stages = 0;
  /// By stage, from 1; place 0 is the network's input: it occupies nothing beyond `resident`.
  std::vector<std::int64_t> forward, backward, output, saved, keep_workspace, bare_workspace,
      backward_workspace, lasting, gone_in_backward;
  std::vector<std::int64_t> gradient;        ///< delta_i; delta_0 at place 0
  std::vector<std::int64_t> lasting_after;   ///< sum of `lasting` of the stages > i
  std::vector<std::int64_t> forward_before;  ///< sum of `forward` of the stages <= i
  std::vector<std::int64_t> backward_before;
  std::int64_t resident = 0;
  std::int64_t after = 0;       ///< time of the optimizer
  std::int64_t after_need = 0;  ///< bytes while it runs
  std::int64_t store_all = 0;   ///< a budget that limits nothing
  Work work;                    ///< where searches in this model count their steps

  [[nodiscard]] std::int64_t fixed(std::uint32_t d) const {
    return resident + (d < stages ? gradient[d] : 0) + lasting_after[d];
  }
  /// All that is there during backward d but a_{d-1} and what later backwards need.
  [[nodiscard]] std::int64_t backward_need(std::uint32_t d) const {
    return resident + gradient[d] + gradient[d - 1] + lasting_after[d - 1] + saved[d] +
           backward_workspace[d] - gone_in_backward[d];
  }
  /// Of `none`, the optimizer included.
  [[nodiscard]] std::int64_t compute_time() const {
    return forward_before[stages] + backward_before[stages] + after;
  }
};

/// Whether the chain has the property that the normal form needs. O(stages).
[[nodiscard]] bool has_normal_form(const ChainCosts& costs);

/// O(stages). Precondition: has_normal_form(). Throws QuantityOverflow where the sums leave the
/// range.
[[nodiscard]] ChainModel chain_model(const ChainCosts& costs);

/// A budget below which no schedule exists: what each backward needs with its input; each first
/// forward in its bare form, before any backward; each kept forward in the phase that leaves it
/// most. O(stages^2).
[[nodiscard]] std::int64_t necessary_budget(const ChainModel& model);

}  // namespace plimsoll
