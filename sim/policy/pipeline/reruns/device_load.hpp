/// What a device holds of other microbatches while it runs a task: how many, of which slots.
#pragma once

#include "policy/pipeline/schedule/schedule.hpp"

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll {

/// Microbatches of one slot, but for that of the task.
struct SlotCounts {
  std::uint32_t slot = 0;
  std::uint32_t kept = 0;  ///< between the forward and the backward, or its half for inputs
  std::uint32_t held = 0;  ///< between the two halves of the backward
  auto operator<=>(const SlotCounts&) const = default;
};

/// A task of `slot` finds `others` on its device.
struct DeviceLoad {
  std::uint32_t slot = 0;
  std::vector<SlotCounts> others;  ///< by slot, those that there are
  auto operator<=>(const DeviceLoad&) const = default;
};

/// All that occur in an order, each once, ascending. O(tasks * slots of the device).
[[nodiscard]] std::vector<DeviceLoad> device_loads(std::span<const Task> order);

/// Whether any of them is of a task of `slot`.
[[nodiscard]] bool runs_slot(std::span<const DeviceLoad> loads, std::uint32_t slot);

}  // namespace plimsoll
