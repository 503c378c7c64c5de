/// The 128-bit integer that ordering keys and virtual clocks are made of.
#pragma once

namespace plimsoll {

__extension__ using Unsigned128 = unsigned __int128;

}  // namespace plimsoll
