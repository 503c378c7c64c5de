/// Memories in which processors compute, as opposed to storages, and those that they reach beside.
#pragma once

#include "platform/core/platform.hpp"

#include <algorithm>
#include <vector>

namespace plimsoll {

/// Whether a processor computes in `memory`. O(processors).
[[nodiscard]] inline bool is_home(const Platform& platform, MemoryId memory) {
  return std::ranges::any_of(platform.processors,
                             [&](const Processor& it) { return it.memory == memory; });
}

/// is_home() of all memories, by memory. O(memories + processors).
[[nodiscard]] inline std::vector<bool> homes_of(const Platform& platform) {
  std::vector<bool> homes(platform.memories.size(), false);
  for (const Processor& it : platform.processors) homes[index(it.memory)] = true;
  return homes;
}

/// Whether a memory may serve as storage: it is no crossing of links, and no processor computes in it.
/// O(processors).
[[nodiscard]] inline bool is_storage(const Platform& platform, MemoryId memory) {
  return !platform[memory].is_switch && !is_home(platform, memory);
}

/// Where the operators of a processor may read and write: its own memory, and those that it reaches.
/// The processor must outlive it.
class WorkingMemories {
 public:
  explicit WorkingMemories(const Processor& processor) : processor_(processor) {}

  [[nodiscard]] bool has(MemoryId memory) const {
    return memory == processor_.memory ||
           std::ranges::find(processor_.reaches, memory) != processor_.reaches.end();
  }

 private:
  const Processor& processor_;
};

}  // namespace plimsoll
