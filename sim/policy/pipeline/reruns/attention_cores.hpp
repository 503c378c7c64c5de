/// Selective recomputation: the cores of attention run again, nothing else.
///
/// V. Korthikanti, J. Casper, S. Lym, L. McAfee, M. Andersch, M. Shoeybi, B. Catanzaro, "Reducing
/// Activation Recomputation in Large Transformer Models", arXiv:2205.05198, 2022, section 5: what
/// is large for its FLOPs is not kept: the scores, their softmax and its dropout. A core is found
/// by what it does: it begins with a product without parameters, and everything else that reads
/// what it makes belongs to it, up to the next product, which does not run again.
#pragma once

#include "policy/graph/staged_schedule.hpp"
#include "policy/pipeline/reruns/slot_graph.hpp"

#include <vector>

namespace plimsoll {

/// For each core of the slot, what its backwards read of it, and what makes that, in front of the
/// first of them; empty where the slot has none. O(cores * operators of the slot + reads).
[[nodiscard]] std::vector<Rerun> attention_reruns(const Workload& workload, const SlotGraph& slot,
                                                  const RerunGroups& groups);

}  // namespace plimsoll
