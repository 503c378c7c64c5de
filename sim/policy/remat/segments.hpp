/// Checkpointing in segments: what remat/sqrt and remat/every-stage share.
#pragma once

#include "policy/entry.hpp"

namespace plimsoll {

/// The chain in segments of L // segments stages, the last with the remainder. Every segment but
/// the last runs forward without keeping anything but its input, and once more, keeping everything,
/// before its backward. Precondition: 1 <= segments <= L.
[[nodiscard]] Plan checkpoint_segments(const Problem& problem, ProcessorId processor,
                                       std::size_t segments, const std::string& policy);

}  // namespace plimsoll
