/// What a plan runs again, and what it pages, in FLOPs per byte: what the break-even of the platform
/// (platform/core/break_even.hpp) is to be compared with.
#pragma once

#include "scenario/run/run.hpp"

#include <optional>

namespace plimsoll {

/// On average over the bytes. Absent where there is nothing of the kind.
struct PlanChoice {
  std::optional<double> again;  ///< of the outputs of forwards that run again
  std::optional<double> paged;  ///< of the tensors that leave the processors' memories
};

/// Empty for a workload whose operators have times and no FLOPs. O(steps + tensors).
[[nodiscard]] PlanChoice plan_choice(const RunResult& result, const Platform& platform);

}  // namespace plimsoll
