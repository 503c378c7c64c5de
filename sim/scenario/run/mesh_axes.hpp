/// What the axes of a mesh make of the network of a scenario.
#pragma once

#include "scenario/run/ranks.hpp"

namespace plimsoll {

/// Tells the network which axes divide its layers.
void tell_axes(const MeshOptions& parallel, WorkloadOptions& options);

/// The ranks, for a run that is no trial among many: where the platform has not as many, InputError tells with that
/// what else is wrong with the axes. O(operators) then.
[[nodiscard]] Ranks ranks_of_run(const Scenario& scenario, const Node& policy);

}  // namespace plimsoll
