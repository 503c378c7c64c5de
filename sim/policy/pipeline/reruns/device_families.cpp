#include "policy/pipeline/reruns/device_families.hpp"

#include <algorithm>
#include <numeric>

#include <boost/pending/disjoint_sets.hpp>

namespace plimsoll {

std::vector<DeviceFamily> device_families(const Schedule& schedule) {
  const std::size_t devices = schedule.orders.size();
  constexpr std::uint32_t kNobody = 0xFFFFFFFF;
  std::vector<std::uint32_t> rank(devices, 0), parent(devices);
  std::iota(parent.begin(), parent.end(), 0u);
  boost::disjoint_sets<std::uint32_t*, std::uint32_t*> sets(rank.data(), parent.data());
  std::vector<std::uint32_t> first(schedule.placement.size(), kNobody);  // device, by slot
  for (std::uint32_t device = 0; device < devices; ++device)
    for (const Task& task : schedule.orders[device]) {
      if (first[task.slot] == kNobody) first[task.slot] = device;
      sets.union_set(device, first[task.slot]);
    }

  std::vector<DeviceFamily> families;
  std::vector<std::uint32_t> number(devices, kNobody);
  for (std::uint32_t device = 0; device < devices; ++device) {
    std::uint32_t& family = number[sets.find_set(device)];
    if (family == kNobody) {
      family = static_cast<std::uint32_t>(families.size());
      families.emplace_back();
    }
    families[family].devices.push_back(device);
  }
  for (std::uint32_t slot = 0; slot < first.size(); ++slot)
    if (first[slot] != kNobody) families[number[sets.find_set(first[slot])]].slots.push_back(slot);
  std::erase_if(families, [](const DeviceFamily& it) { return it.slots.empty(); });
  return families;
}

}  // namespace plimsoll
