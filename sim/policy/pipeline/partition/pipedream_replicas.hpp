/// PipeDream's partition with replicas (policy/pipeline/partition/pipedream_partition.hpp) for the
/// devices of a platform.
///
/// As reconstructed for it: the network of machines is one level, whose bandwidth is the least of
/// any way from one device to another; latencies are left out, as in the program; transfers at cuts
/// count, of the value and the gradient together, without compression.
#pragma once

#include "policy/pipeline/partition/pipedream_partition.hpp"
#include "policy/policy.hpp"

#include <vector>

namespace plimsoll {

/// The stages, in order; their replicas add up to the devices. Throws InputError at `where`: unlike
/// devices, no link between two of them, or more pairs of cuts and machines than it looks at.
[[nodiscard]] std::vector<ReplicatedStage> pipedream_replicas(
    const Problem& problem, const std::vector<ProcessorId>& devices, const Location& where);

}  // namespace plimsoll
