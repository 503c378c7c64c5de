/// Whether a run that failed lacked storage, and how much would do.
#pragma once

#include "scenario/run/run.hpp"

#include <functional>
#include <utility>
#include <vector>

namespace plimsoll {

/// Runs the same policy for another scenario.
using RunAgain = std::function<RunResult(const Scenario&)>;

/// Capacities of storages, in the order of the platform, with which `result`, whose policy found no
/// plan or ran out of a storage, ends well; empty where it ended well, or no storage is to blame.
/// The policy runs again with unlimited storages, and then with what it used of them, or up to four
/// times that: what then ends well is enough, and may be more than the least. Only where a storage is
/// smaller than all that a step makes. At most five runs more.
[[nodiscard]] std::vector<std::pair<MemoryId, Bytes>> storage_needed(const RunResult& result,
                                                                     const Scenario& scenario,
                                                                     const RunAgain& again);

}  // namespace plimsoll
