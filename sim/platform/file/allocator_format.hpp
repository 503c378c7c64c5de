/// How files name an allocator: `caching`, or `{caching: {expandable_segments: true}}`.
#pragma once

#include "base/format.hpp"
#include "memory/allocator_settings.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

/// A name, or a mapping of one name to its settings.
[[nodiscard]] Format<AllocatorSettings> allocator_format();

/// As files write it: `best-fit`.
[[nodiscard]] std::string_view to_text(AllocatorKind kind);
/// In the order of the enumeration.
[[nodiscard]] const std::vector<AllocatorKind>& allocator_kinds();

}  // namespace plimsoll
