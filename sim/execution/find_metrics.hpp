/// A part's measurements by its name.
#pragma once

#include "execution/metrics.hpp"

#include <algorithm>

namespace plimsoll {

/// nullptr where there is no memory of that name. O(memories).
[[nodiscard]] inline const MemoryMetrics* find_memory(const Metrics& metrics,
                                                      const std::string& name) {
  const auto found = std::ranges::find(metrics.memories, name, &MemoryMetrics::name);
  return found == metrics.memories.end() ? nullptr : &*found;
}

}  // namespace plimsoll
