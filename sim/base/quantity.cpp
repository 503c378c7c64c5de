#include "base/quantity.hpp"

#include <array>
#include <cassert>
#include <cmath>
#include <span>
#include <string_view>

namespace plimsoll {

namespace detail {
void throw_quantity_overflow() {
  throw QuantityOverflow();
}
}  // namespace detail

namespace {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

constexpr std::int64_t kPicosecondsPerSecond = 1'000'000'000'000;
constexpr std::int64_t kZeptojoulesPerAttojoule = 1'000;

/// Time of `amount` at `rate` per second, rounded up.
Time time_at_rate(std::int64_t amount, std::int64_t rate) {
  assert(amount >= 0 && rate > 0);
  // At most 2^63 x 10^12 < 2^127.
  const Int128 scaled = Int128{amount} * kPicosecondsPerSecond;
  const Int128 picoseconds = (scaled + rate - 1) / rate;
  if (picoseconds >= Time::unlimited().count()) detail::throw_quantity_overflow();
  return Time(static_cast<std::int64_t>(picoseconds));
}

template <class Amount, class Rate>
Time checked_time(Amount amount, Rate rate) {
  if (rate.is_unlimited()) return Time{};
  if (amount.is_unlimited()) detail::throw_quantity_overflow();
  return time_at_rate(amount.count(), rate.count());
}

template <class Rate>
Rate share_of(Rate rate, Ratio efficiency) {
  if (rate.is_unlimited()) return rate;
  const Int128 share = Int128{rate.count()} * efficiency.count() / kWhole.count();
  if (share >= Rate::unlimited().count()) detail::throw_quantity_overflow();
  return Rate(share < 1 ? 1 : static_cast<std::int64_t>(share));
}

/// The product of two 64-bit counts, which fits 128 bits, times `scale`.
template <class A, class B>
Energy energy_of(A a, B b, std::int64_t scale) {
  if (a.is_unlimited() || b.is_unlimited()) detail::throw_quantity_overflow();
  return Energy(Int128{a.count()} * b.count()) * scale;
}

/// A unit for people; `from` is the count from which it is preferred to the one before it.
struct DisplayUnit {
  std::string_view name;
  Int128 factor;
  Int128 from;
  constexpr DisplayUnit(std::string_view unit, Int128 count) : DisplayUnit(unit, count, count) {}
  constexpr DisplayUnit(std::string_view unit, Int128 count, Int128 least)
      : name(unit), factor(count), from(least) {}
};

constexpr Int128 ten_to(int exponent) {
  Int128 power = 1;
  for (int i = 0; i < exponent; ++i) power *= 10;
  return power;
}

/// A number in units of 10^-decimals.
struct Rounded {
  Uint128 digits;
  int decimals;
};

/// `count / factor` to four significant digits, halves upwards.
Rounded round_to_four_digits(Uint128 count, Uint128 factor) {
  constexpr int kMostDecimals = 9;
  int decimals = 0;
  Uint128 power = 1;
  while (decimals < kMostDecimals && count * power / factor < 1000) {
    power *= 10;
    ++decimals;
  }
  const Uint128 scaled = count * power;
  return {scaled / factor + (scaled % factor >= factor - factor / 2 ? 1u : 0u), decimals};
}

std::string decimal_text(Rounded value) {
  std::string text;
  int position = 0;
  for (Uint128 rest = value.digits; rest > 0 || position <= value.decimals;
       ++position, rest /= 10) {
    if (position == value.decimals && !text.empty()) text += '.';
    const char digit = static_cast<char>('0' + static_cast<int>(rest % 10));
    const bool trailing_zero = position < value.decimals && text.empty() && digit == '0';
    if (!trailing_zero) text += digit;
  }
  return {text.rbegin(), text.rend()};
}

/// Text of a count in the largest of `units` (ascending) that it, once rounded, reaches.
template <class Unit>
std::string text_in_units(Quantity<Unit> quantity, std::span<const DisplayUnit> units) {
  if (quantity.is_unlimited()) return "unlimited";
  const Int128 count = quantity.count();
  const Uint128 magnitude = count < 0 ? -static_cast<Uint128>(count) : static_cast<Uint128>(count);
  std::size_t i = 0;
  Rounded value = round_to_four_digits(magnitude, static_cast<Uint128>(units[0].factor));
  for (std::size_t next = 1; next < units.size(); ++next) {
    // Compared after rounding, so that 999.96 kB reads 1 MB, not 1000 kB.
    const Uint128 unit = static_cast<Uint128>(units[i].factor);
    const Uint128 least = static_cast<Uint128>(units[next].from) / unit;
    Uint128 scaled_least = least;
    for (int d = 0; d < value.decimals; ++d) scaled_least *= 10;
    if (value.digits < scaled_least) break;
    i = next;
    value = round_to_four_digits(magnitude, static_cast<Uint128>(units[i].factor));
  }
  std::string text = count < 0 ? "-" : "";
  text += decimal_text(value);
  text += ' ';
  return text += units[i].name;
}

constexpr std::array kSizes = {
    DisplayUnit{"B", 1},
    DisplayUnit{"KiB", Int128{1} << 10},
    DisplayUnit{"MiB", Int128{1} << 20},
    DisplayUnit{"GiB", Int128{1} << 30},
    DisplayUnit{"TiB", Int128{1} << 40},
    DisplayUnit{"PiB", Int128{1} << 50},
};
constexpr std::array kTimes = {
    DisplayUnit{"ps", 1},
    DisplayUnit{"ns", ten_to(3)},
    DisplayUnit{"us", ten_to(6)},
    DisplayUnit{"ms", ten_to(9)},
    DisplayUnit{"s", ten_to(12)},
    DisplayUnit{"min", 60 * ten_to(12), 600 * ten_to(12)},
    DisplayUnit{"h", 3'600 * ten_to(12), 7'200 * ten_to(12)},
    DisplayUnit{"d", 86'400 * ten_to(12), 172'800 * ten_to(12)},
};
constexpr std::array kFlopCounts = {
    DisplayUnit{"FLOP", 1},           DisplayUnit{"kFLOP", ten_to(3)},
    DisplayUnit{"MFLOP", ten_to(6)},  DisplayUnit{"GFLOP", ten_to(9)},
    DisplayUnit{"TFLOP", ten_to(12)}, DisplayUnit{"PFLOP", ten_to(15)},
    DisplayUnit{"EFLOP", ten_to(18)},
};
constexpr std::array kByteRates = {
    DisplayUnit{"B/s", 1},           DisplayUnit{"kB/s", ten_to(3)},
    DisplayUnit{"MB/s", ten_to(6)},  DisplayUnit{"GB/s", ten_to(9)},
    DisplayUnit{"TB/s", ten_to(12)}, DisplayUnit{"PB/s", ten_to(15)},
};
constexpr std::array kFlopRates = {
    DisplayUnit{"FLOP/s", 1},           DisplayUnit{"kFLOP/s", ten_to(3)},
    DisplayUnit{"MFLOP/s", ten_to(6)},  DisplayUnit{"GFLOP/s", ten_to(9)},
    DisplayUnit{"TFLOP/s", ten_to(12)}, DisplayUnit{"PFLOP/s", ten_to(15)},
    DisplayUnit{"EFLOP/s", ten_to(18)},
};
constexpr std::array kPowers = {
    DisplayUnit{"nW", 1},        DisplayUnit{"uW", ten_to(3)},  DisplayUnit{"mW", ten_to(6)},
    DisplayUnit{"W", ten_to(9)}, DisplayUnit{"kW", ten_to(12)}, DisplayUnit{"MW", ten_to(15)},
};
constexpr std::array kEnergies = {
    DisplayUnit{"zJ", 1},          DisplayUnit{"aJ", ten_to(3)},  DisplayUnit{"fJ", ten_to(6)},
    DisplayUnit{"pJ", ten_to(9)},  DisplayUnit{"nJ", ten_to(12)}, DisplayUnit{"uJ", ten_to(15)},
    DisplayUnit{"mJ", ten_to(18)}, DisplayUnit{"J", ten_to(21)},  DisplayUnit{"kJ", ten_to(24)},
    DisplayUnit{"MJ", ten_to(27)}, DisplayUnit{"GJ", ten_to(30)},
};
constexpr std::array kEnergiesPerByte = {
    DisplayUnit{"aJ/B", 1},          DisplayUnit{"fJ/B", ten_to(3)},
    DisplayUnit{"pJ/B", ten_to(6)},  DisplayUnit{"nJ/B", ten_to(9)},
    DisplayUnit{"uJ/B", ten_to(12)}, DisplayUnit{"mJ/B", ten_to(15)},
    DisplayUnit{"J/B", ten_to(18)},
};
constexpr std::array kEnergiesPerFlop = {
    DisplayUnit{"aJ/FLOP", 1},          DisplayUnit{"fJ/FLOP", ten_to(3)},
    DisplayUnit{"pJ/FLOP", ten_to(6)},  DisplayUnit{"nJ/FLOP", ten_to(9)},
    DisplayUnit{"uJ/FLOP", ten_to(12)}, DisplayUnit{"mJ/FLOP", ten_to(15)},
    DisplayUnit{"J/FLOP", ten_to(18)},
};
constexpr std::array kRatios = {DisplayUnit{"%", ten_to(7)}};
constexpr std::array kSampleRates = {DisplayUnit{"samples/s", ten_to(9)}};
constexpr std::array kFrequencies = {DisplayUnit{"Hz", 1}, DisplayUnit{"kHz", ten_to(3)},
                                     DisplayUnit{"MHz", ten_to(6)}, DisplayUnit{"GHz", ten_to(9)}};
constexpr std::array kVoltages = {DisplayUnit{"uV", 1}, DisplayUnit{"mV", ten_to(3)},
                                  DisplayUnit{"V", ten_to(6)}};

}  // namespace

Time transfer_time(Bytes bytes, ByteRate rate) {
  return checked_time(bytes, rate);
}
Time compute_time(Flops flops, FlopRate rate) {
  return checked_time(flops, rate);
}

ByteRate operator*(ByteRate rate, Ratio efficiency) {
  return share_of(rate, efficiency);
}
FlopRate operator*(FlopRate rate, Ratio efficiency) {
  return share_of(rate, efficiency);
}

Energy operator*(Power power, Time time) {
  return energy_of(power, time, 1);
}
Power operator*(Power power, Ratio share) {
  if (power.is_unlimited()) detail::throw_quantity_overflow();
  const Int128 part = Int128{power.count()} * share.count() / kWhole.count();
  if (part >= Power::unlimited().count()) detail::throw_quantity_overflow();
  return Power{static_cast<std::int64_t>(part)};
}
Energy operator*(EnergyPerByte cost, Bytes bytes) {
  return energy_of(cost, bytes, kZeptojoulesPerAttojoule);
}
Energy operator*(EnergyPerFlop cost, Flops flops) {
  return energy_of(cost, flops, kZeptojoulesPerAttojoule);
}

double in_seconds(Time time) {
  return static_cast<double>(time.count()) / 1e12;
}
Time time_of_seconds(double seconds) {
  return Time(std::llround(seconds * 1e12));
}
double in_joules(Energy energy) {
  // Whole joules apart, so that they come out whole.
  constexpr Energy::Count kJoule = Energy::Count{1'000'000'000'000} * 1'000'000'000;
  return static_cast<double>(energy.count() / kJoule) +
         static_cast<double>(energy.count() % kJoule) / 1e21;
}
double in_watts(Power power) {
  return static_cast<double>(power.count()) / 1e9;
}
double as_fraction(Ratio ratio) {
  return static_cast<double>(ratio.count()) / 1e9;
}

std::string to_text(Bytes value) {
  return text_in_units(value, kSizes);
}
std::string to_text(Time value) {
  return text_in_units(value, kTimes);
}
std::string to_text(Flops value) {
  return text_in_units(value, kFlopCounts);
}
std::string to_text(ByteRate value) {
  return text_in_units(value, kByteRates);
}
std::string to_text(FlopRate value) {
  return text_in_units(value, kFlopRates);
}
std::string to_text(Power value) {
  return text_in_units(value, kPowers);
}
std::string to_text(Energy value) {
  return text_in_units(value, kEnergies);
}
std::string to_text(EnergyPerByte value) {
  return text_in_units(value, kEnergiesPerByte);
}
std::string to_text(EnergyPerFlop value) {
  return text_in_units(value, kEnergiesPerFlop);
}
std::string to_text(Ratio value) {
  return text_in_units(value, kRatios);
}
std::string to_text(SampleRate value) {
  return text_in_units(value, kSampleRates);
}
std::string to_text(Frequency value) {
  return text_in_units(value, kFrequencies);
}
std::string to_text(Voltage value) {
  return text_in_units(value, kVoltages);
}

}  // namespace plimsoll
