/// The cheapest way through a small graph whose values may be made again, or be saved in storage
/// and read back, by shortest paths.
///
/// A state is which values are in memory, which are in storage, and how many operators have run at
/// least once; first runs are in the order of the graph. From a state
///
///   an operator runs that is next, or that has run before, if all that it reads is in memory and
///   its outputs and workspace fit beside everything that is there;
///   a value is dropped, or saved and dropped; a copy in storage stays there;
///   a saved value is read back where it fits.
///
/// The cost of a path is the sum of its runs and copies; nothing happens at the same time as
/// anything else. A value is saved right before it is dropped: sooner is no cheaper. The remaining
/// first runs bound from below what a state still costs, which directs the search (A*).
///
/// Where time is limited, too, it is the sum over the same steps, and a state is reached at several
/// costs: each is kept than which no other is both cheaper and shorter.
#pragma once

#include "base/work.hpp"
#include "policy/graph/operator_graph.hpp"
#include "policy/hybrid/paging/blocking_plan.hpp"

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <vector>

namespace plimsoll {

/// So many operators and values fit in a state, and so many states in memory (some 100 B each).
inline constexpr std::size_t kMostPagingNodes = 16, kMostPagingValues = 24,
                             kMostPagingStates = 6'000'000;

/// The search would need more than kMostPagingStates, those counted again that are reached at several
/// costs.
class TooManyPagingStates : public std::runtime_error {
 public:
  TooManyPagingStates();
};

/// Of a run or a copy.
struct PagingCost {
  Energy energy;
  Time time;
  bool operator==(const PagingCost&) const = default;
};

struct PagingTask {
  const OperatorGraph& graph;           ///< plain (OperatorGraph::is_plain())
  Bytes room;                           ///< beside what is resident
  Bytes storage;                        ///< that copies may take
  std::vector<PagingCost> runs;         ///< by node
  std::vector<PagingCost> outs, backs;  ///< of copies, by value
  bool paging = true;
  bool recompute = true;
  Time most_time = Time::unlimited();  ///< no less than that of all runs, each once
};

struct PagingSequence {
  std::vector<PagingStep> steps;
  Energy cost;
};

/// The cheapest of all; nothing where none is within room, storage and time. Throws TooManyPagingStates.
/// Exponential in the values: O(4^values nodes) states. Preconditions: at most kMostPagingNodes and
/// kMostPagingValues.
[[nodiscard]] std::optional<PagingSequence> cheapest_paging(const PagingTask& task,
                                                            const Work& work);

/// The least room in which there is a way in time, whatever it costs. Preconditions and errors as above.
[[nodiscard]] Bytes least_paging_room(const PagingTask& task, const Work& work);

}  // namespace plimsoll
