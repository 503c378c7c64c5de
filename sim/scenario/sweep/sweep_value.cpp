#include "scenario/sweep/sweep_value.hpp"

#include "base/expression_parser.hpp"
#include "base/quantity_text.hpp"

#include <array>
#include <numeric>
#include <vector>

namespace plimsoll {

namespace {

using Wide = Exact::Wide;

constexpr const char* kUnlimited = "unlimited";

Wide magnitude(Wide a) {
  return a < 0 ? -a : a;
}

Wide common_divisor(Wide a, Wide b) {
  for (a = magnitude(a), b = magnitude(b); b != 0;) {
    const Wide rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

[[noreturn]] void throw_out_of_range() {
  throw ExpressionError("a number is out of range");
}

Wide times(Wide a, Wide b) {
  Wide product = 0;
  if (__builtin_mul_overflow(a, b, &product)) throw_out_of_range();
  return product;
}

Wide plus(Wide a, Wide b) {
  Wide sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) throw_out_of_range();
  return sum;
}

std::string digits_of(Wide count) {
  std::string digits;
  for (Wide rest = magnitude(count); rest != 0 || digits.empty(); rest /= 10)
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(rest % 10)));
  return count < 0 ? '-' + digits : digits;
}

struct MeasureInfo {
  const char* text;
  const char* si;
  double counts_per_si;
  std::vector<const char*> units;  ///< for people, largest first; the last one is always exact
};

const MeasureInfo& info_of(Measure measure) {
  static const std::vector<MeasureInfo> kAll{
      {"a word", "", 1, {}},
      {"`unlimited`", "", 1, {}},
      {"a number", "", 1, {}},
      {"a size", "B", 1, {"TiB", "GiB", "MiB", "TB", "GB", "MB", "KiB", "kB", "B"}},
      {"a time", "s", 1e12, {"s", "ms", "us", "ns", "ps"}},
      {"a rate", "B/s", 1, {"TB/s", "GB/s", "GiB/s", "MB/s", "MiB/s", "kB/s", "KiB/s", "B/s"}},
      {"a rate of compute", "FLOP/s", 1, {"PFLOP/s", "TFLOP/s", "GFLOP/s", "MFLOP/s", "FLOP/s"}},
      {"a power", "W", 1e9, {"W", "mW", "uW", "nW"}},
      {"an energy", "J", 1e21, {"kJ", "J", "mJ", "uJ", "nJ", "pJ", "fJ"}},
      {"an energy per byte", "J/B", 1e18, {"nJ/B", "pJ/B", "fJ/B", "aJ/B"}},
      {"an energy per FLOP", "J/FLOP", 1e18, {"nJ/FLOP", "pJ/FLOP", "fJ/FLOP", "aJ/FLOP"}},
  };
  return kAll[static_cast<std::size_t>(measure)];
}

template <class T>
bool read_as(std::string_view text, Measure measure, SweepValue& value) {
  const Parsed<T> parsed = parse_quantity<T>(text);
  if (!parsed.value) return false;
  value = {measure, Exact(parsed.value->count()), {}};
  return true;
}

/// Digits, at most one point among them.
std::optional<Exact> read_decimal(std::string_view text) {
  constexpr std::size_t kMostValueDigits = 30;
  if (text.empty() || text.size() > kMostValueDigits) return std::nullopt;
  Wide count = 0, scale = 1;
  bool has_point = false, has_digit = false;
  for (const char c : text) {
    if (c == '.' && !has_point) {
      has_point = true;
    } else if (c >= '0' && c <= '9') {
      has_digit = true;
      count = 10 * count + (c - '0');
      if (has_point) scale *= 10;
    } else {
      return std::nullopt;
    }
  }
  if (!has_digit) return std::nullopt;
  return Exact(count, scale);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// A percentage is the number that it stands for.
std::optional<Exact> read_number(std::string_view text) {
  if (!text.ends_with('%')) return read_decimal(text);
  const auto hundredfold = read_decimal(trimmed(text.substr(0, text.size() - 1)));
  if (!hundredfold) return std::nullopt;
  return *hundredfold / Exact(100);
}

}  // namespace

Exact::Exact(Wide numerator, Wide denominator) {
  const Wide divisor = common_divisor(numerator, denominator);
  numerator_ = numerator / divisor;
  denominator_ = denominator / divisor;
  if (denominator_ < 0) {
    numerator_ = -numerator_;
    denominator_ = -denominator_;
  }
}

double Exact::approximately() const {
  return static_cast<double>(numerator_) / static_cast<double>(denominator_);
}

Exact Exact::rounded_down() const {
  const Wide whole = numerator_ / denominator_;
  return Exact(numerator_ < 0 && whole * denominator_ != numerator_ ? whole - 1 : whole);
}

std::optional<std::string> Exact::decimal() const {
  constexpr Wide kNinePlaces = 1'000'000'000;
  if (kNinePlaces % denominator_ != 0) return std::nullopt;
  const Wide whole = numerator_ / denominator_;
  std::string text = (numerator_ < 0 && whole == 0 ? "-" : "") + digits_of(whole);
  const Wide rest = magnitude(numerator_ % denominator_) * (kNinePlaces / denominator_);
  if (rest == 0) return text;
  std::string places = digits_of(kNinePlaces + rest).substr(1);
  places.erase(places.find_last_not_of('0') + 1);
  return text + '.' + places;
}

Exact operator+(Exact a, Exact b) {
  const Wide shared = common_divisor(a.denominator_, b.denominator_);
  return Exact(plus(times(a.numerator_, b.denominator_ / shared),
                    times(b.numerator_, a.denominator_ / shared)),
               times(a.denominator_, b.denominator_ / shared));
}

Exact operator-(Exact a, Exact b) {
  return a + Exact(-b.numerator_, b.denominator_);
}

Exact operator*(Exact a, Exact b) {
  // Reduced crosswise first, so that only results that are too large are out of range.
  const Exact left(a.numerator_, b.denominator_), right(b.numerator_, a.denominator_);
  return Exact(times(left.numerator_, right.numerator_),
               times(left.denominator_, right.denominator_));
}

Exact operator/(Exact a, Exact b) {
  if (b.numerator_ == 0) throw ExpressionError("a division by 0");
  return a * Exact(b.denominator_, b.numerator_);
}

std::strong_ordering operator<=>(Exact a, Exact b) {
  const Wide difference = (a - b).numerator_;
  return difference <=> Wide{0};
}

const char* to_text(Measure measure) {
  return info_of(measure).text;
}

const char* si_unit(Measure measure) {
  return info_of(measure).si;
}

double SweepValue::in_si() const {
  return count.approximately() / info_of(measure).counts_per_si;
}

SweepValue parse_sweep_value(std::string_view text) {
  text = trimmed(text);
  SweepValue value;
  if (text == kUnlimited) return {Measure::unlimited, {}, {}};
  if (const auto number = read_number(text)) return {Measure::number, *number, {}};
  const bool is_one = read_as<Bytes>(text, Measure::size, value) ||
                      read_as<Time>(text, Measure::time, value) ||
                      read_as<ByteRate>(text, Measure::byte_rate, value) ||
                      read_as<FlopRate>(text, Measure::flop_rate, value) ||
                      read_as<Power>(text, Measure::power, value) ||
                      read_as<Energy>(text, Measure::energy, value) ||
                      read_as<EnergyPerByte>(text, Measure::energy_per_byte, value) ||
                      read_as<EnergyPerFlop>(text, Measure::energy_per_flop, value);
  if (!is_one) value.word = text;
  return value;
}

std::string to_text(const SweepValue& value) {
  if (value.measure == Measure::word) return value.word;
  if (value.measure == Measure::unlimited) return kUnlimited;
  if (value.measure == Measure::number) {
    if (const auto text = value.count.decimal()) return *text;
    throw ExpressionError("a number of more than nine decimals");
  }
  const Exact count = value.count.rounded_down();
  const auto& units = info_of(value.measure).units;
  for (const char* name : units) {
    const Exact share = count / parse_sweep_value(std::string("1 ") + name).count;
    const bool is_last = name == units.back();
    const bool is_short =
        (share * Exact(1000)).is_whole() && share >= Exact(1) && share < Exact(1'000'000);
    if (is_last || is_short) return share.decimal().value_or("0") + ' ' + name;
  }
  return {};
}

WrittenUnit unit_of(std::string_view text) {
  text = trimmed(text);
  const std::size_t end = text.find_first_not_of("0123456789.");
  if (end == std::string_view::npos) return {};
  WrittenUnit unit{std::string(trimmed(text.substr(end))), Exact(1)};
  unit.size = parse_sweep_value("1 " + unit.name).count;
  return unit;
}

}  // namespace plimsoll
