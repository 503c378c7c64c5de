/// Counts the allocations of a test program, to show that an inner loop makes none.
/// Programs that use it compile allocation_count.cpp, which replaces the global operator new.
#pragma once

#include <cstdint>

namespace plimsoll {

/// Calls of any operator new since the program began.
[[nodiscard]] std::uint64_t allocation_count();

}  // namespace plimsoll
