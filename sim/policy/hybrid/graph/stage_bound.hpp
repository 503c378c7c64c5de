/// A lower bound on the time of plans that see a workload as a chain: forwards run again a whole
/// stage at a time (workload/chain/chain_view.hpp), whatever of it is wanted.
#pragma once

#include "policy/offload/copies/storage.hpp"

#include <optional>

namespace plimsoll {

/// Of all such plans within `budget` that run everything in its order first; with `memories`, that
/// also copy over one route between these. Unlimited where there is no such plan. The gap bound or
/// the link_bound() of the graph whose groups are stages.
[[nodiscard]] Time stage_bound(const Problem& problem, ProcessorId processor, Bytes budget,
                               const std::optional<OffloadMemories>& memories);

}  // namespace plimsoll
