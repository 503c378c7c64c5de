/// Repeats a plan for one microbatch over several, with the optimizer after the last.
///
/// The microbatches run one after the other: nothing of one starts before all of the one before has
/// ended, copies included, and what a microbatch leaves behind goes at its end. So each has the
/// same times and peaks as alone, and a plan that keeps to a budget keeps to it.
#pragma once

#include "plan/core/plan.hpp"

namespace plimsoll {

/// The steps of `plan`, `count` times; claims and bounds are left out. Throws
/// std::invalid_argument, in words, for a plan that is of several microbatches already or does more
/// after the optimizer. O(count * steps).
[[nodiscard]] Plan repeated(const Plan& plan, const Workload& workload, std::uint32_t count);

}  // namespace plimsoll
