/// Values that a sweep varies, exact: numbers, quantities with their unit, and words.
///
/// A quantity is held as a fraction of the unit that base/quantity.hpp counts (1 B, 1 ps, ...), so
/// that ranges and derived values come out the same on every machine.
#pragma once

#include "base/quantity.hpp"

#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace plimsoll {

/// A fraction in lowest terms. Arithmetic that leaves 128 bits throws ExpressionError.
class Exact {
 public:
  using Wide = unit::Wide::Count;

  Exact() = default;
  /// Precondition: denominator is not 0.
  explicit Exact(Wide numerator, Wide denominator = 1);

  [[nodiscard]] Wide numerator() const { return numerator_; }
  [[nodiscard]] Wide denominator() const { return denominator_; }  ///< above 0
  [[nodiscard]] bool is_whole() const { return denominator_ == 1; }
  [[nodiscard]] double approximately() const;
  [[nodiscard]] Exact rounded_down() const;

  /// "0.125"; nothing where that has more than nine decimals.
  [[nodiscard]] std::optional<std::string> decimal() const;

  friend Exact operator+(Exact a, Exact b);
  friend Exact operator-(Exact a, Exact b);
  friend Exact operator*(Exact a, Exact b);
  friend Exact operator/(Exact a, Exact b);  ///< throws ExpressionError where b is 0
  friend std::strong_ordering operator<=>(Exact a, Exact b);
  friend bool operator==(Exact a, Exact b) = default;

 private:
  Wide numerator_ = 0, denominator_ = 1;
};

/// What a value measures.
enum class Measure : std::uint8_t {
  word,       ///< no number: a name, a mapping
  unlimited,  ///< of whatever: a capacity, a bandwidth, a rate
  number,
  size,
  time,
  byte_rate,
  flop_rate,
  power,
  energy,
  energy_per_byte,
  energy_per_flop,
};

/// "a size", for messages; "`unlimited`".
[[nodiscard]] const char* to_text(Measure measure);

/// The unit in which results give it: "B", "s", "B/s", ...; empty for what is no quantity.
[[nodiscard]] const char* si_unit(Measure measure);

struct SweepValue {
  Measure measure = Measure::word;
  Exact count;       ///< of the unit that base/quantity.hpp counts
  std::string word;  ///< of Measure::word

  [[nodiscard]] bool is_quantity() const { return measure > Measure::number; }
  [[nodiscard]] double in_si() const;  ///< precondition: a number or a quantity
};

/// "12", "0.5", "10 %", "16 GiB", "unlimited"; whatever is none of these is a word. O(text).
[[nodiscard]] SweepValue parse_sweep_value(std::string_view text);

/// As a file would have it: in the largest common unit in which the count has at most six digits
/// and three decimals, else as counted. A quantity is rounded down to what is counted. Throws
/// ExpressionError for a number that is no decimal of nine places.
[[nodiscard]] std::string to_text(const SweepValue& value);

/// The unit of "4 GB/s" with its size in counts; empty and 1 for a number.
struct WrittenUnit {
  std::string name;
  Exact size{1};
};
[[nodiscard]] WrittenUnit unit_of(std::string_view text);

}  // namespace plimsoll
