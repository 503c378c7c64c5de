/// Whether a run that failed lacked storage, and how much would do.
#pragma once

#include "scenario/run/run.hpp"

namespace plimsoll {

/// Adds to `result`, the run of `policy`, how much each storage would have to hold, where its policy
/// found no plan or ran out of a storage, and that is all that was missing. The policy runs again with
/// unlimited storages, and then with what it used of them, or up to four times that: what then ends
/// well is enough, and may be more than the least. Only where a storage is smaller than all that a step
/// makes, and planning stays within the limit of `work`. Pipelines and meshes are left out: how much
/// each of their devices stores follows from how they are cut. At most five runs more.
void tell_storage_needed(RunResult& result, const Scenario& scenario, const Node& policy,
                         Work work = Work());

}  // namespace plimsoll
