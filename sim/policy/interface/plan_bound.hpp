/// What a pipeline takes at least, told before any of it is planned.
///
/// It costs a pass over the operators and the tasks, where the plan costs a step for each operator of
/// each microbatch. Whoever looks for the best of many pipelines asks for bounds first (Problem::bound),
/// and plans those that may be the best.
#pragma once

#include "plan/core/plan.hpp"
#include "platform/core/platform.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

namespace plimsoll {

/// No plan takes less time, or has less at its peaks. Nothing is known where there is none.
struct PlanBound {
  Time makespan;
  std::vector<Bytes> peaks;  ///< by MemoryId
};

/// Asked of a policy.
struct PlanBoundRequest {
  /// How long what follows the collective of an operator waits for it at least, on a rank whose
  /// processor that is. Empty where ranks do nothing together.
  std::function<Time(OperatorId, ProcessorId)> collective;
  std::optional<PlanBound> answer;  ///< of the least of several plans, where it chooses among them

  /// One more of the plans that it may make.
  void add(PlanBound bound) {
    if (!answer) {
      answer = std::move(bound);
      return;
    }
    answer->makespan = std::min(answer->makespan, bound.makespan);
    for (std::size_t m = 0; m < bound.peaks.size(); ++m)
      answer->peaks[m] = std::min(answer->peaks[m], bound.peaks[m]);
  }
};

}  // namespace plimsoll
