/// The search of ZB-V: an order for two chunks a device on a V, under a limit on what a device
/// keeps.
///
/// Qi et al. 2024, "Zero Bubble Pipeline Parallelism", ICLR, arXiv:2401.10241, as its published
/// code does it. Two choices (whether a weight half may fill a gap that is too short for
/// it, before a forward, before a backward of the second chunk) are tried both ways; each again
/// with the gaps that the last attempt had for granted, as long as the largest gap shrinks. The
/// order of the least largest gap is kept, the first one among equals.
#pragma once

#include "policy/pipeline/schedule/schedule.hpp"

#include <vector>

namespace plimsoll {

/// Each device keeps at most `limits[i]` of SlotCosts::Slot::saved and `held`, summed over chunks
/// and microbatches in flight. Behind the order that is kept comes, if it is
/// shorter, the one of these with the least makespan. Empty where no attempt keeps to it.
/// Precondition: a V placement. O(attempts x microbatches x devices), at most 32 attempts.
[[nodiscard]] std::vector<Schedule> v_schedules(const SlotCosts& costs, std::uint32_t microbatches,
                                                const std::vector<Bytes>& limits);

}  // namespace plimsoll
