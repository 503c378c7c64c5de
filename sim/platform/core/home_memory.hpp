/// Memories in which processors compute, as opposed to storages.
#pragma once

#include "platform/core/platform.hpp"

#include <algorithm>

namespace plimsoll {

/// Whether a processor computes in `memory`. O(processors).
[[nodiscard]] inline bool is_home(const Platform& platform, MemoryId memory) {
  return std::ranges::any_of(platform.processors,
                             [&](const Processor& it) { return it.memory == memory; });
}

}  // namespace plimsoll
