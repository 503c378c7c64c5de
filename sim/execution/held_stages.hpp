/// Which processors run which part of a network, read off a plan: what a pipeline's partitioner
/// chose, whoever it was.
#pragma once

#include "plan/core/plan.hpp"
#include "workload/core/workload.hpp"

#include <string>
#include <vector>

namespace plimsoll {

/// Stages [begin, end) of the chain as pipelines see it (workload/chain/chain_view.hpp), whose forwards the
/// same processors run.
struct HeldStages {
  std::size_t begin = 0, end = 0;
  std::string first, last;  ///< layers, by their forward operators
  std::vector<ProcessorId> processors;
};

/// In the order of the chain; empty where fewer than two processors run forwards. Stages that no
/// one runs are left out. O(steps + operators x processors of one).
[[nodiscard]] std::vector<HeldStages> held_stages(const Plan& plan, const Workload& workload);

/// "1 to 17, conv1 to pool3": numbered so that the last is the place of the cut, as `partition`
/// takes it.
[[nodiscard]] std::string to_text(const HeldStages& stages);

}  // namespace plimsoll
