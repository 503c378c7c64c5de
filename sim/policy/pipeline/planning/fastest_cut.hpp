/// Where a pipeline may be cut in several ways: the fastest plan of them.
#pragma once

#include "policy/pipeline/partition/partition.hpp"

#include <optional>
#include <utility>

namespace plimsoll {

/// Replaces `best` if `planned` is a plan and `best` is none, a slower one, or one that does not
/// fit; of answers without a plan the one with the smaller budget is kept. Of a plan that claims no
/// makespan the judge says how long it takes; where there is none, it counts as slower than any
/// that claims one. O(steps log steps).
void keep_faster(std::optional<Planned>& best, Planned planned, const Problem& problem);

/// The fastest of plan(p), p being `parameters` with each of partitions_for() in turn, the first
/// one of equals. As much work as these plans together, and two executions where they claim no
/// makespan.
template <class Parameters, class Plan>
[[nodiscard]] Planned with_fastest_cut(const Problem& problem, const Parameters& parameters,
                                       const SlotPlacement& placement, const Plan& plan) {
  const std::vector<Partition> partitions =
      partitions_for(problem, parameters, pipeline_devices(problem, parameters), placement);
  if (partitions.size() == 1) return plan(parameters);
  std::optional<Planned> best;
  for (const Partition& partition : partitions) {
    Parameters cut = parameters;
    cut.partition = {as_choice(partition), parameters.where};
    keep_faster(best, plan(std::as_const(cut)), problem);
  }
  return std::move(*best);
}

}  // namespace plimsoll
