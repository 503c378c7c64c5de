/// Where the inputs of a pipeline that repeats a pattern get in the way of its messages.
#pragma once

#include "policy/pipeline/schedule/slots.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

/// What copies from one memory to the other take turns on: a number for each link, and direction
/// unless it is half-duplex, that needs time. Precondition: a route joins them.
[[nodiscard]] std::vector<std::uint32_t> link_turns(const Problem& problem, MemoryId from,
                                                    MemoryId to);

/// Whether copies from one memory to the other take turns with those back. Precondition likewise.
[[nodiscard]] bool is_half_duplex(const Problem& problem, MemoryId from, MemoryId to);

/// Throws InputError where a link carries, in one direction, inputs to two devices, or inputs and
/// messages: a pattern gives each its own. Preconditions: routes join neighbours, and the data and
/// every slot that reads it.
void require_inputs_apart(const Problem& problem, const Located<std::string>& load_from,
                          const Slots& slots);

}  // namespace plimsoll
