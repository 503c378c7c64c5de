/// Scores of candidates as fractions, compared exactly.
#pragma once

#include "engine/wide.hpp"

#include <compare>
#include <cstdint>

namespace plimsoll {

/// numerator / (factor * other factor), neither negative; a denominator of 0 is more than all else.
struct Score {
  std::uint64_t numerator = 0;
  std::uint64_t factor = 1, other_factor = 1;

  [[nodiscard]] bool is_infinite() const { return factor == 0 || other_factor == 0; }
  [[nodiscard]] bool is_zero() const { return numerator == 0 && !is_infinite(); }
};

namespace detail {

/// A product of up to 192 bits: high * 2^64 + low.
struct Product192 {
  Unsigned128 high = 0;
  std::uint64_t low = 0;
  auto operator<=>(const Product192&) const = default;
};

inline Product192 product(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const Unsigned128 bc = Unsigned128{b} * c;
  const Unsigned128 low = Unsigned128{a} * static_cast<std::uint64_t>(bc);
  const Unsigned128 high = Unsigned128{a} * static_cast<std::uint64_t>(bc >> 64);
  return {high + (low >> 64), static_cast<std::uint64_t>(low)};
}

}  // namespace detail

/// Equal where both are infinite.
inline std::weak_ordering operator<=>(const Score& a, const Score& b) {
  if (a.is_infinite() || b.is_infinite()) return a.is_infinite() <=> b.is_infinite();
  return detail::product(a.numerator, b.factor, b.other_factor) <=>
         detail::product(b.numerator, a.factor, a.other_factor);
}

}  // namespace plimsoll
