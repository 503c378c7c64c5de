/// A memory at run time. Internal to this floor.
#pragma once

#include "execution/execution.hpp"
#include "memory/allocator.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace plimsoll {

struct MemoryState {
  Allocator allocator;
  Bytes limit;  ///< of what is requested
  std::array<Bytes, kTensorClasses> live{};
  std::vector<std::uint32_t> waiting;    ///< steps that did not fit
  std::vector<std::uint32_t> releasing;  ///< progressive releases under way
  Time wake_at = Time::unlimited();      ///< the event at which these let `waiting` try again
  MemoryRecord record;

  [[nodiscard]] bool is_within_limit(Bytes more) const {
    return limit.is_unlimited() || more <= limit - allocator.now().requested;
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
