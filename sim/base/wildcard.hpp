/// Patterns: names with `*` that stand for several names.
#pragma once

#include <string_view>

namespace plimsoll {

/// Whether `text` is `pattern`, in which `*` stands for any characters, or none.
/// O(pattern x text).
[[nodiscard]] bool matches(std::string_view pattern, std::string_view text);

}  // namespace plimsoll
