/// The search for a plan that recomputes and copies: prices for the link, raised where it is late.
///
/// Every value that may leave has a price at which it comes back, in the search for reruns
/// (policy/remat/graph/search/rerun_search.hpp), which then chooses between running again and coming back
/// by cost alone. What prices lead to is played on the links, where copies overlap with operators,
/// queue, and wait for room; where operators wait for copies, the prices of those rise by a share
/// of the wait, and elsewhere they fall: steps on the Lagrangian relaxation of the links. Then
/// neighbouring plans are played at the best prices, on two walks that begin at the best plan so far. The best
/// plan that was played is the answer, whatever the prices say.
#pragma once

#include "policy/hybrid/graph/played_schedule.hpp"
#include "policy/hybrid/graph/search_costs.hpp"
#include "policy/remat/graph/search/rerun_search.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plimsoll {

struct GraphSearchTask {
  const Problem& problem;
  const OffloadMemories& memories;
  const OperatorGraph& graph;
  const RerunGroups& groups;  ///< without returns
  const SearchCosts& costs;
  Bytes budget;
  std::string policy;
};

struct GraphSearchOptions {
  std::int64_t iterations = 0;  ///< neighbouring plans that are played on each walk
  std::uint64_t seed = 1;
  std::int64_t least = 0;              ///< no plan costs less
  Time most_time = Time::unlimited();  ///< that a plan may take, waits included
};

/// The cheapest plan that was played; nothing where none is within the budget and the time. O(iterations) repairs
/// of a plan, and plays of O(steps log steps).
[[nodiscard]] std::optional<Plan> search_graph(const GraphSearchTask& task,
                                               const GraphSearchOptions& options,
                                               std::span<const std::vector<Rerun>> starts);

/// A room, in bytes beside what is resident, in which a plan was found; RerunSearch::least_room().
[[nodiscard]] std::int64_t least_room(const GraphSearchTask& task, std::int64_t too_little);

}  // namespace plimsoll
