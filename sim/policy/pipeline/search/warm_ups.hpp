/// Orders to begin a search with: forwards up to some depth, then forward and backward in turn, for
/// chunks in rounds, as in 1F1B, interleaved 1F1B and their kin with split backwards.
#pragma once

#include "policy/pipeline/bounds/task_network.hpp"

namespace plimsoll {

/// Orders of several depths of warm-up and several numbers of weight halves that are put off, each
/// less deep on devices where that would keep more than `limits` (by device, bytes) allow; some may
/// wait for each other. A few dozen, at most `most`. O(tasks log) for each.
[[nodiscard]] std::vector<TaskOrders> warm_ups(const TaskNetwork& network,
                                               const std::vector<std::uint32_t>& placement,
                                               const std::vector<std::int64_t>& limits,
                                               std::size_t most);

}  // namespace plimsoll
