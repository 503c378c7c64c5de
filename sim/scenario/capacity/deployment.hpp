/// From one unit to a deployment that meets the targets: how many units, how long, at what cost.
#pragma once

#include "scenario/capacity/capacity.hpp"

#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

/// The least rate that meets throughput and deadline; nothing where there is no such target.
[[nodiscard]] std::optional<SampleRate> target_rate(const CapacityWorkload& workload);

/// Those targets of one unit that `figures` miss, in words.
[[nodiscard]] std::vector<std::string> missed_by_unit(const UnitFigures& figures,
                                                      const CapacityTargets& targets);

/// The least number of units for the targets, n of which carry n x `plan.scaling` times what one
/// does. A sum that leaves the range of numbers is left out. Precondition: throughput above 0.
[[nodiscard]] Deployment deploy(const UnitFigures& figures, std::int64_t processors,
                                const CapacityWorkload& workload,
                                const CapacityCandidate& candidate, const CapacityPlan& plan,
                                const CandidateError& error);

}  // namespace plimsoll
