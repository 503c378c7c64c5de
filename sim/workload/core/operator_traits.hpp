/// What compilers of training steps ask of an operator before they run it again: one that does much
/// work is kept, one that they join with its neighbours into one kernel is cheap to repeat.
#pragma once

#include "workload/core/workload.hpp"

namespace plimsoll {

/// Products, convolutions and attention. Of the class `other` nobody knows: abstract chains and
/// graphs, and what a profile does not say the class of, count among them.
[[nodiscard]] bool is_compute_intensive(const Operator& op);

/// Computes element by element, reduces, or indexes: compilers join it with neighbours that do. A
/// normalization and a loss are several such steps.
[[nodiscard]] bool is_fusible(const Operator& op);

/// Whether it is a forward that brings parameters which are held elsewhere (workload/sharding/unit_step.hpp).
[[nodiscard]] inline bool gathers_for_forward(const Operator& op) {
  return op.phase == Phase::forward && brings_parameters(op);
}

}  // namespace plimsoll
