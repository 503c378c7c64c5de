/// Which allocator a memory has, with the settings of each kind.
#pragma once

#include "base/quantity.hpp"
#include "memory/bfc_settings.hpp"
#include "memory/caching_settings.hpp"
#include "memory/placed_settings.hpp"

#include <cstdint>

namespace plimsoll {

enum class AllocatorKind : std::uint8_t { ideal, best_fit, first_fit, caching, bfc, placed };

/// Whether all of the memory is one stretch of addresses from which every block is cut exactly.
[[nodiscard]] constexpr bool is_arena(AllocatorKind kind) {
  return kind == AllocatorKind::best_fit || kind == AllocatorKind::first_fit ||
         kind == AllocatorKind::placed;
}

/// Whether it takes memory of a device in segments, and has all of the device for that.
[[nodiscard]] constexpr bool takes_segments(AllocatorKind kind) {
  return kind == AllocatorKind::caching || kind == AllocatorKind::bfc;
}

/// Settings of kinds other than `kind` are not looked at.
struct AllocatorSettings {
  AllocatorKind kind = AllocatorKind::ideal;
  Bytes alignment{1};  ///< of the blocks of an arena
  CachingSettings caching;
  BfcSettings bfc;
  PlacedSettings placed;

  bool operator==(const AllocatorSettings&) const = default;
};

}  // namespace plimsoll
