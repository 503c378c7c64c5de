/// A lower bound on the time of all plans of a graph whose first runs are in its order.
///
/// Between two neighbouring uses of a value, its maker's included, lies a gap where other nodes run
/// first. At the first run of node t every value that was made before and is read later is there,
/// or was dropped in a gap around t and is made again in it. The windows of one value's gaps are
/// disjoint, so each dropped gap costs a run of its maker; where that makes several values, each
/// stands for a share of it by its bytes. Hence for the steps t that need more than the room
///
///   sum of bytes of the dropped gaps around t >= bytes alive at t - room,
///
/// and the least time of dropped gaps is a bound, however often and wherever nodes run again
/// [derived]. It is relaxed to a linear program, and its dual prices, rounded to integers, give a
/// bound that holds without trust in the solver's arithmetic.
#pragma once

#include "base/work.hpp"
#include "policy/graph/gaps.hpp"

#include <cstdint>
#include <optional>

namespace plimsoll {

/// Of reruns, in ps, at least; nothing where no plan in this order is within `room`, bytes beside
/// what is resident. O(gaps of all rows) and a linear program.
[[nodiscard]] std::optional<std::int64_t> gap_bound(const OperatorGraph& graph,
                                                    const RerunGroups& groups, std::int64_t room,
                                                    const Work& work,
                                                    RunsAgain again = RunsAgain::maker);

/// The same with whole gaps, where these are few: no less, and the least time of dropped gaps on small
/// graphs (whole_gaps.hpp).
[[nodiscard]] std::optional<std::int64_t> best_gap_bound(const OperatorGraph& graph,
                                                         const RerunGroups& groups,
                                                         std::int64_t room, const Work& work);

/// What the largest step needs: no plan is within less. O(nodes + reads).
[[nodiscard]] std::int64_t largest_step(const OperatorGraph& graph);

}  // namespace plimsoll
