/// Staged plans as sequences: what rules decide that choose reruns without looking at their peak.
#pragma once

#include "policy/graph/staged_schedule.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

/// The nodes in the order of the graph, and in front of each those of the groups that run again in
/// its stage, in the order of the graph. O(nodes + nodes of the reruns log of these).
[[nodiscard]] std::vector<std::uint32_t> staged_sequence(const RerunGroups& groups,
                                                         std::vector<Rerun> reruns);

}  // namespace plimsoll
