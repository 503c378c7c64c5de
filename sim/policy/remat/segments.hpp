/// Checkpointing in segments: what the policies share that keep a subset of the stages' inputs.
#pragma once

#include "policy/entry.hpp"
#include "policy/remat/chain_sequence.hpp"

#include <cstdint>
#include <span>

namespace plimsoll {

/// The chain of `stages` in segments that begin at `begins` (ascending, from 0). Every segment but
/// the last runs forward without keeping anything but its input, and once more, keeping everything,
/// before its backward. O(stages).
[[nodiscard]] ChainSequence segment_sequence(std::span<const std::uint32_t> begins,
                                             std::uint32_t stages);

/// The plan of segments of L // segments stages, the last with the remainder: what remat/sqrt and
/// remat/every-stage share. Precondition: 1 <= segments <= L.
[[nodiscard]] Plan equal_segments(const Problem& problem, ProcessorId processor,
                                  std::size_t segments, const std::string& policy);

}  // namespace plimsoll
