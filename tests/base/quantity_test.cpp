#include "base/quantity.hpp"

#include <cstdint>

#include <catch2/catch.hpp>

using namespace plimsoll;

TEST_CASE("times are exact and rounded up to one picosecond") {
  // 12.3 GB at 12.3 GB/s: one second.
  CHECK(transfer_time(Bytes(12'300'000'000), ByteRate(12'300'000'000)) == Time(1'000'000'000'000));
  // 1 B at 3 B/s: 10^12 / 3 = 333333333333.33, up.
  CHECK(transfer_time(Bytes(1), ByteRate(3)) == Time(333'333'333'334));
  // Faster than 1 B/ps: still 1 ps.
  CHECK(transfer_time(Bytes(1), ByteRate(5'000'000'000'000)) == Time(1));
  CHECK(transfer_time(Bytes(0), ByteRate(1)) == Time(0));
  CHECK(compute_time(Flops(312'000'000'000'000), FlopRate(312'000'000'000'000)) ==
        Time(1'000'000'000'000));
}

TEST_CASE("an unlimited rate takes no time, an unlimited amount has none") {
  CHECK(transfer_time(Bytes(INT64_MAX - 1), ByteRate::unlimited()) == Time(0));
  CHECK(compute_time(Flops(7), FlopRate::unlimited()) == Time(0));
  CHECK_THROWS_AS(transfer_time(Bytes::unlimited(), ByteRate(1)), QuantityOverflow);
}

TEST_CASE("what leaves the range throws") {
  // 2^63 - 1 ps are 9223372.036854775807 s; 9223373 B at 1 B/s take longer, 9223372 B do not.
  CHECK(transfer_time(Bytes(9'223'372), ByteRate(1)) == Time(9'223'372'000'000'000'000));
  CHECK_THROWS_AS(transfer_time(Bytes(9'223'373), ByteRate(1)), QuantityOverflow);
  const Bytes most(INT64_MAX - 1);
  // One more would read as unlimited.
  CHECK_THROWS_AS(most + Bytes(1), QuantityOverflow);
  CHECK_THROWS_AS(most * 2, QuantityOverflow);
  CHECK_THROWS_AS(Bytes(INT64_MIN) - Bytes(1), QuantityOverflow);
  CHECK_THROWS_AS(Bytes::unlimited() - Bytes(1), QuantityOverflow);
  CHECK_THROWS_AS(Power::unlimited() * Time(1), QuantityOverflow);
  CHECK(most < Bytes::unlimited());
  CHECK((most - most) == Bytes(0));
}

TEST_CASE("energy is power times time, to the zeptojoule") {
  // 250 W for 4 s: 1 kJ = 10^24 zJ.
  const Energy energy = Power(250'000'000'000) * Time(4'000'000'000'000);
  CHECK(in_joules(energy) == 1000.0);
  CHECK(to_text(energy) == "1 kJ");
  // 3.3 pJ/B = 3300000 aJ/B, 2 B: 6.6 pJ = 6.6 x 10^9 zJ.
  CHECK(EnergyPerByte(3'300'000) * Bytes(2) == Energy(6'600'000'000));
  CHECK(EnergyPerFlop(1) * Flops(1) == Energy(1000));
  // The extremes fit 128 bits: (2^63 - 2)^2 < 2^127.
  CHECK_NOTHROW(Power(INT64_MAX - 1) * Time(INT64_MAX - 1));
  CHECK_THROWS_AS(EnergyPerByte(INT64_MAX - 1) * Bytes(INT64_MAX - 1), QuantityOverflow);
}

TEST_CASE("an efficiency of a rate is rounded down and never zero") {
  // 0.82 x 15.7 TFLOP/s = 12.874 TFLOP/s.
  CHECK(FlopRate(15'700'000'000'000) * Ratio(820'000'000) == FlopRate(12'874'000'000'000));
  // 0.5 x 3 B/s = 1.5, down; 0.1 x 1 B/s would be 0.
  CHECK(ByteRate(3) * Ratio(500'000'000) == ByteRate(1));
  CHECK(ByteRate(1) * Ratio(100'000'000) == ByteRate(1));
  CHECK((ByteRate::unlimited() * Ratio(500'000'000)).is_unlimited());
}

TEST_CASE("text for people has four significant digits and the unit that suits") {
  CHECK(to_text(Bytes(0)) == "0 B");
  CHECK(to_text(Bytes(1023)) == "1023 B");
  CHECK(to_text(Bytes(1024)) == "1 KiB");
  CHECK(to_text(Bytes(3) * (1 << 29)) == "1.5 GiB");
  CHECK(to_text(Bytes(-1536)) == "-1.5 KiB");
  CHECK(to_text(Bytes::unlimited()) == "unlimited");
  CHECK(to_text(Time(12'300'000'000)) == "12.3 ms");
  // 999.96 ms has four digits as 1000.0 ms: one second.
  CHECK(to_text(Time(999'960'000'000)) == "1 s");
  // 999.94 ms -> 999.9 ms.
  CHECK(to_text(Time(999'940'000'000)) == "999.9 ms");
  // Minutes from 10 min on, hours from 2 h.
  CHECK(to_text(Time(599'000'000'000'000)) == "599 s");
  CHECK(to_text(Time(600'000'000'000'000)) == "10 min");
  CHECK(to_text(Time(7'200'000'000'000'000)) == "2 h");
  CHECK(to_text(ByteRate(12'300'000'000)) == "12.3 GB/s");
  CHECK(to_text(FlopRate(312'000'000'000'000)) == "312 TFLOP/s");
  CHECK(to_text(Flops(1'234'567)) == "1.235 MFLOP");
  CHECK(to_text(Power(250'000'000'000)) == "250 W");
  CHECK(to_text(EnergyPerByte(3'300'000)) == "3.3 pJ/B");
  CHECK(to_text(EnergyPerByte(1'500'000'000'000'000'000)) == "1.5 J/B");
  CHECK(to_text(SampleRate(11'110'000'000)) == "11.11 samples/s");
  CHECK(to_text(EnergyPerFlop(500'000)) == "500 fJ/FLOP");
  CHECK(to_text(kWhole) == "100 %");
  CHECK(to_text(Ratio(820'000'000)) == "82 %");
  // One part per billion is 10^-7 %.
  CHECK(to_text(Ratio(1)) == "0.0000001 %");
}
