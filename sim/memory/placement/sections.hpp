/// Which buffers are alive together: pairs, and the sections of time that matter.
///
/// A section is a maximal set of buffers that are alive at one time. Every pair that overlaps is in
/// one of them, so what holds in all sections holds at all times. There are no more than buffers;
/// the sections of a buffer follow each other.
#pragma once

#include "memory/placement/buffers.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll {

struct BufferSections {
  std::vector<std::vector<std::uint32_t>> members;     ///< by section
  std::vector<std::uint32_t> first, end;               ///< by buffer: its sections [first, end)
  std::vector<std::vector<std::uint32_t>> neighbours;  ///< by buffer: those that overlap it
};

/// O(buffers log buffers + pairs that overlap + members).
[[nodiscard]] BufferSections sections_of(std::span<const TimedBuffer> buffers);

}  // namespace plimsoll
