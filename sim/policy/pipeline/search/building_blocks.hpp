/// Orders to begin a search with: schedules on a V from every building block.
///
/// Qi et al. 2024, "Pipeline Parallelism with Controllable Memory", NeurIPS, arXiv:2405.15362: a
/// building block is one microbatch's tasks in unit slots, repeated every six (two chunks of a
/// forward and two halves). The blocks are those of its published code's adaptive search: device 0
/// has its four forwards and backwards at distinct slots modulo six, the first forward at 0; the
/// next device has them shifted by (k, -1, k, -1), with k1 for the first devices and k2 <= k1 for
/// the others; a weight half takes the first free slot after its backward. What the published code
/// does to their ends (warm-up, cool-down, greedy moves) is left to order_compaction.hpp, with
/// times as they are.
#pragma once

#include "policy/pipeline/bounds/task_network.hpp"

namespace plimsoll {

/// The repeated blocks of least makespan among those that keep to `limits` (by device, bytes), at
/// most `most`, the best one first. They are compared over three microbatches a device, and, where
/// that is much to do, not all of them are. None for more than 64 devices. Precondition: the
/// network is of a V. O(devices^2 + tasks log) beside a bounded number of evaluations.
[[nodiscard]] std::vector<TaskOrders> building_blocks(const TaskNetwork& network,
                                                      const std::vector<std::int64_t>& limits,
                                                      std::size_t most);

}  // namespace plimsoll
