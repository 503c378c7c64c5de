/// The inner loops of dynamic programs that take minima of sums of rows: with the widest registers
/// that the processor has, with the same result on every processor.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plimsoll {

/// best[i] = min(best[i], a[i] + b[i] + add) for i < count. `best` overlaps neither. Precondition:
/// no sum leaves the range. O(count).
void lower_to_sum(std::int64_t* best, const std::int64_t* a, const std::int64_t* b,
                  std::size_t count, std::int64_t add);

/// best[i] = min(best[i], a[i] + add) for i < count.
void lower_to_sum(std::int64_t* best, const std::int64_t* a, std::size_t count, std::int64_t add);

}  // namespace plimsoll
