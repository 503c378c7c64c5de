/// Which memory is for a rank what one that is no rank's own is for the first: a host's, to which activations go.
///
/// Of the memories that the platform's file tells of as one (Memory::key()), the first rank uses the k-th nearest of
/// the processor that is nearest to it, by links between them; so every rank has the k-th nearest of its own.
///
/// Example: machines of 8 processors and a memory of the host each. Rank 8, the first of the second machine, copies
/// out to `dram1` where rank 0 copies out to `dram0`.
#pragma once

#include "plan/build/spreading.hpp"
#include "platform/core/topology.hpp"

#include <vector>

namespace plimsoll {

/// By rank. A memory that has no likes is that of all. Precondition: it is no processor's of the mesh.
/// O(links + ranks) where it is linked to the memory of a rank; else O(ranks x memories log memories), and a search for
/// routes from every rank.
[[nodiscard]] std::vector<MemoryId> hosts_of_ranks(MemoryId of_first, const Spreading& spreading,
                                                   const Platform& platform,
                                                   const Topology& topology);

}  // namespace plimsoll
