/// A tabu search over the orders of a pipeline's tasks.
///
/// What makes the makespan is a chain of tasks, each of which starts when the one before it on its
/// device ends or its input arrives. Only at the ends of its runs on a device can a change help, as
/// in job shops (Nowicki and Smutnicki 1996, "A Fast Taboo Search Algorithm for the Job Shop
/// Problem", Management Science 42): the last task of a run, for whose result another device waits,
/// moves to an earlier place of the run, or the first one, which waited, to a later one. The best
/// such move that keeps to the limits is made, even where it makes things worse; a task that has
/// moved stays for a while.
#pragma once

#include "policy/pipeline/bounds/task_network.hpp"

namespace plimsoll {

/// Improves `orders`, which keep to `limits` (by device, bytes), until nothing has got better for
/// some time or `evaluations` orders have been looked at, of which it takes away those that were.
/// Returns the value of the result. Precondition: the orders do not wait for each other.
/// O(evaluations x tasks).
OrderValue polish(const TaskNetwork& network, TaskOrders& orders,
                  const std::vector<std::int64_t>& limits, std::int64_t& evaluations);

}  // namespace plimsoll
