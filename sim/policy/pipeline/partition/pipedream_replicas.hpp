/// PipeDream's partition with replicas (policy/pipeline/partition/pipedream_partition.hpp) for the
/// devices of a platform.
///
/// Levels are those of the platform's links. Blocks of d devices that follow each other are a level
/// where any two of a block are joined faster than any two of different blocks; all devices are the
/// outermost. The bandwidth of a level is the least of any way from one device of a block to
/// another; latencies are left out, as in the program; transfers at cuts count, of the value and
/// the gradient together, without compression.
///
/// A stage of an outer level is cut further within each of the blocks that replicate it. A
/// microbatch stays in the block where it is: the k-th goes to block k mod q of a stage on q, there
/// in turn to the replicas of each stage within. How the program's levels are played is
/// reconstructed; it says which machines hold a stage, not which microbatches they take.
#pragma once

#include "policy/interface/policy.hpp"
#include "policy/pipeline/partition/partition.hpp"
#include "policy/pipeline/partition/pipedream_partition.hpp"

#include <vector>

namespace plimsoll {

struct ReplicatedPartition {
  Partition partition;
  /// By slot, in the order in which they take microbatches. Together they are all devices.
  std::vector<std::vector<ProcessorId>> replicas;
};

/// The levels of `devices`, the innermost first; not empty. O(devices^2 x divisors of their
/// number). Throws InputError at `where`: no link between two of them.
[[nodiscard]] std::vector<PipedreamLevel> levels_of(const Problem& problem,
                                                    const std::vector<ProcessorId>& devices,
                                                    const Location& where);

/// Throws InputError at `where`: unlike devices, no link between two of them, or more splits than
/// it looks at.
[[nodiscard]] ReplicatedPartition pipedream_replicas(const Problem& problem,
                                                     const std::vector<ProcessorId>& devices,
                                                     const Location& where);

}  // namespace plimsoll
