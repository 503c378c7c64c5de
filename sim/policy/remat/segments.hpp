/// Checkpointing in segments: every segment but the last runs forward without keeping anything but
/// its input, and once more, keeping everything, before its backward.
#pragma once

#include "policy/entry.hpp"

#include <cstdint>
#include <span>

namespace plimsoll {

/// The chain in segments that begin at the stages `begins`. Precondition: ascending, from 0.
[[nodiscard]] Plan checkpoint_segments(const Problem& problem, ProcessorId processor,
                                       std::span<const std::uint32_t> begins,
                                       const std::string& policy);

/// The chain in segments of L // segments stages, the last with the remainder: what remat/sqrt and
/// remat/every-stage share. Precondition: 1 <= segments <= L.
[[nodiscard]] Plan equal_segments(const Problem& problem, ProcessorId processor,
                                  std::size_t segments, const std::string& policy);

}  // namespace plimsoll
