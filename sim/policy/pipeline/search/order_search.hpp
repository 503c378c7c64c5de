/// A search for the orders of least makespan of one placement, under a limit on what devices keep.
///
/// It begins with the orders given and with some of its own (one microbatch after the other;
/// warm-ups of several depths, weight halves put off by several numbers; on a V every building
/// block), moves tasks up into gaps and, turned round, back again (order_compaction.hpp), always
/// those of the best order that this may still help, and works on the chains that make the makespan
/// of the best (order_polish.hpp). It counts what it looks at and not the time, so it finds the
/// same wherever it runs.
#pragma once

#include "policy/pipeline/bounds/task_network.hpp"

namespace plimsoll {

struct OrderSearch {
  const TaskNetwork& network;
  const std::vector<std::uint32_t>& placement;  ///< by slot
  std::vector<std::int64_t> limits;             ///< by device, bytes
  /// Orders that the search may evaluate, where a move of all tasks counts as several.
  std::int64_t evaluations = 0;
  std::int64_t bound = 0;  ///< no makespan is less, so one that is no more ends the search
};

struct FoundOrders {
  TaskOrders orders;
  OrderValue value;
};

/// nullopt where not even one microbatch after the other keeps to the limits, nor any of `from`.
/// O(evaluations x tasks).
[[nodiscard]] std::optional<FoundOrders> search_orders(const OrderSearch& search,
                                                       const std::vector<TaskOrders>& from);

/// One microbatch after the other: the fewest that can be kept.
[[nodiscard]] TaskOrders one_at_a_time(const TaskNetwork& network);

}  // namespace plimsoll
