/// Checkpointing in segments: what the policies share that keep a subset of the stages' inputs.
#pragma once

#include "policy/entry.hpp"
#include "policy/remat/chain_sequence.hpp"

namespace plimsoll {

/// The chain of `stages` in segments that begin at `begins` (rising, the first 0). Every segment
/// but the last runs forward without keeping anything but its input, and once more, keeping
/// everything, before its backward. O(stages).
[[nodiscard]] ChainSequence segment_sequence(std::span<const std::uint32_t> begins,
                                             std::uint32_t stages);

/// The chain in segments of L // segments stages, the last with the remainder. Precondition: 1 <=
/// segments <= L.
[[nodiscard]] Plan checkpoint_segments(const Problem& problem, ProcessorId processor,
                                       std::size_t segments, const std::string& policy);

}  // namespace plimsoll
