/// The hosts of a platform's processors while a program runs: what they issue, and when
/// (plan/core/issue_order.hpp). Internal to this floor.
#pragma once

#include "execution/run_state.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

template <bool kObserved>
class Hosts {
 public:
  explicit Hosts(RunState<kObserved>& run) : run_(run) {
    const std::vector<IssuedStep>& all = run.program.issued.steps;
    if (all.empty()) return;
    of_step_.assign(run.plan.steps.size(), kNone);
    for (std::uint32_t i = 0; i < all.size(); ++i) of_step_[index(all[i].step)] = i;
    waits_.resize(all.size());
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      waits_[i] += static_cast<std::uint32_t>(run.program.issued.after(all[i]).size());
      if (all[i].next != kNoStep) ++waits_[of_step_[index(all[i].next)]];
    }
  }

  /// Whether a host issues the step.
  [[nodiscard]] bool issues(std::uint32_t step) const {
    return !of_step_.empty() && of_step_[step] != kNone;
  }

  /// Hosts that wait for nothing begin.
  void begin() {
    for (std::uint32_t i = 0; i < waits_.size(); ++i)
      if (waits_[i] == 0) issue(i);
  }

  /// One of the ends that the host waits for, before it issues the step, is there.
  void clear(std::uint32_t step) {
    if (--waits_[of_step_[step]] == 0) issue(of_step_[step]);
  }

  /// The step is issued, and its host goes on.
  void end(std::uint32_t step) {
    const StepId next = run_.program.issued.steps[of_step_[step]].next;
    if (next != kNoStep) clear(index(next));
  }

 private:
  void issue(std::uint32_t i) {
    const IssuedStep& it = run_.program.issued.steps[i];
    run_.events.push(run_.now + it.time, index(it.step) | kIssueBits);
  }

  RunState<kObserved>& run_;
  std::vector<std::uint32_t> of_step_;  ///< by step, in IssueOrder::steps; empty without hosts
  std::vector<std::uint32_t> waits_;    ///< by issued step: for what is not there yet
};

}  // namespace plimsoll
