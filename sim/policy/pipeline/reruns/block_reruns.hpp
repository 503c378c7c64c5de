/// Blocks of a network that run again one by one: right before the backwards of a block, what these read of it.
///
/// T. Chen, B. Xu, C. Zhang, C. Guestrin, "Training Deep Nets with Sublinear Memory Cost", arXiv:1604.06174,
/// 2016, section 4, with the blocks that are named as segments, as frameworks do by layer; policy remat/blocks
/// on each slot.
#pragma once

#include "policy/graph/staged_schedule.hpp"
#include "policy/pipeline/reruns/slot_graph.hpp"
#include "policy/remat/segments/named_blocks.hpp"

#include <span>
#include <vector>

namespace plimsoll {

/// Lets what runs again have its parameters gathered again (brings_parameters()), which planners do not choose to do:
/// it takes no time of the device.
void let_gathers_run_again(const Workload& workload, SlotGraph& slot);

/// For each block, as much of it as is in the slot, in front of the first of its backwards that reads any of it. Empty
/// where the slot has none. O(operators of the slot + reads).
[[nodiscard]] std::vector<Rerun> block_reruns(const Workload& workload, const SlotGraph& slot,
                                              const RerunGroups& groups,
                                              std::span<const ForwardRange> blocks);

}  // namespace plimsoll
