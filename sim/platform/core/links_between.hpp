/// How far memories are from each other.
#pragma once

#include "platform/core/topology.hpp"

#include <cstddef>

namespace plimsoll {

/// Links on the way from one memory to another; more than there are where no way leads there.
[[nodiscard]] inline std::size_t links_between(const Platform& platform, const Topology& topology,
                                               MemoryId from, MemoryId to) {
  const Route* route = topology.route(from, to);
  return route != nullptr ? route->hops.size() : platform.links.size() + 1;
}

}  // namespace plimsoll
