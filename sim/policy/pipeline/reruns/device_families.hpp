/// Devices that run the same slots, as in schedules with two directions or with replicas.
#pragma once

#include "policy/pipeline/schedule/schedule.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

struct DeviceFamily {
  std::vector<std::uint32_t> devices, slots;  ///< ascending
};

/// Every device that runs a slot is in one of them, and so is every slot; by their first devices.
/// O(tasks), nearly.
[[nodiscard]] std::vector<DeviceFamily> device_families(const Schedule& schedule);

}  // namespace plimsoll
