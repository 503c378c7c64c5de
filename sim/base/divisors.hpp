/// Which numbers would have divided another one, for errors.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace plimsoll {

/// Ascending. Precondition: `whole` is positive. O(square root of it).
[[nodiscard]] std::vector<std::int64_t> divisors_of(std::int64_t whole);

/// "expected one of 1, 2, 4"; of more than 16 "expected one of 25 numbers, the nearest of which are 30 and 36".
/// Precondition: `possible` is ascending, and not empty.
[[nodiscard]] std::string expected_one_of(std::span<const std::int64_t> possible,
                                          std::int64_t found);

/// The same of the divisors of `whole`.
[[nodiscard]] std::string expected_divisor(std::int64_t whole, std::int64_t found);

/// "32" or "96 or 128": the multiples of `unit` next to `found`.
[[nodiscard]] std::string nearest_multiples(std::int64_t unit, std::int64_t found);

}  // namespace plimsoll
