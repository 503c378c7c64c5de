/// Which steps wait for which while a plan is built: steps that change a buffer, steps that read
/// it, and what the policy itself orders.
///
/// A buffer is valid when its maker ends; a reader in another lane waits for later changes, too,
/// and a change for the readers before it. Reductions know their own order
/// (plan/build/open_reductions.hpp).
#pragma once

#include "plan/build/open_reductions.hpp"
#include "plan/core/readers.hpp"

#include <span>
#include <utility>
#include <vector>

namespace plimsoll {

class ChangeOrder {
 public:
  /// Both must outlive it; the plan grows.
  ChangeOrder(const Workload& workload, const Plan& plan);

  /// `step` was just added, and changes `changing` beside what it reads.
  void add_step(StepId step, std::span<const BufferId> changing);
  /// A reduction was, which comes after the steps of `after`.
  void add_reduction(StepId step, std::uint32_t group, std::span<const StepId> after);

  void wait(StepId step, Dependency on) { dependencies_.push_back({step, on}); }

  /// Puts all dependencies into the plan, and forgets what only further steps would need.
  void finish(Plan& plan);

 private:
  struct Read {
    StepId by{};
    std::uint32_t previous = 0;  ///< of the same buffer, as a place in `read_log_`, or kNone
  };
  /// Of a buffer that an operator may change.
  struct Uses {
    StepId changed_by = kNoStep;      ///< who last changed or added to it
    std::uint32_t last_read = kNone;  ///< the latest of its reads since then, in `read_log_`
  };

  [[nodiscard]] Uses& uses_of(BufferId buffer);
  [[nodiscard]] bool may_change(BufferId buffer) const;
  void wait_across_lanes(StepId step, StepId on);
  [[nodiscard]] std::vector<StepId> users_so_far(BufferId buffer);

  const Plan& plan_;
  const std::vector<bool> changes_;  ///< by tensor: an operator may change it
  LastInLanes last_in_lanes_;
  std::vector<Uses> uses_;  ///< by buffer; shorter where the last ones never changed
  std::vector<Read> read_log_;
  OpenReductions reductions_;
  std::vector<std::pair<StepId, Dependency>> dependencies_;
};

}  // namespace plimsoll
