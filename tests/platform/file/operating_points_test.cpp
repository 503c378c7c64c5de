// Operating points, sleep and power caps as platform files state them.
#include "platform/milliwatts.hpp"
#include "platform/read_text.hpp"

#include <catch2/catch.hpp>

using namespace plimsoll;
using plimsoll::test::Messages;
using plimsoll::test::milliwatts;
using plimsoll::test::read_text;

namespace {

/// A platform with `gpu` inside its processor.
std::string with_gpu(const std::string& gpu) {
  return "platform: p\nmemories:\n  hbm: {capacity: 1 GiB}\nprocessors:\n  gpu: {memory: hbm" +
         gpu + "}\n";
}

Messages messages_of_gpu(const std::string& gpu) {
  return read_text(with_gpu(gpu)).messages;
}

const std::string kTwoPoints =
    ", operating_points: [{name: slow, clock: 100 MHz, voltage: 0.6 V}, {name: fast, clock: 200 "
    "MHz, "
    "voltage: 900 mV}]";

}  // namespace

TEST_CASE("rates hold at the first operating point and go with the clock") {
  const std::string rest =
      ", compute: {fp32: 10 MFLOP/s}, launch_overhead: 6 us, power: {idle: 10 mW, active: 30 mW}";
  const auto slow = read_text(with_gpu(kTwoPoints + rest));
  REQUIRE(slow.messages.empty());
  const Processor& at_first = slow.platform.processors[0];
  CHECK(at_first.clock == kWhole);
  CHECK(at_first.power->active == milliwatts(30));

  const auto fast = read_text(with_gpu(kTwoPoints + rest + ", operating_point: fast"));
  REQUIRE(fast.messages.empty());
  const Processor& it = fast.platform.processors[0];
  CHECK(it.compute[static_cast<std::size_t>(DType::fp32)] == FlopRate{20'000'000});
  CHECK(it.launch_overhead == Time{3'000'000});
  CHECK(it.clock == kWhole * 2);
  // 10 + 20 x 2 x 1.5^2 = 100 mW; the static 10 mW stay.
  CHECK(it.power->idle == milliwatts(10));
  CHECK(it.power->active == milliwatts(100));
  CHECK(it.power_curve.slower ==
        std::vector<ClockedPower>{{Ratio{}, milliwatts(10)}, {Ratio{500'000'000}, milliwatts(30)}});
}

TEST_CASE("a point's own power, and states in between that keep their share of the dynamic one") {
  const auto read = read_text(with_gpu(
      ", operating_points: [{name: a, clock: 1 GHz}, {name: b, clock: 2 GHz, power: {idle: 20 mW, "
      "active: 120 mW}}], operating_point: b, power: {idle: 10 mW, active: 50 mW, memory: 30 mW, "
      "sleep: 1 mW, sleep_after: 2 ms}"));
  REQUIRE(read.messages.empty());
  const ProcessorPower& power = *read.platform.processors[0].power;
  CHECK(power.active == milliwatts(120));
  CHECK(power.memory == milliwatts(70));  // half of the dynamic power: 20 + 100 / 2
  CHECK(power.sleep == milliwatts(1));
  CHECK(power.sleep_after == Time{2'000'000'000});
}

TEST_CASE("energy per FLOP goes with the square of the voltage") {
  const auto read =
      read_text(with_gpu(kTwoPoints + ", energy_per_flop: 4 pJ/FLOP, operating_point: fast"));
  REQUIRE(read.messages.empty());
  CHECK(read.platform.processors[0].energy_per_flop == EnergyPerFlop{9'000'000});
}

TEST_CASE("a point whose power does not follow is refused") {
  CHECK(messages_of_gpu(
            ", power: {idle: 1 W, active: 2 W}, operating_points: [{name: a, clock: 1 GHz}, "
            "{name: b, clock: 2 GHz, voltage: 1 V}]") ==
        Messages{"p.yaml:5:106: error: what operating point `b` draws follows from the voltages of "
                 "it and of the first, `a`, and `a` states none; expected `voltage` or `power`"});
  CHECK(messages_of_gpu(", operating_points: [{name: a, clock: 1 GHz}, {name: b, clock: 2 GHz}]")
            .empty());
}

TEST_CASE("points that contradict each other are refused") {
  CHECK(messages_of_gpu(kTwoPoints + ", operating_point: fasr") ==
        Messages{"p.yaml:5:152: error: there is no operating point `fasr`; did you mean `fast`?"});
  CHECK(messages_of_gpu(", operating_points: [{name: a, clock: 1 GHz}, {name: a, clock: 2 GHz}]") ==
        Messages{"p.yaml:5:73: error: there is already an operating point `a`"});
  CHECK(messages_of_gpu(", operating_points: [{name: a, clock: 1 MHz}, {name: b, clock: 2 GHz}]") ==
        Messages{"p.yaml:5:83: error: found 2 GHz, expected a clock within a factor of 1000 of the "
                 "first, 1 MHz"});
  CHECK(messages_of_gpu(
            ", operating_points: [{name: a, clock: 2 GHz, power: {idle: 1 W, active: 2 W}}, "
            "{name: b, clock: 1 GHz, power: {idle: 1 W, active: 3 W}}]") ==
        Messages{"p.yaml:5:48: error: operating point `a` draws 2 W when active, less than the "
                 "slower `b`, 3 W"});
  CHECK(messages_of_gpu(", power: {idle: 1 W, active: 2 W, sleep_after: 1 s}").size() == 1);
}

TEST_CASE("of points at one clock, that which draws least is the slower one of others") {
  const std::string points =
      ", operating_points: [{name: ldo, clock: 1 GHz, power: {idle: 1 W, active: 5 W}}, "
      "{name: dcdc, clock: 1 GHz, power: {idle: 1 W, active: 3 W}}, "
      "{name: fast, clock: 2 GHz, power: {idle: 1 W, active: 4 W}}]";
  const auto read = read_text(with_gpu(points + ", operating_point: fast"));
  REQUIRE(read.messages.empty());
  const auto watts = [](std::int64_t count) { return Power{count * 1'000'000'000}; };
  CHECK(read.platform.processors[0].power_curve.slower ==
        std::vector<ClockedPower>{{Ratio{}, watts(1)}, {kPercent * 50, watts(3)}});
}

TEST_CASE("a cap that no clock keeps is refused, and one of which it is not known how") {
  const std::string power = ", power: {idle: 50 W, active: 250 W}";
  CHECK(messages_of_gpu(power + ", voltage_floor: 0.8, power_cap: 150 W").empty());
  CHECK(
      messages_of_gpu(power + ", voltage_floor: 0.8, power_cap: 50 W") ==
      Messages{"p.yaml:5:89: error: found 50 W, expected more than the processor draws when idle, "
               "50 W, and an active power above that"});
  CHECK(messages_of_gpu(power + ", power_cap: 150 W") ==
        Messages{"p.yaml:5:69: error: a cap of a processor of which it is not known how its power "
                 "falls with the clock; expected `voltage_floor` or `operating_points`"});
  CHECK(messages_of_gpu(", voltage_floor: 0.8, power_cap: 150 W") ==
        Messages{"p.yaml:5:53: error: a cap of a processor without `power`"});
  CHECK(messages_of_gpu(power + ", streams: 2, voltage_floor: 0.8, power_cap: 150 W").size() == 1);
}
