#include "platform/core/machines.hpp"

#include "base/dense_id.hpp"

#include <algorithm>
#include <cstddef>
#include <map>

namespace plimsoll {

std::vector<std::uint32_t> machines_of(const Platform& platform,
                                       std::span<const ProcessorId> devices) {
  std::vector<bool> is_devices(platform.memories.size());
  for (const ProcessorId device : devices) is_devices[index(platform[device].memory)] = true;
  std::vector<std::vector<std::uint32_t>> linked(platform.memories.size());
  std::vector<std::size_t> links_to(platform.memories.size());
  for (const Link& link : platform.links)
    for (const std::size_t end : {0U, 1U}) {
      const std::uint32_t from = index(link.between[end]), to = index(link.between[1 - end]);
      if (!is_devices[from] || is_devices[to] || std::ranges::count(linked[from], to) > 0) continue;
      linked[from].push_back(to);
      ++links_to[to];
    }
  std::map<std::uint32_t, std::uint32_t> machine_of;
  std::vector<std::uint32_t> machines;
  for (const ProcessorId device : devices) {
    const std::uint32_t memory = index(platform[device].memory);
    std::uint32_t host = memory;
    for (const std::uint32_t to : linked[memory])
      if (links_to[to] > 1 && (host == memory || links_to[to] < links_to[host])) host = to;
    const auto next = static_cast<std::uint32_t>(machine_of.size());
    machines.push_back(machine_of.try_emplace(host, next).first->second);
  }
  return machines;
}

}  // namespace plimsoll
