/// What messages across a cut of the chain take over links that nothing else uses.
#pragma once

#include "policy/interface/policy.hpp"

namespace plimsoll {

/// Of what the stage before the cut leaves for those behind it; where something is carried beside its
/// output, one message after the other. Precondition: a route joins the memories.
[[nodiscard]] Time value_time(const Problem& problem, MemoryId from, MemoryId to,
                              const ChainStage& before);

/// Of these, the output of the stage, and what is carried beside it.
[[nodiscard]] Time output_time(const Problem& problem, MemoryId from, MemoryId to,
                               const ChainStage& before);
[[nodiscard]] Time carried_time(const Problem& problem, MemoryId from, MemoryId to,
                                const ChainStage& before);

/// Of the gradients that come back.
[[nodiscard]] Time gradient_time(const Problem& problem, MemoryId from, MemoryId to,
                                 const ChainStage& before);

}  // namespace plimsoll
