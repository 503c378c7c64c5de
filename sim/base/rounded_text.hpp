/// Whether the text of a quantity is exact or rounded.
#pragma once

#include "base/quantity.hpp"

#include <string>

namespace plimsoll {

/// to_text(bytes), or all its digits where that of `other`, another number, reads alike:
/// "4194303 B" beside 4 MiB.
[[nodiscard]] std::string text_beside(Bytes bytes, Bytes other);

/// to_text(bytes), or all digits where it is rounded.
[[nodiscard]] std::string exact_text(Bytes bytes);

/// Whether to_text(bytes), read again, is another number: where it counts, the bytes are said, too.
[[nodiscard]] bool is_rounded_in_text(Bytes bytes);

}  // namespace plimsoll
