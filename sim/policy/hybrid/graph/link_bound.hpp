/// A lower bound on the time of plans that run operators again and copy tensors out and back.
///
/// A value that is absent at a first run t which needs more than the room, in one of its gaps
/// (policy/graph/gaps.hpp), is made again in that gap, x_g, or is out by then and comes back
/// later, z_gt; x_g + z_gt <= 1, and together they free what t lacks. With C the time of all
/// operators and S_t that of those before t, the makespan T is at least
///
///   C + sum of reruns x_g             the processor does all of it
///   C - S_t + sum of copies out z_gt  they are out when t starts, and then comes the rest
///   S_t + sum of copies back z_gt     none has begun when t starts, at S_t or later
///
/// for each t. The least T is a linear program [derived]; its dual prices, rounded to integers,
/// give a bound that holds without trust in the solver's arithmetic.
#pragma once

#include "policy/graph/gaps.hpp"
#include "policy/offload/copies/storage.hpp"

namespace plimsoll {

/// Of all plans within `room` whose first runs are in the order of the graph and that copy over one
/// route between the two memories. A linear program over the gaps around up to 16 first runs.
[[nodiscard]] Time link_bound(const Problem& problem, const OffloadMemories& memories,
                              const OperatorGraph& graph, const RerunGroups& groups,
                              std::int64_t room, RunsAgain again = RunsAgain::maker);

}  // namespace plimsoll
