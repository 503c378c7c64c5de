/// When the host of a processor issues its steps (Processor::host).
///
/// The host issues the steps of all streams of its processor one after the other, in the order of the
/// plan, and runs ahead of them. Each operator takes it `per_operator`, or of a backward `per_backward`,
/// both together in a pair, and a step does not start before it is issued:
///
///   issued(i) = max(issued(i-1), ends that it waits for) + per_operator
///
/// Collectives and copies do not hold it up, but where it `waits_for_messages`: it issues a step that
/// reads what came from another processor's memory once that is there, and what follows a copy to
/// another processor's memory once what made its source has ended. So after each message the
/// processor waits for the first operator that follows, and a host that was ahead no longer is.
///
/// Example: operators of 5 us each and a host of 10 us per operator: they end at 15, 25, 35 us. One
/// of 50 us in the first place lets it run ahead: 60, 65, 70 us.
///
/// Operators with given times are issued at no cost and wait for no host; collectives are operators
/// here. The halves of a split backward are issued with the first of them.
#pragma once

#include "plan/core/readers.hpp"

#include <span>
#include <vector>

namespace plimsoll {

struct IssuedStep {
  StepId step{};
  StepId next{};  ///< of the same host, or kNoStep
  Time time;      ///< that the host takes
  Slice after;    ///< in IssueOrder::awaited: steps whose end the host waits for
};

struct IssueOrder {
  std::vector<IssuedStep> steps;  ///< those of all hosts, in the order of the plan
  std::vector<StepId> awaited;    ///< all of them before the step in the order of the plan

  [[nodiscard]] std::span<const StepId> after(const IssuedStep& it) const {
    return std::span(awaited).subspan(it.after.begin, it.after.end - it.after.begin);
  }
};

/// O(steps + reads); nothing at once where no processor has a host.
[[nodiscard]] IssueOrder issue_order(const Plan& plan, const Workload& workload,
                                     const Platform& platform, const Readers& readers);

}  // namespace plimsoll
