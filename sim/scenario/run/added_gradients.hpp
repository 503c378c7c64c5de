/// Which steps of a pipeline add up the gradients of several microbatches before an update
/// (workload/cost/gradient_accumulation.hpp). Others make each once, or update the parameters after
/// every microbatch, as PipeDream does.
#pragma once

#include "plan/core/plan.hpp"
#include "policy/interface/policy.hpp"

#include <cstddef>

namespace plimsoll {

/// `processors`: those that it runs on. `updates`: whether the workload has an optimizer.
[[nodiscard]] bool adds_up_gradients(const BoundPolicy& bound, std::size_t processors,
                                     bool updates);

/// Whether a processor runs a backward more than once, and more often than its updates.
/// O(s log s), s: steps.
[[nodiscard]] bool adds_up_gradients(const Plan& plan, const Workload& workload);

}  // namespace plimsoll
