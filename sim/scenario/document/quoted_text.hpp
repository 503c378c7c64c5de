/// Quotes text from outside in files that the program writes.
#pragma once

#include <string>

namespace plimsoll {

/// In double quotes, as YAML and JSON both have it; bytes that are no UTF-8 are replaced.
[[nodiscard]] std::string quoted(const std::string& text);

}  // namespace plimsoll
