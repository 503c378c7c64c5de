/// Moves the tasks of a pipeline's orders up into gaps, within what devices may keep.
///
/// In time, a free device takes the next task of its order if its inputs are there; else the first
/// later one whose inputs are, if that does not delay the next one by more than `AllowedDelay` says (as
/// far as it is known when the inputs of that arrive) and if, of a task that keeps more, what the
/// device keeps stays within its limit until the place that the task had. So what is left of the
/// orders can always be executed as it is: no order gets into a state that it cannot leave.
///
/// This is the reordering of Qi et al. 2024, "Pipeline Parallelism with Controllable Memory",
/// arXiv:2405.15362, as its published code does it in unit slots, with times as they are. Turned
/// round in time (TaskNetwork::turned_round) it moves tasks to later places.
#pragma once

#include "policy/pipeline/bounds/task_network.hpp"

namespace plimsoll {

/// How much of its own time a task may delay the next one of the order by, in quarters.
struct AllowedDelay {
  std::int64_t of_weights = 0, of_others = 0;
};

/// `limits`: by device, bytes; the orders keep to them, and so do the result's. Precondition: the
/// orders do not wait for each other. O(tasks (classes of a device + reach)), where a task that
/// keeps more moves past at most `reach` places, a few microbatches' tasks.
[[nodiscard]] TaskOrders compacted(const TaskNetwork& network, const TaskOrders& orders,
                                   const std::vector<std::int64_t>& limits,
                                   const AllowedDelay& allowed_delay);

}  // namespace plimsoll
