/// Checkpointing in segments: what the policies share that keep a subset of the stages' inputs.
#pragma once

#include "policy/interface/entry.hpp"
#include "policy/remat/chain/chain_sequence.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll {

/// The chain of `stages` in segments that begin at `begins` (ascending, from 0). Every segment but
/// the last runs forward without keeping anything but its input, and once more, keeping everything,
/// before its backward. O(stages).
[[nodiscard]] ChainSequence segment_sequence(std::span<const std::uint32_t> begins,
                                             std::uint32_t stages);

/// Where segments of L // segments stages begin, the last with the remainder. Precondition: 1 <=
/// segments <= L.
[[nodiscard]] std::vector<std::uint32_t> equal_begins(std::uint32_t stages, std::size_t segments);

/// The plan of equal_begins(): what remat/sqrt and remat/every-stage share. Precondition: 1 <=
/// segments <= L.
[[nodiscard]] Plan equal_segments(const Problem& problem, ProcessorId processor,
                                  std::size_t segments, const std::string& policy);

}  // namespace plimsoll
