/// The scan of a text's bytes before yaml-cpp sees them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace plimsoll {

/// Refuses (InputError) what is not UTF-8 and control characters. Returns the text without its byte
/// order mark. O(text).
[[nodiscard]] std::string_view scan_document(std::string_view text, const std::string& origin);

/// Length of the UTF-8 character at the front of `text`, 0 where there is none: overlong forms,
/// surrogates and what lies above U+10FFFF are not characters. O(1).
[[nodiscard]] std::size_t utf8_length(std::string_view text);

/// At most some 60 bytes of a text for a message: on one line, never cut inside a character.
[[nodiscard]] std::string excerpt(std::string_view text);

}  // namespace plimsoll
