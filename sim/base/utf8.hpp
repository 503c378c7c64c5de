/// UTF-8 for text that comes from outside or leaves the program.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace plimsoll {

/// Length of the UTF-8 character at the front of `text`, 0 where there is none: overlong forms,
/// surrogates and what lies above U+10FFFF are not characters. Precondition: not empty.
[[nodiscard]] std::size_t utf8_length(std::string_view text);

/// `text` with U+FFFD for each byte that is part of no character. O(text).
[[nodiscard]] std::string valid_utf8(std::string_view text);

/// `text` for a message: at most `longest` bytes of it, and `...` where there are more; bytes that
/// show nothing as `\x00`, each: control characters, blanks other than a space, marks without
/// width, and what is part of no character. O(longest).
[[nodiscard]] std::string visible_utf8(std::string_view text, std::size_t longest);

}  // namespace plimsoll
