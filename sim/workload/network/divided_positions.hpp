/// How the ranks of a context axis divide the positions of every sample among them: each runs the whole
/// network on its part. Attention alone looks at those of others (ring_attention_rule()). Where it is
/// causal, positions are in 2 n chunks, of which rank i has the i-th from the beginning and from the end,
/// so that all have the same work.
#pragma once

#include "workload/network/network_builder.hpp"

#include <cstdint>
#include <span>

namespace plimsoll {

/// Throws InputError, at the axis, with everything that keeps positions from being divided. `part`: into
/// how many parts a rank's positions are divided once more (`sequence`). O(calls + values).
void check_divided_positions(const Network& network, std::span<const NetworkCall> calls,
                             const Located<std::int64_t>& axis, std::int64_t part);

/// Whether the call is attention of which each rank has a part of the query, of the key and of the value.
[[nodiscard]] bool is_ring_attention(const NetworkCall& call);

}  // namespace plimsoll
