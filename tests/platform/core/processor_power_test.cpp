// How an operator's time and power follow from the clock that a cap allows.
#include "platform/core/processor_power.hpp"

#include "platform/milliwatts.hpp"

#include <random>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::milliwatts;

constexpr Time kSecond{1'000'000'000'000};
constexpr Ratio kPercent{kWhole.count() / 100};

ProcessorPower states(std::int64_t idle, std::int64_t active) {
  ProcessorPower power;
  power.idle = milliwatts(idle);
  power.active = milliwatts(active);
  return power;
}

PowerCurve with_floor(std::int64_t percent) {
  PowerCurve curve;
  curve.voltage_floor = kPercent * percent;
  return curve;
}

}  // namespace

TEST_CASE("dynamic power falls with the cube of the clock down to the floor of the voltage") {
  // g(0.9) = 0.729; g(0.8) = 0.512; below the floor of 0.8, 0.64 s: g(0.5) = 0.32.
  const PowerCurve curve = with_floor(80);
  const ProcessorPower power = states(50'000, 250'000);
  CHECK(curve.dynamic_share(kWhole, power) == kWhole);
  CHECK(curve.dynamic_share(kPercent * 90, power) == Ratio{729'000'000});
  CHECK(curve.dynamic_share(kPercent * 80, power) == Ratio{512'000'000});
  CHECK(curve.dynamic_share(kPercent * 50, power) == Ratio{320'000'000});
}

TEST_CASE("between operating points power lies on straight lines, below the slowest through zero") {
  // Idle 10 mW; 40 mW at half the clock, 110 mW at all of it. Of the dynamic 100 mW that is 0.3 at a
  // half; 0.65 at three quarters, half way; 0.15 at a quarter.
  PowerCurve curve;
  curve.slower = {{Ratio{}, milliwatts(10)}, {kPercent * 50, milliwatts(40)}};
  const ProcessorPower power = states(10, 110);
  CHECK(curve.dynamic_share(kPercent * 50, power) == kPercent * 30);
  CHECK(curve.dynamic_share(kPercent * 75, power) == kPercent * 65);
  CHECK(curve.dynamic_share(kPercent * 25, power) == kPercent * 15);
  CHECK(curve.dynamic_share(kWhole, power) == kWhole);
}

TEST_CASE("a cap lengthens arithmetic, and not traffic") {
  const PowerCurve curve = with_floor(80);
  ProcessorPower power = states(50'000, 250'000);
  // 50 + 200 x 0.512 = 152.4 W at 0.8 of the clock: 1 s of arithmetic takes 1.25 s.
  const OperatorPace computes = pace_of({.computing = kSecond}, power, curve, milliwatts(152'400));
  CHECK(computes.time == Time{1'250'000'000'000});
  CHECK(computes.power == milliwatts(152'400));
  // Half as long as the traffic that it hides behind: 250 W for 1 s and 150 W for 1 s, 200 W. At 0.8
  // it takes 1.25 of the 2 s, at 152.4 W, and 50 + 100 x 0.512 = 101.2 W are drawn for 0.75 s:
  // (190.5 + 75.9) / 2 = 133.2 W.
  power.memory = milliwatts(150'000);
  const OperatorPhases moves{.computing = kSecond, .beside = kSecond * 2};
  CHECK(pace_of(moves, power, curve, std::nullopt).power == milliwatts(200'000));
  const OperatorPace slow = pace_of(moves, power, curve, milliwatts(133'200));
  CHECK(slow.time == kSecond * 2);
  CHECK(slow.power == milliwatts(133'200));
  // One second more of waiting at 60 W: (200 x 2 + 60) / 3 = 153.33 W, rounded down to nanowatts.
  power.launch = milliwatts(60'000);
  const OperatorPhases launched{.waiting = kSecond, .computing = kSecond, .beside = kSecond * 2};
  CHECK(pace_of(launched, power, curve, std::nullopt).power == Power{153'333'333'333});
}

TEST_CASE("a cap is kept by the fastest clock that keeps it") {
  std::mt19937 random(20241124);
  const auto upto = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most)) + 1;
  };
  for (int round = 0; round < 2000; ++round) {
    ProcessorPower power = states(upto(100), 0);
    power.active = power.idle + milliwatts(upto(200));
    power.memory = power.idle + Power{upto((power.active - power.idle).count())};
    const PowerCurve curve = with_floor(upto(100));
    const OperatorPhases phases{.waiting = Time{upto(1000)},
                                .computing = Time{upto(1'000'000'000)},
                                .beside = Time{upto(1'000'000'000)},
                                .alone = Time{upto(1'000'000'000)}};
    const OperatorPace free = pace_of(phases, power, curve, std::nullopt);
    REQUIRE(pace_of(phases, power, curve, power.active).time == free.time);
    // From 30 % of the dynamic power on, so that clocks stay far above a millionth.
    OperatorPace before = free;
    for (const std::int64_t percent : {90, 70, 50, 30}) {
      const Power cap = power.idle + (power.active - power.idle) * (kPercent * percent);
      const OperatorPace it = pace_of(phases, power, curve, cap);
      REQUIRE(it.time >= before.time);
      REQUIRE(it.power <= cap);
      if (it.time > before.time) {  // slower only as it must be
        REQUIRE(free.power > cap);
      }
      before = it;
    }
  }
}

}  // namespace plimsoll
