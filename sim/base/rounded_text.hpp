/// Whether the text of a quantity is exact or rounded.
#pragma once

#include "base/quantity.hpp"

namespace plimsoll {

/// Whether to_text(bytes), read again, is another number: where it counts, the bytes are said, too.
[[nodiscard]] bool is_rounded_in_text(Bytes bytes);

}  // namespace plimsoll
