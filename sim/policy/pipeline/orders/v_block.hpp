/// Schedules on a V from one building block: V-Min and V-Half.
///
/// Qi et al. 2024, "Pipeline Parallelism with Controllable Memory", NeurIPS, arXiv:2405.15362, as
/// its published code does it. The tasks of one microbatch have fixed unit slots on every device;
/// each further microbatch comes six slots later (two chunks of a forward and two halves). Then
/// tasks at both ends of the whole move to earlier slots, where this keeps the peak, and gaps are
/// squeezed out. Times play no part: an order is made for F = B = W and executed with the real
/// ones.
#pragma once

#include "policy/pipeline/schedule/schedule.hpp"

namespace plimsoll {

/// The slots of microbatch 0 on one device.
struct BlockSlots {
  std::uint32_t forward_0, forward_1, backward_1, backward_0;
};

/// Device i of p. Their slots differ modulo six on every device.
[[nodiscard]] BlockSlots v_min_block(std::uint32_t devices, std::uint32_t device);
[[nodiscard]] BlockSlots v_half_block(std::uint32_t devices, std::uint32_t device);

using BlockRule = BlockSlots (*)(std::uint32_t devices, std::uint32_t device);

/// What the search may cost: devices^2 (microbatches + devices).
inline constexpr std::uint64_t kMostBlockWork = 20'000'000;

/// Time O(devices^3 (microbatches + devices)), space O(devices (microbatches + devices)).
/// Precondition: devices^2 (microbatches + devices) <= kMostBlockWork.
[[nodiscard]] Schedule block_schedule(std::uint32_t devices, std::uint32_t microbatches,
                                      BlockRule block);

}  // namespace plimsoll
