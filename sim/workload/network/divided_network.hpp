/// A network as one of several ranks runs it that divide each layer among them (division.hpp), with
/// what they exchange (operators/exchange_rules.hpp): all calls that made the whole network, made
/// again with the rank's part of their arguments.
///
/// Where a layer divided by columns reads a value that all ranks have, the ranks add up its gradient,
/// once for all such readers; what a layer divided by rows makes, they add up in place. With divided
/// positions they gather the value, and scatter the sum, once for the readers in a block (what an
/// encoder makes, each block of a decoder gathers): of what was gathered a rank keeps its own part,
/// and gathers it again in the backward.
///
/// Ranks of an expert axis hold a part of each mixture's experts (divided_experts.hpp), those of a context
/// axis a part of the positions (divided_positions.hpp).
#pragma once

#include "workload/network/network_builder.hpp"

#include <span>

namespace plimsoll {

/// Along the axes that `options` has; `in_fp8`: by call, whether its layer computes in fp8. Throws InputError, at the axis, where the layers cannot be divided
/// so.
[[nodiscard]] Network divided_network(const Network& whole, std::span<const NetworkCall> calls,
                                      const std::vector<bool>& in_fp8, const ValueTypes& types,
                                      const WorkloadOptions& options);

}  // namespace plimsoll
