#include "policy/pipeline/partition/placement.hpp"

namespace plimsoll {

std::vector<std::uint32_t> loop_placement(std::uint32_t devices, std::uint32_t virtual_stages) {
  std::vector<std::uint32_t> placement;
  for (std::uint32_t chunk = 0; chunk < virtual_stages; ++chunk)
    for (std::uint32_t i = 0; i < devices; ++i) placement.push_back(i);
  return placement;
}

std::vector<std::uint32_t> v_placement(std::uint32_t devices) {
  return wave_placement(devices, 2);
}

std::vector<std::uint32_t> wave_placement(std::uint32_t devices, std::uint32_t virtual_stages) {
  std::vector<std::uint32_t> placement;
  for (std::uint32_t chunk = 0; chunk < virtual_stages; ++chunk)
    for (std::uint32_t i = 0; i < devices; ++i)
      placement.push_back(chunk % 2 == 0 ? i : devices - 1 - i);
  return placement;
}

}  // namespace plimsoll
