/// What copies to a storage take in energy, as far as a platform states it.
#pragma once

#include "platform/core/platform.hpp"
#include "platform/core/topology.hpp"

namespace plimsoll {

/// Whether a copy from `home` to `storage` and one back both have an energy: a power or an energy
/// per byte of the storage, or of a link on the way. 0 W is stated, too. A way that does not exist
/// has none. O(links of the ways).
[[nodiscard]] bool states_copy_energy(const Platform& platform, const Topology& topology,
                                      MemoryId home, MemoryId storage);

}  // namespace plimsoll
