#include "base/quantity_text.hpp"

#include <random>
#include <string>

#include <catch2/catch.hpp>

using namespace plimsoll;

namespace {

template <class T>
typename T::Count count_of(const std::string& text) {
  const Parsed<T> parsed = parse_quantity<T>(text);
  INFO(text << ": " << parsed.problem);
  REQUIRE(parsed.value.has_value());
  return parsed.value->count();
}

template <class T>
std::string problem_of(const std::string& text) {
  const Parsed<T> parsed = parse_quantity<T>(text);
  INFO(text);
  REQUIRE_FALSE(parsed.value.has_value());
  return parsed.hint.empty() ? parsed.problem : parsed.problem + "; " + parsed.hint;
}

}  // namespace

TEST_CASE("quantities are read exactly, with their unit") {
  CHECK(count_of<Bytes>("16 GiB") == 17'179'869'184);
  CHECK(count_of<Bytes>("1.5GiB") == 1'610'612'736);
  CHECK(count_of<Bytes>("1e9 B") == 1'000'000'000);
  CHECK(count_of<Bytes>("0.5e1 kB") == 5'000);
  CHECK(count_of<Bytes>("50e-1 B") == 5);
  CHECK(count_of<Bytes>(".5 kB") == 500);
  CHECK(count_of<Bytes>("0 B") == 0);
  CHECK(count_of<ByteRate>("12.3 GB/s") == 12'300'000'000);
  CHECK(count_of<ByteRate>("1 MiB/s") == 1'048'576);
  CHECK(count_of<Time>("5 us") == 5'000'000);
  CHECK(count_of<Time>("5 \u00b5s") == 5'000'000);
  CHECK(count_of<Time>("5 \u03bcs") == 5'000'000);
  CHECK(count_of<Time>("1.5 min") == 90'000'000'000'000);
  CHECK(count_of<FlopRate>("312 TFLOP/s") == 312'000'000'000'000);
  CHECK(count_of<Flops>("1.2 GFLOP") == 1'200'000'000);
  CHECK(count_of<Power>("250 W") == 250'000'000'000);
  CHECK(count_of<Power>("6 uW") == 6'000);
  CHECK(count_of<EnergyPerByte>("3.3 pJ/B") == 3'300'000);
  // 1 J = 10^18 aJ
  CHECK(count_of<EnergyPerByte>("2 J/B") == 2'000'000'000'000'000'000);
  CHECK(count_of<EnergyPerByte>("2 J/B") == count_of<EnergyPerByte>("2000 mJ/B"));
  CHECK(count_of<EnergyPerFlop>("1 J/FLOP") == 1'000'000'000'000'000'000);
  CHECK(count_of<SampleRate>("250 samples/s") == 250'000'000'000);
  CHECK(count_of<SampleRate>("0.5") == 500'000'000);
  CHECK(count_of<EnergyPerFlop>("0.8 pJ/FLOP") == 800'000);
  CHECK(count_of<Ratio>("82 %") == 820'000'000);
  CHECK(count_of<Ratio>("0.82") == 820'000'000);
  // 1 Wh = 3600 J, 9 kJ = 2.5 Wh.
  CHECK(count_of<Energy>("2.5 Wh") == count_of<Energy>("9 kJ"));
}

TEST_CASE("sizes and times are rounded up, the rest to the nearest") {
  // 0.1 KiB = 102.4 B.
  CHECK(count_of<Bytes>("0.1 KiB") == 103);
  // The 30th decimal still counts: just above one byte is two.
  CHECK(count_of<Bytes>("0.001000000000000000000000000001 kB") == 2);
  CHECK(count_of<Time>("0.1 ps") == 1);
  CHECK(count_of<Time>("1.0001 ns") == 1'001);
  // 1.4 B/s and 1.5 B/s.
  CHECK(count_of<ByteRate>("0.0014 kB/s") == 1);
  CHECK(count_of<ByteRate>("0.0015 kB/s") == 2);
  CHECK(problem_of<Bytes>("1.5 B") == "`1.5 B` is not a whole number of B");
  CHECK(problem_of<ByteRate>("1.5 B/s") == "`1.5 B/s` is not a whole number of B/s");
}

TEST_CASE("the range ends one below unlimited") {
  CHECK(count_of<Bytes>("9223372036854775806 B") == INT64_MAX - 1);
  CHECK(problem_of<Bytes>("9223372036854775807 B") ==
        "`9223372036854775807 B` is out of range: a size is at most 8192 PiB");
  CHECK(problem_of<Time>("200 d") == "`200 d` is out of range: a time is at most 106.8 d");
  CHECK_FALSE(parse_quantity<Bytes>("1e99999999999999999999 B").value.has_value());
  CHECK(count_of<Bytes>("0e99999999999999999999 B") == 0);
  CHECK(count_of<Time>("1e-99999999999999999999 s") == 1);
  CHECK(parse_quantity<Bytes>("unlimited", true).value == Bytes::unlimited());
  CHECK(problem_of<Time>("unlimited") ==
        "`unlimited` has no meaning here, expected a time such as `5 us`");
}

TEST_CASE("a problem says what was found and what was expected") {
  CHECK(problem_of<Bytes>("16") == "`16` has no unit, expected a size such as `16 GiB`");
  CHECK(problem_of<Bytes>("0") == "`0` has no unit, expected a size such as `16 GiB`");
  CHECK(problem_of<Bytes>("-1 B") == "`-1 B` is negative, expected a size such as `16 GiB`");
  CHECK(problem_of<Bytes>("") == "found nothing, expected a size such as `16 GiB`");
  CHECK(problem_of<Bytes>("many") == "`many` is not a size such as `16 GiB`");
  CHECK(problem_of<Bytes>("1,5 GB") ==
        "the number in `1,5 GB` may hold only digits and a decimal point");
  CHECK(problem_of<Bytes>("5 us") == "`5 us` is a time, expected a size such as `16 GiB`");
  CHECK(problem_of<ByteRate>("12 gb/s") ==
        "unknown unit in `12 gb/s`, expected one of B/s, kB/s, MB/s, GB/s, TB/s, PB/s, KiB/s, "
        "MiB/s, GiB/s, TiB/s; did you mean `GB/s`?");
  CHECK(problem_of<Bytes>("8G") ==
        "unknown unit in `8G`, expected one of B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB; did "
        "you mean `8 GB` or `8 GiB`?");
  CHECK_THAT(problem_of<Bytes>("1.5 gi"), Catch::EndsWith("did you mean `1.5 GiB`?"));
  CHECK_THAT(problem_of<ByteRate>("12G"), Catch::EndsWith("did you mean `12 GB/s` or `12 GiB/s`?"));
  CHECK_THAT(problem_of<FlopRate>("312 T"), Catch::EndsWith("did you mean `312 TFLOP/s`?"));
  CHECK(problem_of<Time>("5\xC2\xA0ms") ==
        "`5\xC2\xA0ms` has a non-breaking space before its unit, expected an ordinary one");
  for (const char* text : {"12 Gbit/s", "12 Gb/s", "12 Mbps", "12 Kibit/s"})
    CHECK(problem_of<ByteRate>(text) ==
          std::string("`").append(text).append(
              "` counts bits; expected a bandwidth such as `12.3 GB/s` (a byte is 8 bits: 100 "
              "Gbit/s is 12.5 GB/s)"));
  for (const char* text : {"nan B", "inf B", "0x10 B", "1 B B", "1..2 B", ". B", "1e B", "+1 B"})
    CHECK_FALSE(problem_of<Bytes>(text).empty());
}

namespace {

/// Text written from a count reads back as a count that is written the same. `least` keeps the
/// fourth digit well above the rounding of one count.
template <class T>
void check_round_trip(std::mt19937_64& random, std::int64_t least = 0) {
  for (int i = 0; i < 2'000; ++i) {
    const int bits = static_cast<int>(random() % 62) + 1;
    const T quantity(least + static_cast<std::int64_t>(random() >> (64 - bits)));
    const std::string text = to_text(quantity);
    const Parsed<T> parsed = parse_quantity<T>(text);
    INFO(text << ": " << parsed.problem);
    REQUIRE(parsed.value.has_value());
    CHECK(to_text(*parsed.value) == text);
  }
}

}  // namespace

TEST_CASE("text made for people reads back", "[property]") {
  std::mt19937_64 random(7);
  check_round_trip<Bytes>(random, 1 << 20);
  check_round_trip<Time>(random);
  check_round_trip<Flops>(random);
  check_round_trip<ByteRate>(random);
  check_round_trip<FlopRate>(random);
  check_round_trip<Power>(random);
  check_round_trip<EnergyPerByte>(random);
  check_round_trip<SampleRate>(random);
  check_round_trip<EnergyPerFlop>(random);
  check_round_trip<Ratio>(random);
}

TEST_CASE("counts written in full read back exactly", "[property]") {
  std::mt19937_64 random(11);
  for (int i = 0; i < 5'000; ++i) {
    const auto count = static_cast<std::int64_t>(random() >> (1 + random() % 63));
    if (Bytes(count).is_unlimited()) continue;
    CHECK(count_of<Bytes>(std::to_string(count) + " B") == count);
    // A thousandth of the number in a unit a thousand times as large.
    const std::string digits = std::to_string(count % 1000);
    const std::string thousandths = std::string(3 - digits.size(), '0') + digits;
    CHECK(count_of<Power>(std::to_string(count / 1000) + '.' + thousandths + " uW") == count);
  }
}

TEST_CASE("random texts never crash the parser", "[property]") {
  std::mt19937_64 random(13);
  const std::string alphabet = "0123456789.eE+- kKMGTPiB/sunmpFLOPWhJd%\xc2\xb5";
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (std::size_t length = random() % 24; length > 0; --length)
      text += alphabet[random() % alphabet.size()];
    const Parsed<Bytes> parsed = parse_quantity<Bytes>(text);
    CHECK(parsed.value.has_value() == parsed.problem.empty());
  }
}
