/// Quantities as people write them: a decimal number, a space (optional), a unit.
///
/// The number is read exactly as a decimal (no floating point). Durations are rounded up to 1 ps
/// and sizes to 1 B, all else to the nearest count; a fraction of the count itself is a problem,
/// except for durations ("1.5 GiB" is fine, "1.5 B" is not). kB, MB, GB, TB are powers of ten, KiB,
/// MiB, GiB, TiB powers of two. A Ratio is a bare number (0.82) or a percentage (82 %), a
/// SampleRate a bare number (250) or one of samples/s.
#pragma once

#include "base/quantity.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace plimsoll {

/// A value, or the reason why there is none ("a bare number; expected a size such as 16 GiB").
template <class T>
struct Parsed {
  std::optional<T> value;
  std::string problem;
  std::string hint;  ///< "did you mean `GB/s`?" or empty
};

/// Reads `text` as a T (one of the quantities of base/quantity.hpp). "unlimited" is read only where
/// `allow_unlimited`; negative numbers, bare numbers, unknown units and overflow are problems, each
/// with the nearest known unit. A bare 0 is a bare number. O(text).
template <class T>
[[nodiscard]] Parsed<T> parse_quantity(std::string_view text, bool allow_unlimited = false);

/// An example and a regular expression for messages and JSON Schema: "16 GiB".
template <class T>
[[nodiscard]] std::string quantity_example();
template <class T>
[[nodiscard]] std::string quantity_pattern(bool allow_unlimited = false);

}  // namespace plimsoll
