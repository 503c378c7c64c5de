/// The settings of the caching allocator.
#pragma once

#include "base/quantity.hpp"

#include <cstdint>

namespace plimsoll {

/// Defaults are those of the framework. Sources: reference of memory/caching.hpp.
struct CachingSettings {
  /// Blocks of this size and more are not cut, and serve no request below it. More than
  /// kLargeSegment, so that a segment that is cut never holds such a block; unlimited: no such
  /// blocks.
  Bytes max_split_size = Bytes::unlimited();
  /// Requests of more than 512 B times this are rounded up to steps of (power of two) / this. A
  /// power of two; 1: plain rounding to 512 B.
  std::int64_t roundup_power2_divisions = 1;
  /// Above this share of the capacity old segments are given back before a new one is asked for;
  /// 0: never.
  Ratio garbage_collection_threshold;
  /// One growing segment per stream and pool instead of separate ones. Beside it
  /// `max_split_size` and `garbage_collection_threshold` must be left as they are.
  bool expandable_segments = false;

  bool operator==(const CachingSettings&) const = default;
};

inline constexpr std::int64_t kMaxDivisions = std::int64_t{1} << 20;

}  // namespace plimsoll
