/// How far the tasks of a class are from the ends of a network: what lower bounds begin with.
#pragma once

#include "policy/pipeline/bounds/task_network.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

/// By class, in ps: the least time from the start of the network until one of its tasks can begin,
/// and from the end of one of its tasks until the end of the network.
struct HeadsAndTails {
  std::vector<std::int64_t> head, tail;
};

/// O(classes).
[[nodiscard]] HeadsAndTails heads_and_tails(const TaskNetwork& network);

}  // namespace plimsoll
