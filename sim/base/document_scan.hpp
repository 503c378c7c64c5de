/// The scan of a text's bytes before yaml-cpp sees them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace plimsoll {

/// Refuses (InputError) what is not UTF-8, control characters, conflict markers of a merge, and
/// blanks that look like a space where YAML takes only a space. Returns the text without its byte
/// order mark. O(text).
[[nodiscard]] std::string_view scan_document(std::string_view text, const std::string& origin);

/// At most some 60 bytes of a text for a message: on one line, never cut inside a character.
[[nodiscard]] std::string excerpt(std::string_view text);

}  // namespace plimsoll
