#include "platform/core/copy_energy.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

/// One way: by the storage's `access`, or by a link.
bool states_one_way(const Platform& platform, const Route* route, const Memory& storage,
                    const AccessCost& access) {
  if (route == nullptr) return false;
  if (storage.power || access.energy) return true;
  return std::ranges::any_of(route->hops, [&](const Hop& hop) {
    return platform[hop.link].power || platform[hop.link].energy;
  });
}

}  // namespace

bool states_copy_energy(const Platform& platform, const Topology& topology, MemoryId home,
                        MemoryId storage) {
  const Memory& its = platform[storage];
  return states_one_way(platform, topology.route(home, storage), its, its.write) &&
         states_one_way(platform, topology.route(storage, home), its, its.read);
}

}  // namespace plimsoll
