/// Which processors are in one machine.
#pragma once

#include "platform/core/platform.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll {

/// By place in `devices`, the number of its machine, in the order in which the first of each comes. Those are in one
/// machine whose memories are linked to the same memory or switch that is no device's: of several, to the one
/// that the fewest are linked to. O(links + devices).
[[nodiscard]] std::vector<std::uint32_t> machines_of(const Platform& platform,
                                                     std::span<const ProcessorId> devices);

}  // namespace plimsoll
