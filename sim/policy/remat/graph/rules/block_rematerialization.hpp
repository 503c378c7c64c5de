/// The greedy rule of XLA's HloRematerialization (xla/service/hlo_rematerialization.cc), in its
/// default mode, without compression and offload.
///
/// It walks the sequence. At a run that needs more than there is, it looks at blocks of runs that
/// have been, and takes the one of least cost: the room over the bytes that it would free now, or
/// nothing where nobody has read the block yet. Its runs move, or run again, to just before they
/// are read next, and no later than their own inputs are. Where no block helps, blocks of twice as
/// many runs are looked at, up to a limit. (XLA then warns and goes on above the room.)
///
/// Operators run again in groups (rerun_groups.hpp). What is freed is estimated; a block that turns
/// out to free nothing is put back and not taken again.
#pragma once

#include "base/work.hpp"
#include "policy/graph/rerun_groups.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace plimsoll {

/// Nothing where a run needs more than the room and no block helps, where what helps one run keeps
/// more alive at an earlier one, or where the runs would take `useful` or longer. O(n) for each block that is taken and length that is looked
/// at, n^2 where as many are taken as there are operators. Precondition: block_limit >= 1.
[[nodiscard]] std::optional<std::vector<std::uint32_t>> rematerialize_blocks(
    const OperatorGraph& graph, const RerunGroups& groups, Bytes room, std::size_t block_limit,
    const Work& work, Time useful);

}  // namespace plimsoll
