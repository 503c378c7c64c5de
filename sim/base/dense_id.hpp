/// Dense ids: enum classes over std::uint32_t that count from 0 and index flat arrays. The type
/// keeps a processor from being taken for a memory.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace plimsoll {

template <class Id>
concept DenseId = std::is_enum_v<Id> && std::same_as<std::underlying_type_t<Id>, std::uint32_t>;

/// The place of `id` in the arrays that it indexes.
[[nodiscard]] constexpr std::uint32_t index(DenseId auto id) {
  return static_cast<std::uint32_t>(id);
}

/// No place: where an index is optional in a flat array.
inline constexpr std::uint32_t kNone = 0xFFFFFFFF;

}  // namespace plimsoll
