/// What a step leaves out of its backward because weights are frozen.
#pragma once

#include "workload/network/network.hpp"

namespace plimsoll {

/// Multiply-adds of gradients that the network would make if all of it were trained, and does not: as
/// many as those of the forward for the gradient of a weight of which nothing is trained (of a part of
/// its rows in proportion), and as many for that of an input that nothing before needs. 0 where
/// everything is trained. O(operators).
[[nodiscard]] Elements frozen_macs(const Network& network);

}  // namespace plimsoll
