/// Which device holds which slot. Slots are numbered along the network; chunk j of a device is the
/// j-th of its slots.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace plimsoll {

/// By slot: index of its device.
using SlotPlacement =
    std::function<std::vector<std::uint32_t>(std::uint32_t devices, std::uint32_t virtual_stages)>;

/// By slot: index of its device. Chunk j of device i is slot j p + i.
[[nodiscard]] std::vector<std::uint32_t> loop_placement(std::uint32_t devices,
                                                        std::uint32_t virtual_stages);

/// Two chunks: slots i and 2p-1-i on device i, so that the ends of the network share device 0.
[[nodiscard]] std::vector<std::uint32_t> v_placement(std::uint32_t devices);

/// Chunk j of device i is slot j p + i for even j, j p + p-1-i for odd j: V after V.
[[nodiscard]] std::vector<std::uint32_t> wave_placement(std::uint32_t devices,
                                                        std::uint32_t virtual_stages);

}  // namespace plimsoll
