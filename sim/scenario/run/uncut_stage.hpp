/// A stage of the chain that has most of the work: policies of chains and pipelines take a network apart where
/// nothing but one value is left of what came before, and here something reaches past every operator in it: parameters
/// that are gathered for the first and the last layer, or what an encoder hands to every block of a decoder (which
/// pipelines carry).
#pragma once

#include "workload/chain/chain_view.hpp"
#include "workload/core/workload.hpp"

#include <string>

namespace plimsoll {

/// Empty where none has 80 % of the FLOPs of all forwards, or the one that has is a few operators. O(operators).
[[nodiscard]] std::string note_on_uncut_stage(const ChainView& chain, const Workload& workload);

}  // namespace plimsoll
