/// The fullest memory of a pipeline's devices.
#pragma once

#include "support/played.hpp"

#include <algorithm>
#include <cstdint>

namespace plimsoll::test {

/// The largest peak of the first `devices` memories.
[[nodiscard]] inline std::int64_t largest_peak(const Played& run, std::int64_t devices) {
  std::int64_t peak = 0;
  for (std::uint32_t i = 0; i < devices; ++i) peak = std::max(peak, run.peak(MemoryId{i}));
  return peak;
}

}  // namespace plimsoll::test
