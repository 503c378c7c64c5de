/// Quantities with units.
///
/// Every quantity is a 64-bit (energy: 128-bit) integer count of one fixed unit, so that arithmetic
/// is exact and gives the same bits on every machine:
///
///   Bytes         bytes                    ByteRate       bytes per second
///   Time          picoseconds              FlopRate       FLOP per second
///   Flops         floating-point operations  Power          nanowatts
///   EnergyPerByte attojoules per byte      EnergyPerFlop  attojoules per FLOP
///   Energy        zeptojoules (1e-21 J = nanowatt x picosecond)
///   Ratio         parts per billion (efficiencies, percentages)
///   SampleRate    nanosamples per second
///   Frequency     hertz                      Voltage        microvolts
///
/// Sums, differences and products that leave the range throw QuantityOverflow. A count may be
/// `unlimited` (capacities, bandwidths, rates): it compares greater than every other count, and
/// arithmetic with it throws QuantityOverflow too.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

namespace plimsoll {

/// Thrown when a quantity leaves its range: about 9.2 EB, 106 days, 9.2 GW.
class QuantityOverflow : public std::overflow_error {
 public:
  QuantityOverflow() : std::overflow_error("a quantity is out of range") {}
};

namespace detail {
[[noreturn]] void throw_quantity_overflow();
}  // namespace detail

/// A count of `Unit`s. `Unit` is a tag type; it keeps bytes from being added to seconds.
template <class Unit>
class Quantity {
 public:
  using Count = typename Unit::Count;

  constexpr Quantity() = default;
  constexpr explicit Quantity(Count count) : count_(count) {}

  /// No limit at all: "unlimited" in files.
  static constexpr Quantity unlimited() { return Quantity(max_count()); }
  [[nodiscard]] constexpr bool is_unlimited() const { return count_ == max_count(); }
  [[nodiscard]] constexpr Count count() const { return count_; }

  constexpr auto operator<=>(const Quantity&) const = default;

  constexpr Quantity& operator+=(Quantity other) {
    if (is_unlimited() || __builtin_add_overflow(count_, other.count_, &count_) || is_unlimited())
      detail::throw_quantity_overflow();
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    if (is_unlimited() || __builtin_sub_overflow(count_, other.count_, &count_) || is_unlimited())
      detail::throw_quantity_overflow();
    return *this;
  }
  constexpr Quantity& operator*=(std::int64_t factor) {
    if (is_unlimited() || __builtin_mul_overflow(count_, Count{factor}, &count_) || is_unlimited())
      detail::throw_quantity_overflow();
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator*(Quantity a, std::int64_t factor) { return a *= factor; }
  friend constexpr Quantity operator*(std::int64_t factor, Quantity a) { return a *= factor; }

 private:
  static constexpr Count max_count() {
    // Not numeric_limits: with strict ISO C++ it does not know __int128.
    Count max = 1;
    for (std::size_t bit = 2; bit < 8 * sizeof(Count); ++bit) max = static_cast<Count>(2 * max + 1);
    return max;
  }
  Count count_ = 0;
};

namespace unit {
struct Narrow {
  using Count = std::int64_t;
};
__extension__ struct Wide { using Count = __int128; };
struct Byte : Narrow {};
struct Picosecond : Narrow {};
struct Flop : Narrow {};
struct BytePerSecond : Narrow {};
struct FlopPerSecond : Narrow {};
struct Nanowatt : Narrow {};
struct Zeptojoule : Wide {};
struct AttojoulePerByte : Narrow {};
struct AttojoulePerFlop : Narrow {};
struct PartPerBillion : Narrow {};
struct NanosamplePerSecond : Narrow {};
struct Hertz : Narrow {};
struct Microvolt : Narrow {};
}  // namespace unit

using Bytes = Quantity<unit::Byte>;
using Time = Quantity<unit::Picosecond>;
using Flops = Quantity<unit::Flop>;
using ByteRate = Quantity<unit::BytePerSecond>;
using FlopRate = Quantity<unit::FlopPerSecond>;
using Power = Quantity<unit::Nanowatt>;
using Energy = Quantity<unit::Zeptojoule>;
using EnergyPerByte = Quantity<unit::AttojoulePerByte>;
using EnergyPerFlop = Quantity<unit::AttojoulePerFlop>;
using Ratio = Quantity<unit::PartPerBillion>;
using SampleRate = Quantity<unit::NanosamplePerSecond>;
using Frequency = Quantity<unit::Hertz>;
using Voltage = Quantity<unit::Microvolt>;

inline constexpr Ratio kWhole{1'000'000'000};

/// Time to move `bytes` at `rate`, rounded up to 1 ps; zero at an unlimited rate.
/// Throws QuantityOverflow beyond 106 days. Precondition: rate > 0.
[[nodiscard]] Time transfer_time(Bytes bytes, ByteRate rate);

/// Time of `flops` at `rate`, rounded up to 1 ps; zero at an unlimited rate. Precondition: rate >
/// 0.
[[nodiscard]] Time compute_time(Flops flops, FlopRate rate);

/// `efficiency` of a rate, rounded down, at least 1; an unlimited rate stays unlimited.
[[nodiscard]] ByteRate operator*(ByteRate rate, Ratio efficiency);
[[nodiscard]] FlopRate operator*(FlopRate rate, Ratio efficiency);

[[nodiscard]] Energy operator*(Power power, Time time);
/// `share` of a power, rounded down.
[[nodiscard]] Power operator*(Power power, Ratio share);
[[nodiscard]] Energy operator*(EnergyPerByte cost, Bytes bytes);
[[nodiscard]] Energy operator*(EnergyPerFlop cost, Flops flops);

/// In SI units, for output only: never computed with further.
[[nodiscard]] double in_seconds(Time time);
/// The nearest picosecond; below 106 days.
[[nodiscard]] Time time_of_seconds(double seconds);
[[nodiscard]] double in_joules(Energy energy);
[[nodiscard]] double in_watts(Power power);
[[nodiscard]] double as_fraction(Ratio ratio);

/// For people: about four significant digits and the unit that suits ("1.5 GiB", "12.3 ms").
[[nodiscard]] std::string to_text(Bytes);
[[nodiscard]] std::string to_text(Time);
[[nodiscard]] std::string to_text(Flops);
[[nodiscard]] std::string to_text(ByteRate);
[[nodiscard]] std::string to_text(FlopRate);
[[nodiscard]] std::string to_text(Power);
[[nodiscard]] std::string to_text(Energy);
[[nodiscard]] std::string to_text(EnergyPerByte);
[[nodiscard]] std::string to_text(EnergyPerFlop);
[[nodiscard]] std::string to_text(Ratio);
[[nodiscard]] std::string to_text(SampleRate);
[[nodiscard]] std::string to_text(Frequency);
[[nodiscard]] std::string to_text(Voltage);

}  // namespace plimsoll
