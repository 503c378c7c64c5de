// Exact values, ranges and expressions of sweeps.
#include "scenario/sweep/sweep_expression.hpp"
#include "scenario/sweep/sweep_range.hpp"

#include <random>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using Texts = std::vector<std::string>;

Texts values_of(const std::string& range) {
  Diagnostics diagnostics;
  const auto read = sweep_range_format().read(parse_document(range, "r.yaml"), diagnostics);
  Texts values = read ? expand(*read, diagnostics) : Texts{};
  diagnostics.throw_if_errors();
  return values;
}

std::string range_error(const std::string& range) {
  try {
    return "none, " + std::to_string(values_of(range).size()) + " values";
  } catch (const InputError& error) {
    return error.what();
  }
}

const Texts kVariables{"batch", "hbm.capacity", "policy", "pcie.bandwidth", "room"};

std::vector<SweepValue> values() {
  return {parse_sweep_value("64"), parse_sweep_value("16 GiB"), parse_sweep_value("offload/eager"),
          parse_sweep_value("12.5 GB/s"), parse_sweep_value("unlimited")};
}

std::string value_of(const std::string& expression) {
  try {
    return to_text(SweepExpression(expression, kVariables).evaluate(values()));
  } catch (const ExpressionError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("sweep values: a text is a number, a quantity, or a word") {
  CHECK(parse_sweep_value("64").count == Exact(64));
  CHECK(parse_sweep_value("0.125").count == Exact(1, 8));
  CHECK(parse_sweep_value("10 %").count == Exact(1, 10));
  CHECK(parse_sweep_value("1.5 GiB").measure == Measure::size);
  CHECK(parse_sweep_value("1.5 GiB").count == Exact(1'610'612'736));
  CHECK(parse_sweep_value("1 ms").count == Exact(1'000'000'000));  // in picoseconds
  CHECK(parse_sweep_value("25 GB/s").measure == Measure::byte_rate);
  CHECK(parse_sweep_value("3.3 pJ/B").measure == Measure::energy_per_byte);
  CHECK(parse_sweep_value("fp16").measure == Measure::word);
  CHECK(parse_sweep_value("unlimited").measure == Measure::unlimited);
  CHECK(parse_sweep_value("1.2.3").measure == Measure::word);
  CHECK(parse_sweep_value("25 GB/s").in_si() == 25e9);
  CHECK(parse_sweep_value("1 us").in_si() == 1e-6);
}

TEST_CASE("sweep values: written values read back as the same, whatever the quantity") {
  std::mt19937_64 random(3);
  for (const Measure measure : {Measure::size, Measure::time, Measure::byte_rate,
                                Measure::flop_rate, Measure::power, Measure::energy_per_byte}) {
    for (int i = 0; i < 200; ++i) {
      const auto count = static_cast<std::int64_t>(random() >> (1 + random() % 60));
      const std::string text = to_text(SweepValue{measure, Exact(count), {}});
      INFO(text);
      CHECK(parse_sweep_value(text).count == Exact(count));
      if (count > 0) CHECK(parse_sweep_value(text).measure == measure);
    }
  }
  CHECK(to_text(parse_sweep_value("2048 MiB")) == "2 GiB");
  CHECK(to_text(parse_sweep_value("1.5 GB/s")) == "1.5 GB/s");
  CHECK(to_text(parse_sweep_value("0.125")) == "0.125");
}

TEST_CASE("sweep values: fractions keep to the laws of arithmetic") {
  std::mt19937_64 random(5);
  const auto any = [&] {
    const auto part = [&] { return static_cast<std::int64_t>(random() % 2001) - 1000; };
    const std::int64_t denominator = part();
    return Exact(part(), denominator == 0 ? 1 : denominator);
  };
  for (int i = 0; i < 500; ++i) {
    const Exact a = any(), b = any(), c = any();
    CHECK((a + b) * c == a * c + b * c);
    CHECK(a - a == Exact(0));
    if (b != Exact(0)) CHECK(a / b * b == a);
    CHECK((a < b) == (Exact(0) < b - a));
    const Exact down = a.rounded_down();
    CHECK((down.is_whole() && down <= a && a < down + Exact(1)));
  }
  CHECK_THROWS_AS(Exact(1) / Exact(0), ExpressionError);
  Exact large(1);
  CHECK_THROWS_AS(
      [&] {
        for (;;) large = large * Exact(1'000'003);
      }(),
      ExpressionError);
}

TEST_CASE("sweep ranges: steps are exact, and stop at the end") {
  CHECK(values_of("{from: 4 GB/s, to: 13 GB/s, step: 4 GB/s}") ==
        Texts{"4 GB/s", "8 GB/s", "12 GB/s"});
  CHECK(values_of("{from: 512 MiB, to: 1 GiB, step: 0.25 GiB}") ==
        Texts{"512 MiB", "768 MiB", "1024 MiB"});
  CHECK(values_of("{from: 0, to: 0.3, step: 0.1}") == Texts{"0", "0.1", "0.2", "0.3"});
  CHECK(values_of("{from: 10 %, to: 30 %, step: 10 %}") == Texts{"10 %", "20 %", "30 %"});
  // A second is no decimal of a minute: 1/60.
  CHECK(values_of("{from: 1 min, to: 62 s, step: 1 s}") == Texts{"1 min", "61 s", "62 s"});
}

TEST_CASE("sweep ranges: counts are even by difference or by ratio") {
  CHECK(values_of("{from: 1, to: 10, count: 4}") == Texts{"1", "4", "7", "10"});
  // 1 + 9/4 = 3.25, 5.5, 7.75: whole numbers stay whole, rounded to the nearest.
  CHECK(values_of("{from: 1, to: 10, count: 5}") == Texts{"1", "3", "6", "8", "10"});
  CHECK(values_of("{from: 1 GiB, to: 16 GiB, count: 5, scale: log}") ==
        Texts{"1 GiB", "2 GiB", "4 GiB", "8 GiB", "16 GiB"});
  // 4 * 2^(1/2) = 5.656854..: six digits.
  CHECK(values_of("{from: 4 GB/s, to: 8 GB/s, count: 3, scale: log}") ==
        Texts{"4 GB/s", "5.65685 GB/s", "8 GB/s"});
  // 1, 1.4, 2, 2.8, 4 are 1, 1, 2, 3, 4.
  CHECK(values_of("{from: 1, to: 4, count: 5, scale: log}") == Texts{"1", "2", "3", "4"});
  CHECK(values_of("{from: 0 B, to: 1 kB, count: 3}") == Texts{"0 B", "500 B", "1000 B"});
}

TEST_CASE("sweep ranges: what is wrong is told at its place") {
  CHECK(range_error("{from: 1, to: 4}") ==
        "r.yaml:1:1: error: a range has a `step` or a `count`, one of the two");
  CHECK(range_error("{from: 1, to: 4, step: 1, count: 3}") ==
        "r.yaml:1:1: error: a range has a `step` or a `count`, one of the two");
  CHECK(range_error("{from: 4 GB/s, to: 8 GiB, step: 1 GB/s}") ==
        "r.yaml:1:20: error: found a size; expected a rate, as in `from`");
  CHECK(range_error("{from: 8, to: 4, step: 1}") ==
        "r.yaml:1:15: error: `to` is less than `from`: the range is empty");
  CHECK(range_error("{from: 1, to: 4, step: 0}") ==
        "r.yaml:1:24: error: found 0; expected a step above");
  CHECK(range_error("{from: 1 B, to: 1 TiB, step: 1 B}") ==
        "r.yaml:1:30: error: more than 100000 values; expected a larger step");
  CHECK(range_error("{from: 0, to: 4, count: 3, scale: log}") ==
        "r.yaml:1:8: error: found 0; a logarithmic range begins above it");
  CHECK(range_error("{from: slow, to: 4, count: 3}") ==
        "r.yaml:1:8: error: found `slow`; expected a number or a quantity");
}

TEST_CASE("sweep expressions: exact arithmetic on what measures the same") {
  CHECK(value_of("batch * 2 + 1") == "129");
  CHECK(value_of("hbm.capacity - 2 GiB") == "14 GiB");
  CHECK(value_of("0.5 * hbm.capacity") == "8 GiB");
  CHECK(value_of("hbm.capacity * 10 %") == "1717986918 B");  // a tenth, rounded down
  CHECK(value_of("hbm.capacity / 1 GiB") == "16");
  CHECK(value_of("batch / 128") == "0.5");
  CHECK(value_of("policy == 'offload/eager' and batch >= 64") == "1");
  CHECK(value_of("not (policy == 'none') and batch > 64") == "0");
  CHECK(value_of("pcie.bandwidth * 2") == "25 GB/s");
}

TEST_CASE("sweep expressions: unlimited is infinite") {
  CHECK(value_of("room > hbm.capacity and room > 5 and room >= room and room == unlimited") == "1");
  CHECK(value_of("room <= hbm.capacity or room < room or room != 'unlimited'") == "0");
  CHECK(value_of("hbm.capacity < unlimited") == "1");
  CHECK(value_of("room - 2 GiB") == "unlimited");
  CHECK(value_of("0.5 * room + room / 2") == "unlimited");
  CHECK(value_of("room - room") == "`-` of `unlimited` and `unlimited`");
  CHECK(value_of("2 GiB - room") == "`-` of a size and `unlimited`");
  CHECK(value_of("room * 0") == "`*` of `unlimited` and a number");
  CHECK(value_of("1 / room") == "`/` of a number and `unlimited`");
  CHECK(value_of("room < policy") == "`<` of `unlimited` and a word");
  CHECK(value_of("room and room") == "found `unlimited`; expected a condition");
}

TEST_CASE("sweep expressions: what does not go together is refused in words") {
  CHECK(value_of("batch + hbm.capacity") == "`+` of a number and a size");
  CHECK(value_of("hbm.capacity / pcie.bandwidth") == "`/` of a size and a rate");
  CHECK(value_of("policy < 'none'") == "`<` of a word and a word");
  CHECK(value_of("policy * 2") == "`*` of a word and a number");
  CHECK(value_of("batch / 0") == "a division by 0");
  CHECK(value_of("batch and hbm.capacity") == "found a size; expected a condition");
  CHECK(value_of("btach") == "`btach` is not varied by this sweep; did you mean `batch`?");
  CHECK(value_of("3 parsecs") ==
        "`3 parsecs` is not a quantity; expected a number with a unit or without");
  CHECK(value_of("batch / 7") == "a number of more than nine decimals");
}

}  // namespace plimsoll
