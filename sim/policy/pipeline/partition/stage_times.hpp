/// What the stages of a chain take, for planners that cut it.
#pragma once

#include "policy/interface/policy.hpp"

#include <vector>

namespace plimsoll {

/// Forward and backward of every chain stage on one processor. O(operators).
[[nodiscard]] std::vector<Time> stage_times(const Problem& problem, ProcessorId processor);

}  // namespace plimsoll
