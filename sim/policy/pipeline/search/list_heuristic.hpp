/// The list heuristic of ZB-1p and ZB-2p: an order of forwards and backwards' halves for one stage
/// a device, under a limit on what a device keeps.
///
/// Qi et al. 2024, "Zero Bubble Pipeline Parallelism", ICLR, arXiv:2401.10241, as its published
/// code does it. Microbatch by microbatch every device takes a forward, if that delays
/// nobody, and a backward of the input; backwards of the weights fill the gaps, and are forced
/// where memory is short. Three choices are tried both ways, and the order of the least largest
/// span (from a device's first start to its last end) is kept, the first one among equals.
#pragma once

#include "policy/pipeline/schedule/schedule.hpp"

#include <vector>

namespace plimsoll {

/// Each device keeps at most `limits[i]` of SlotCosts::Slot::saved and `held`, summed over the
/// microbatches in flight. Behind the order that is kept comes, if it is shorter, the
/// one of these with the least makespan. Empty where no choice keeps to it: where one microbatch
/// does not fit. Precondition: slot i is on device i. O(microbatches devices^2).
[[nodiscard]] std::vector<Schedule> list_schedules(const SlotCosts& costs,
                                                   std::uint32_t microbatches,
                                                   const std::vector<Bytes>& limits);

}  // namespace plimsoll
