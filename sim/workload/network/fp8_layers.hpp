/// Which layers of a network compute in fp8 (operators/fp8.hpp): dense layers, also those of experts, but
/// not those that make logits or choose experts, which Megatron-LM leaves in the type of the parameters.
#pragma once

#include "workload/network/network_builder.hpp"

#include <span>
#include <vector>

namespace plimsoll {

/// By call that made `network`. Throws InputError, at `fp8`, where no layer does. O(calls + inputs).
[[nodiscard]] std::vector<bool> layers_in_fp8(const Network& network,
                                              std::span<const NetworkCall> calls,
                                              const Located<Fp8>& fp8);

}  // namespace plimsoll
