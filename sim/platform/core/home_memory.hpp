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

/// Whether a memory may serve as storage: it is no crossing of links, and no processor computes in it.
/// O(processors).
[[nodiscard]] inline bool is_storage(const Platform& platform, MemoryId memory) {
  return !platform[memory].is_switch && !is_home(platform, memory);
}

}  // namespace plimsoll
