#include "scenario/sweep/sweep_range.hpp"

#include "base/expression_parser.hpp"
#include "scenario/sweep/sweep_value.hpp"

#include <algorithm>

#include <boost/multiprecision/cpp_dec_float.hpp>
#include <fmt/format.h>

namespace plimsoll {

namespace {

using Decimal = boost::multiprecision::cpp_dec_float_50;

Decimal decimal_of(Exact value) {
  return Decimal(value.numerator()) / Decimal(value.denominator());
}

/// To six significant digits, but never finer than nine decimals.
Exact rounded(const Decimal& value) {
  constexpr int kDigits = 6, kMostRangeDecimals = 9;
  const int exponent = static_cast<int>(floor(log10(value)));
  const int decimals = std::min(kDigits - 1 - exponent, kMostRangeDecimals);
  const auto shifted = static_cast<Exact::Wide>(round(value * pow(Decimal(10), decimals)));
  Exact scale(1);
  for (int i = 0; i < std::abs(decimals); ++i) scale = scale * Exact(10);
  return decimals >= 0 ? Exact(shifted) / scale : Exact(shifted) * scale;
}

class Expansion {
 public:
  Expansion(const SweepRange& range, Diagnostics& diagnostics)
      : range_(range),
        diagnostics_(diagnostics),
        from_(parse_sweep_value(range.from.value)),
        to_(parse_sweep_value(range.to.value)),
        unit_(unit_of(range.from.value)) {}

  std::vector<std::string> run() {
    if (!ends_are_good()) return {};
    if (range_.step)
      add_steps();
    else if (range_.count)
      add_count();
    return std::move(values_);
  }

 private:
  void error(const Location& where, const std::string& message) {
    diagnostics_.error(where, message);
  }

  bool is_same_measure(const SweepValue& value, const Location& where) {
    if (value.measure == from_.measure) return true;
    error(where, fmt::format("found {}; expected {}, as in `from`", to_text(value.measure),
                             to_text(from_.measure)));
    return false;
  }

  bool ends_are_good() {
    if (from_.measure != Measure::number && !from_.is_quantity()) {
      error(range_.from.where,
            fmt::format("found `{}`; expected a number or a quantity", range_.from.value));
      return false;
    }
    if (!is_same_measure(to_, range_.to.where)) return false;
    if (to_.count >= from_.count) return true;
    error(range_.to.where, "`to` is less than `from`: the range is empty");
    return false;
  }

  void add_steps() {
    const SweepValue step = parse_sweep_value(range_.step->value);
    if (!is_same_measure(step, range_.step->where)) return;
    if (step.count <= Exact(0)) return error(range_.step->where, "found 0; expected a step above");
    const Exact steps = (to_.count - from_.count) / step.count;
    if (steps >= Exact(static_cast<Exact::Wide>(kMaxSweepValues)))
      return error(range_.step->where,
                   fmt::format("more than {} values; expected a larger step", kMaxSweepValues));
    for (Exact::Wide i = 0; Exact(i) <= steps; ++i) add(from_.count + Exact(i) * step.count);
  }

  void add_count() {
    const std::int64_t count = range_.count->value;
    const bool is_log = range_.scale == RangeScale::log;
    if (is_log && from_.count <= Exact(0))
      return error(range_.from.where, "found 0; a logarithmic range begins above it");
    for (std::int64_t i = 0; i < count; ++i) {
      if (i == 0)
        add(from_.count);
      else if (i == count - 1)
        add(to_.count);
      else
        add(is_log ? by_ratio(i, count - 1) : by_difference(i, count - 1));
    }
  }

  [[nodiscard]] Exact by_difference(std::int64_t i, std::int64_t intervals) const {
    return in_digits(decimal_of(from_.count) +
                     decimal_of(to_.count - from_.count) * Decimal(i) / Decimal(intervals));
  }

  [[nodiscard]] Exact by_ratio(std::int64_t i, std::int64_t intervals) const {
    const Decimal ratio = decimal_of(to_.count) / decimal_of(from_.count);
    return in_digits(decimal_of(from_.count) * pow(ratio, Decimal(i) / Decimal(intervals)));
  }

  [[nodiscard]] Exact in_digits(const Decimal& value) const {
    if (is_whole_numbers()) return Exact(static_cast<Exact::Wide>(round(value)));
    if (value <= 0) return Exact(0);
    return rounded(value / decimal_of(unit_.size)) * unit_.size;
  }

  [[nodiscard]] bool is_whole_numbers() const {
    return from_.measure == Measure::number && from_.count.is_whole() && to_.count.is_whole() &&
           unit_.name.empty();
  }

  /// In the unit of `from` where that is a decimal.
  void add(Exact count) {
    const auto share = (count / unit_.size).decimal();
    std::string text = share ? *share : to_text(SweepValue{from_.measure, count, {}});
    if (share && !unit_.name.empty()) text += ' ' + unit_.name;
    if (values_.empty() || values_.back() != text) values_.push_back(std::move(text));
  }

  const SweepRange& range_;
  Diagnostics& diagnostics_;
  const SweepValue from_, to_;
  const WrittenUnit unit_;
  std::vector<std::string> values_;
};

}  // namespace

Format<std::string> sweep_number_format() {
  Format<std::string> format = text();
  Shape number;
  number.kind = Shape::Kind::number;
  Shape shape;
  shape.kind = Shape::Kind::either;
  shape.title = "a number or a quantity";
  shape.parts = {std::move(number), std::move(format.shape)};
  return {std::move(format.read), std::move(shape)};
}

Format<SweepRange> sweep_range_format() {
  using R = SweepRange;
  const auto check = [](R& range, const Node& node, Diagnostics& diagnostics) {
    if (range.step.has_value() == range.count.has_value())
      diagnostics.error(node.where(), "a range has a `step` or a `count`, one of the two");
    if (range.step && range.scale)
      diagnostics.error(node.where(), "`scale` goes with `count`: a step is always added");
  };
  return Record<R>("range", "Values from one to another.")
      .where(&R::where)
      .required("from", &R::from, located(sweep_number_format()), "the first value")
      .required("to", &R::to, located(sweep_number_format()), "no value is above it")
      .optional("step", &R::step, located(sweep_number_format()),
                "what is added from one value to the next")
      .optional("count", &R::count, located(integer(2, static_cast<std::int64_t>(kMaxSweepValues))),
                "how many values, both ends included")
      .optional("scale", &R::scale,
                one_of<RangeScale>({{"linear", RangeScale::linear}, {"log", RangeScale::log}}),
                "of `count`: equal differences (linear, the default) or equal ratios (log)")
      .check({"step", "count", "scale"}, check)
      .format();
}

std::vector<std::string> expand(const SweepRange& range, Diagnostics& diagnostics) {
  try {
    return Expansion(range, diagnostics).run();
  } catch (const ExpressionError& problem) {
    diagnostics.error(range.where, problem.what());
    return {};
  }
}

}  // namespace plimsoll
