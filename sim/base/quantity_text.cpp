#include "base/quantity_text.hpp"

#include "base/diagnostic.hpp"

#include <algorithm>
#include <span>
#include <vector>

namespace plimsoll {

namespace {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

struct WrittenUnit {
  std::string_view name;
  Uint128 factor;
};

constexpr Uint128 power_of_ten(int exponent) {
  Uint128 power = 1;
  for (int i = 0; i < exponent; ++i) power *= 10;
  return power;
}

constexpr WrittenUnit kWrittenSizes[] = {
    {"B", 1},
    {"kB", power_of_ten(3)},
    {"MB", power_of_ten(6)},
    {"GB", power_of_ten(9)},
    {"TB", power_of_ten(12)},
    {"PB", power_of_ten(15)},
    {"KiB", Uint128{1} << 10},
    {"MiB", Uint128{1} << 20},
    {"GiB", Uint128{1} << 30},
    {"TiB", Uint128{1} << 40},
    {"PiB", Uint128{1} << 50},
};
constexpr WrittenUnit kWrittenTimes[] = {
    {"ps", 1},
    {"ns", power_of_ten(3)},
    {"us", power_of_ten(6)},
    {"\u00b5s", power_of_ten(6)},  // micro sign
    {"\u03bcs", power_of_ten(6)},  // Greek mu
    {"ms", power_of_ten(9)},
    {"s", power_of_ten(12)},
    {"min", 60 * power_of_ten(12)},
    {"h", 3'600 * power_of_ten(12)},
    {"d", 86'400 * power_of_ten(12)},
};
constexpr WrittenUnit kWrittenFlopCounts[] = {
    {"FLOP", 1},
    {"kFLOP", power_of_ten(3)},
    {"MFLOP", power_of_ten(6)},
    {"GFLOP", power_of_ten(9)},
    {"TFLOP", power_of_ten(12)},
    {"PFLOP", power_of_ten(15)},
    {"EFLOP", power_of_ten(18)},
};
constexpr WrittenUnit kWrittenByteRates[] = {
    {"B/s", 1},
    {"kB/s", power_of_ten(3)},
    {"MB/s", power_of_ten(6)},
    {"GB/s", power_of_ten(9)},
    {"TB/s", power_of_ten(12)},
    {"PB/s", power_of_ten(15)},
    {"KiB/s", Uint128{1} << 10},
    {"MiB/s", Uint128{1} << 20},
    {"GiB/s", Uint128{1} << 30},
    {"TiB/s", Uint128{1} << 40},
};
constexpr WrittenUnit kWrittenFlopRates[] = {
    {"FLOP/s", 1},
    {"kFLOP/s", power_of_ten(3)},
    {"MFLOP/s", power_of_ten(6)},
    {"GFLOP/s", power_of_ten(9)},
    {"TFLOP/s", power_of_ten(12)},
    {"PFLOP/s", power_of_ten(15)},
    {"EFLOP/s", power_of_ten(18)},
};
constexpr WrittenUnit kWrittenPowers[] = {
    {"nW", 1},
    {"uW", power_of_ten(3)},
    {"\u00b5W", power_of_ten(3)},
    {"\u03bcW", power_of_ten(3)},
    {"mW", power_of_ten(6)},
    {"W", power_of_ten(9)},
    {"kW", power_of_ten(12)},
    {"MW", power_of_ten(15)},
};
constexpr WrittenUnit kWrittenEnergies[] = {
    {"fJ", power_of_ten(6)},           {"pJ", power_of_ten(9)},
    {"nJ", power_of_ten(12)},          {"uJ", power_of_ten(15)},
    {"\u00b5J", power_of_ten(15)},     {"\u03bcJ", power_of_ten(15)},
    {"mJ", power_of_ten(18)},          {"J", power_of_ten(21)},
    {"kJ", power_of_ten(24)},          {"MJ", power_of_ten(27)},
    {"mWh", 3'600 * power_of_ten(18)}, {"Wh", 3'600 * power_of_ten(21)},
    {"kWh", 3'600 * power_of_ten(24)},
};
constexpr WrittenUnit kWrittenEnergiesPerByte[] = {
    {"aJ/B", 1},
    {"fJ/B", power_of_ten(3)},
    {"pJ/B", power_of_ten(6)},
    {"nJ/B", power_of_ten(9)},
    {"uJ/B", power_of_ten(12)},
    {"mJ/B", power_of_ten(15)},
    {"J/B", power_of_ten(18)},
};
constexpr WrittenUnit kWrittenEnergiesPerFlop[] = {
    {"aJ/FLOP", 1},
    {"fJ/FLOP", power_of_ten(3)},
    {"pJ/FLOP", power_of_ten(6)},
    {"nJ/FLOP", power_of_ten(9)},
    {"uJ/FLOP", power_of_ten(12)},
    {"mJ/FLOP", power_of_ten(15)},
    {"J/FLOP", power_of_ten(18)},
};
constexpr WrittenUnit kWrittenRatios[] = {{"%", power_of_ten(7)}};
constexpr WrittenUnit kWrittenSampleRates[] = {{"samples/s", power_of_ten(9)}};
constexpr WrittenUnit kWrittenFrequencies[] = {
    {"Hz", 1},
    {"kHz", power_of_ten(3)},
    {"MHz", power_of_ten(6)},
    {"GHz", power_of_ten(9)},
};
constexpr WrittenUnit kWrittenVoltages[] = {
    {"uV", 1},
    {"mV", power_of_ten(3)},
    {"V", power_of_ten(6)},
};

enum class Fractions { up, up_unless_base_unit, nearest_unless_base_unit };

/// How a quantity is written. `bare` is the factor of a number without a unit, 0 where it needs
/// one.
struct Notation {
  std::string_view what;  ///< with its article
  std::string_view example;
  std::span<const WrittenUnit> units;
  Fractions fractions = Fractions::nearest_unless_base_unit;
  Uint128 bare = 0;
};

template <class T>
constexpr Notation kNotation;
template <>
constexpr Notation kNotation<Bytes> = {"a size", "16 GiB", kWrittenSizes,
                                       Fractions::up_unless_base_unit};
template <>
constexpr Notation kNotation<Time> = {"a time", "5 us", kWrittenTimes, Fractions::up};
template <>
constexpr Notation kNotation<Flops> = {"a number of FLOP", "2 GFLOP", kWrittenFlopCounts};
template <>
constexpr Notation kNotation<ByteRate> = {"a bandwidth", "12.3 GB/s", kWrittenByteRates};
template <>
constexpr Notation kNotation<FlopRate> = {"a compute rate", "312 TFLOP/s", kWrittenFlopRates};
template <>
constexpr Notation kNotation<Power> = {"a power", "250 W", kWrittenPowers};
template <>
constexpr Notation kNotation<Energy> = {"an energy", "9 kJ", kWrittenEnergies};
template <>
constexpr Notation kNotation<EnergyPerByte> = {"an energy per byte", "3.3 pJ/B",
                                               kWrittenEnergiesPerByte};
template <>
constexpr Notation kNotation<EnergyPerFlop> = {"an energy per FLOP", "0.8 pJ/FLOP",
                                               kWrittenEnergiesPerFlop};
template <>
constexpr Notation kNotation<Ratio> = {"a share", "82 %", kWrittenRatios,
                                       Fractions::nearest_unless_base_unit, power_of_ten(9)};
template <>
constexpr Notation kNotation<SampleRate> = {"a throughput", "250 samples/s", kWrittenSampleRates,
                                            Fractions::nearest_unless_base_unit, power_of_ten(9)};
template <>
constexpr Notation kNotation<Frequency> = {"a clock", "160 MHz", kWrittenFrequencies};
template <>
constexpr Notation kNotation<Voltage> = {"a voltage", "0.8 V", kWrittenVoltages};

constexpr const Notation* kAll[] = {
    &kNotation<Bytes>,      &kNotation<Time>,          &kNotation<Flops>,
    &kNotation<ByteRate>,   &kNotation<FlopRate>,      &kNotation<Power>,
    &kNotation<Energy>,     &kNotation<EnergyPerByte>, &kNotation<EnergyPerFlop>,
    &kNotation<SampleRate>, &kNotation<Frequency>,     &kNotation<Voltage>};

std::string such_as(const Notation& notation) {
  return std::string(notation.what) + " such as `" + std::string(notation.example) + '`';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// 0.DIGITS x 10^point, exactly.
struct Decimal {
  std::string digits;
  long point = 0;
};

std::string_view take_digits(std::string_view& text) {
  std::size_t length = 0;
  while (length < text.size() && is_digit(text[length])) ++length;
  const std::string_view taken = text.substr(0, length);
  text.remove_prefix(length);
  return taken;
}

/// Takes "e+12" from the front of `text`, if it is there. Huge exponents are cut: the range is
/// left long before.
long take_exponent(std::string_view& text) {
  constexpr long kHuge = 100'000;
  if (text.empty() || (text[0] != 'e' && text[0] != 'E')) return 0;
  std::string_view rest = text.substr(1);
  const bool negative = !rest.empty() && rest[0] == '-';
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) rest.remove_prefix(1);
  const std::string_view digits = take_digits(rest);
  if (digits.empty()) return 0;
  text = rest;
  long exponent = 0;
  for (const char c : digits) exponent = std::min(kHuge, exponent * 10 + (c - '0'));
  return negative ? -exponent : exponent;
}

/// Takes a decimal number from the front of `text`; nothing where there is none.
std::optional<Decimal> take_number(std::string_view& text) {
  const std::string_view whole = take_digits(text);
  std::string_view fraction;
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    fraction = take_digits(text);
  }
  if (whole.empty() && fraction.empty()) return std::nullopt;
  Decimal number{std::string(whole) + std::string(fraction), static_cast<long>(whole.size())};
  number.point += take_exponent(text);
  return number;
}

/// Schoolbook multiplication; `factor` stays far below 2^124, so that no carry overflows.
void multiply(Decimal& number, Uint128 factor) {
  Uint128 carry = 0;
  for (std::size_t i = number.digits.size(); i-- > 0;) {
    carry += factor * static_cast<Uint128>(number.digits[i] - '0');
    number.digits[i] = static_cast<char>('0' + static_cast<int>(carry % 10));
    carry /= 10;
  }
  std::string front;
  for (; carry > 0; carry /= 10) front += static_cast<char>('0' + static_cast<int>(carry % 10));
  number.digits.insert(0, std::string(front.rbegin(), front.rend()));
  number.point += static_cast<long>(front.size());
}

struct Count {
  Uint128 whole = 0;
  int fraction_digit = 0;  ///< the first one
  bool has_fraction = false;
  bool overflow = false;
};

Count split(const Decimal& number) {
  constexpr Uint128 kMost = ~Uint128{0} / 20;
  Count count;
  const long size = static_cast<long>(number.digits.size());
  const long first =
      static_cast<long>(std::min(number.digits.find_first_not_of('0'), number.digits.size()));
  if (first == size) return count;
  for (long i = first; i < std::max(size, number.point); ++i) {
    const int digit = i < size ? number.digits[static_cast<std::size_t>(i)] - '0' : 0;
    if (i < number.point) {
      if (count.whole > kMost) {
        count.overflow = true;
        return count;
      }
      count.whole = count.whole * 10 + static_cast<Uint128>(digit);
    } else {
      if (i == number.point) count.fraction_digit = digit;
      count.has_fraction = count.has_fraction || digit != 0;
    }
  }
  return count;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

const WrittenUnit* find_unit(const Notation& notation, std::string_view name) {
  const auto unit = std::find_if(notation.units.begin(), notation.units.end(),
                                 [&](const WrittenUnit& u) { return u.name == name; });
  return unit == notation.units.end() ? nullptr : &*unit;
}

/// Mb, Gbit, Gb/s, Mbps, ...: a prefix or none, then bits.
bool counts_bits(std::string_view unit) {
  if (!unit.empty() && std::string_view("kKMGTP").find(unit[0]) != std::string_view::npos) {
    unit.remove_prefix(1);
    if (!unit.empty() && unit[0] == 'i') unit.remove_prefix(1);
  }
  constexpr std::string_view kNames[] = {"b",   "bit",   "bits",   "b/s",
                                         "bps", "bit/s", "bits/s", "bitps"};
  return std::find(std::begin(kNames), std::end(kNames), unit) != std::end(kNames);
}

std::string list_of_units(const Notation& notation) {
  std::string list;
  for (const WrittenUnit& unit : notation.units) {
    if (static_cast<unsigned char>(unit.name[0]) >= 0x80) continue;  // µs is also there as us
    if (!list.empty()) list += ", ";
    list += unit.name;
  }
  return list;
}

struct Problem {
  std::string text;
  std::string hint;
};

/// "did you mean `8 GB` or `8 GiB`?" for a prefix without the unit behind it, in any case where no
/// unit begins with it as written. Empty for all else.
std::string hint_for_prefix(const Notation& notation, std::string_view number,
                            std::string_view prefix) {
  constexpr std::string_view kPrefixes = "kKMGTPEgtpe";
  const bool is_binary = prefix.size() == 2 && prefix[1] == 'i';
  if (prefix.empty() || (prefix.size() > 1 && !is_binary) ||
      kPrefixes.find(prefix[0]) == std::string_view::npos)
    return {};
  const auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; };
  std::string hint;
  for (const WrittenUnit& unit : notation.units) {
    if (unit.name.size() < 2 || upper(unit.name[0]) != upper(prefix[0])) continue;
    if (is_binary && unit.name[1] != 'i') continue;
    hint +=
        (hint.empty() ? "`" : " or `") + std::string(number) + ' ' + std::string(unit.name) + '`';
  }
  return hint.empty() ? hint : "did you mean " + hint + '?';
}

/// `number` is what stands before the unit.
Problem unknown_unit(const Notation& notation, std::string_view number, std::string_view unit,
                     const std::string& found) {
  for (const Notation* other : kAll)
    if (other != &notation && find_unit(*other, unit) != nullptr)
      return {found + " is " + std::string(other->what) + ", expected " + such_as(notation), {}};
  std::vector<std::string> names;
  for (const WrittenUnit& known : notation.units) names.emplace_back(known.name);
  if (counts_bits(unit))
    return {found + " counts bits; expected " + such_as(notation) +
                " (a byte is 8 bits: 100 Gbit/s is 12.5 GB/s)",
            {}};
  std::string hint = hint_for_prefix(notation, number, unit);
  if (hint.empty()) hint = did_you_mean(unit, names);
  return {"unknown unit in " + found + ", expected one of " + list_of_units(notation),
          std::move(hint)};
}

struct ParsedCount {
  std::optional<Uint128> value;
  Problem problem;
};

ParsedCount out_of_range(const Notation& notation, const std::string& found,
                         const std::string& most_text) {
  return {
      std::nullopt,
      {found + " is out of range: " + std::string(notation.what) + " is at most " + most_text, {}}};
}

/// The count after rounding, or the reason why it has a fraction that it must not have.
ParsedCount rounded(const Notation& notation, const Count& count, bool is_base_unit,
                    const std::string& found) {
  if (!count.has_fraction) return {count.whole, {}};
  if (notation.fractions != Fractions::up && is_base_unit)
    return {std::nullopt,
            {found + " is not a whole number of " + std::string(notation.units[0].name), {}}};
  const bool up =
      notation.fractions != Fractions::nearest_unless_base_unit || count.fraction_digit >= 5;
  return {count.whole + (up ? 1u : 0u), {}};
}

/// The factor of the unit, 0 after setting `problem`.
Uint128 factor_of(const Notation& notation, std::string_view number, std::string_view unit,
                  const std::string& found, Problem& problem) {
  if (unit.empty()) {
    if (notation.bare == 0) problem.text = found + " has no unit, expected " + such_as(notation);
    return notation.bare;
  }
  if (const WrittenUnit* known = find_unit(notation, unit)) return known->factor;
  problem = unknown_unit(notation, number, unit, found);
  return 0;
}

ParsedCount parse_count(const Notation& notation, std::string_view text, Uint128 most,
                        const std::string& most_text) {
  constexpr std::size_t kLongest = 200;
  if (text.size() > kLongest)
    return {
        std::nullopt,
        {"found a text of " + std::to_string(text.size()) + " bytes, expected " + such_as(notation),
         {}}};
  const std::string found = '`' + std::string(text) + '`';
  std::string_view rest = trimmed(text);
  if (rest.empty()) return {std::nullopt, {"found nothing, expected " + such_as(notation), {}}};
  if (rest[0] == '-')
    return {std::nullopt, {found + " is negative, expected " + such_as(notation), {}}};
  const std::string_view whole = rest;
  std::optional<Decimal> number = take_number(rest);
  if (!number) return {std::nullopt, {found + " is not " + such_as(notation), {}}};
  if (!rest.empty() && (rest[0] == ',' || rest[0] == '\'' || rest[0] == '_'))
    return {std::nullopt,
            {"the number in " + found + " may hold only digits and a decimal point", {}}};
  if (rest.starts_with("\xC2\xA0") || rest.starts_with("\xE2\x80\xAF"))
    return {std::nullopt,
            {found + " has a non-breaking space before its unit, expected an ordinary one", {}}};
  Problem problem;
  const std::string_view written = trimmed(whole.substr(0, whole.size() - rest.size()));
  const Uint128 factor = factor_of(notation, written, trimmed(rest), found, problem);
  if (factor == 0) return {std::nullopt, std::move(problem)};
  multiply(*number, factor);
  const Count count = split(*number);
  if (count.overflow) return out_of_range(notation, found, most_text);
  ParsedCount result = rounded(notation, count, factor == 1, found);
  if (result.value && *result.value > most) return out_of_range(notation, found, most_text);
  return result;
}

}  // namespace

template <class T>
Parsed<T> parse_quantity(std::string_view text, bool allow_unlimited) {
  const Notation& notation = kNotation<T>;
  if (trimmed(text) == "unlimited") {
    if (allow_unlimited) return {T::unlimited(), {}, {}};
    return {std::nullopt, "`unlimited` has no meaning here, expected " + such_as(notation), {}};
  }
  const auto most = static_cast<Uint128>(T::unlimited().count()) - 1;
  const T greatest(static_cast<typename T::Count>(most));
  ParsedCount parsed = parse_count(notation, text, most, to_text(greatest));
  if (!parsed.value)
    return {std::nullopt, std::move(parsed.problem.text), std::move(parsed.problem.hint)};
  return {T(static_cast<typename T::Count>(*parsed.value)), {}, {}};
}

template <class T>
std::string quantity_example() {
  return std::string(kNotation<T>.example);
}

template <class T>
std::string quantity_pattern(bool allow_unlimited) {
  const Notation& notation = kNotation<T>;
  std::string pattern = allow_unlimited ? "^(unlimited|" : "^(";
  pattern += R"(([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)? *()";
  for (const WrittenUnit& unit : notation.units) {
    if (&unit != notation.units.data()) pattern += '|';
    pattern += unit.name;
  }
  pattern += notation.bare > 0 ? ")?)$" : "))$";
  return pattern;
}

#define PLIMSOLL_INSTANTIATE(T)                                 \
  template Parsed<T> parse_quantity<T>(std::string_view, bool); \
  template std::string quantity_example<T>();                   \
  template std::string quantity_pattern<T>(bool);
PLIMSOLL_INSTANTIATE(Bytes)
PLIMSOLL_INSTANTIATE(Time)
PLIMSOLL_INSTANTIATE(Flops)
PLIMSOLL_INSTANTIATE(ByteRate)
PLIMSOLL_INSTANTIATE(FlopRate)
PLIMSOLL_INSTANTIATE(Power)
PLIMSOLL_INSTANTIATE(Energy)
PLIMSOLL_INSTANTIATE(EnergyPerByte)
PLIMSOLL_INSTANTIATE(EnergyPerFlop)
PLIMSOLL_INSTANTIATE(Ratio)
PLIMSOLL_INSTANTIATE(SampleRate)
PLIMSOLL_INSTANTIATE(Frequency)
PLIMSOLL_INSTANTIATE(Voltage)
#undef PLIMSOLL_INSTANTIATE

}  // namespace plimsoll
