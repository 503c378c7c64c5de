/// A memory at run time. Internal to this floor.
#pragma once

#include "execution/execution.hpp"
#include "memory/allocator.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll {

struct MemoryState {
  Allocator allocator;
  Bytes limit;               ///< of what is requested
  bool has_offsets = false;  ///< an arena in which the plan says where everything lies
  std::array<Bytes, kTensorClasses> live{};
  std::vector<std::uint32_t> waiting;    ///< steps that did not fit
  std::vector<std::uint32_t> releasing;  ///< progressive releases under way
  Time wake_at = Time::unlimited();      ///< the event at which these let `waiting` try again
  MemoryRecord record;

  [[nodiscard]] bool is_within_limit(Bytes more) const {
    return limit.is_unlimited() || more <= limit - allocator.now().requested;
  }
  /// Fills in `blocks`, all or none: where they say, or where the allocator finds place for them.
  [[nodiscard]] bool take(std::span<MemoryBlock> blocks, std::uint32_t stream) {
    return has_offsets ? allocator.place_all(blocks) : allocator.allocate_all(blocks, stream);
  }
  [[nodiscard]] Bytes& live_of(TensorClass tensor_class) {
    return live[static_cast<std::size_t>(tensor_class)];
  }

  void take_peak(Time now) {
    const MemoryUse use = allocator.now();
    record.peak.allocated = std::max(record.peak.allocated, use.allocated);
    record.peak.reserved = std::max(record.peak.reserved, use.reserved);
    if (use.requested <= record.peak.requested) return;
    record.peak.requested = use.requested;
    record.peak_time = now;
    record.at_peak = live;
  }
};

}  // namespace plimsoll
