/// The 128-bit integers behind ordering keys, virtual clocks and divisible amounts.
#pragma once

namespace plimsoll {

__extension__ using Unsigned128 = unsigned __int128;
__extension__ using Signed128 = __int128;

}  // namespace plimsoll
