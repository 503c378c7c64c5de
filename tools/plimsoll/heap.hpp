/// How the program holds memory. A run makes plans and machines of hundreds of megabytes, one after the
/// other: a heap of large pages that keeps what is freed saves a sixth of the time of the largest.
#pragma once

namespace plimsoll {

/// Where the C library is glibc; nothing elsewhere, or where the kernel has no large pages to give. Reserves
/// addresses, not memory. Call it once, before threads begin.
void prepare_heap();

}  // namespace plimsoll
