#include "scenario/run/metric_values.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

MetricValue makespan(std::int64_t picoseconds) {
  return {Metric::makespan, {}, picoseconds};
}

Energy::Count power_of_ten(int exponent) {
  Energy::Count power = 1;
  for (int i = 0; i < exponent; ++i) power *= 10;
  return power;
}

TEST_CASE("a recorded value is written with every digit and read again") {
  const MetricValue energy{Metric::energy, {}, 675 * power_of_ten(21) + 1};
  CHECK(exact_text(energy) == "675000000000000000000001 zJ");
  CHECK(name_of(energy) == "energy");
  const MetricValue peak{Metric::peak_memory, "hbm0.left", 12};
  CHECK(name_of(peak) == "peak_memory.hbm0.left");
  for (const MetricValue& value :
       {energy, peak, makespan(0), makespan(9'223'372'036'854'775'806)}) {
    const ReadValue read = read_value(name_of(value), exact_text(value));
    REQUIRE(read.value);
    CHECK(*read.value == value);
  }
}

TEST_CASE("what is no recorded value is refused with a reason") {
  const auto problem = [](const std::string& name, const std::string& text) {
    const ReadValue read = read_value(name, text);
    CHECK_FALSE(read.value);
    return read.problem + (read.hint.empty() ? "" : "; " + read.hint);
  };
  CHECK(problem("makespam", "1 ps") ==
        "`makespam` is not a metric of a run; did you mean `makespan`?");
  CHECK(problem("peak_memory", "1 B") ==
        "`peak_memory` names no memory; expected `peak_memory.MEMORY`");
  CHECK(problem("peak_memory.", "1 B").find("names no memory") != std::string::npos);
  CHECK(problem("makespan.gpu", "1 ps").find("is not a metric") != std::string::npos);
  CHECK(problem("makespan", "1.5 ps") ==
        "found `1.5 ps`; expected a whole number of ps such as `1200 ps`");
  for (const char* text : {"", "1", " ps", "-1 ps", "1 B", "1  ps", "1 ps ", "0x1 ps",
                           // One more than a time may be.
                           "9223372036854775807 ps", "99999999999999999999 ps"})
    CHECK(problem("makespan", text).find("expected a whole number of ps") != std::string::npos);
  // 40 digits are beyond 128 bits.
  CHECK(problem("energy", std::string(40, '9') + " zJ").find("zJ") != std::string::npos);
}

TEST_CASE("a tolerance holds up to its border, and not one count beyond") {
  const Ratio percent{10'000'000};
  // 1 % of 12,345 is 123.45: 123 counts are within, 124 are not, in both directions.
  CHECK(change_of(makespan(12'345), makespan(12'345), percent) == Change::none);
  CHECK(change_of(makespan(12'345), makespan(12'468), percent) == Change::within);
  CHECK(change_of(makespan(12'345), makespan(12'469), percent) == Change::worse);
  CHECK(change_of(makespan(12'345), makespan(12'222), percent) == Change::within);
  CHECK(change_of(makespan(12'345), makespan(12'221), percent) == Change::better);
  // Without one, a single count is a change.
  CHECK(change_of(makespan(12'345), makespan(12'346), Ratio{0}) == Change::worse);
  CHECK(change_of(makespan(12'345), makespan(12'344), Ratio{0}) == Change::better);
  // Of nothing, every share is nothing.
  CHECK(change_of(makespan(0), makespan(1), kMostTolerance) == Change::worse);
}

TEST_CASE("tolerances of huge energies are exact, too") {
  // 10^33 zJ = 10^12 J; 10 times that would be beyond what 128 bits times 10^9 can hold.
  const MetricValue was{Metric::energy, {}, power_of_ten(33)};
  const auto with = [&](Energy::Count more) {
    return change_of(was, {Metric::energy, {}, was.count + more}, Ratio{1});
  };
  CHECK(with(power_of_ten(24)) == Change::within);
  CHECK(with(power_of_ten(24) + 1) == Change::worse);
}

TEST_CASE("changes are told in words") {
  CHECK(change_in_words(makespan(400'000'000'000), makespan(412'400'000'000)) ==
        "+3.1 % (412.4 ms, was 400 ms)");
  CHECK(change_in_words(makespan(400'000'000'000), makespan(100'000'000'000)) ==
        "-75 % (100 ms, was 400 ms)");
  CHECK(change_in_words(makespan(400'000'000'000), makespan(400'000'000'001)) == "+1 ps (400 ms)");
  CHECK(change_in_words(makespan(0), makespan(5)) == "5 ps, was 0 ps");
}

std::string error_of_tolerance(const std::string& text) {
  Diagnostics diagnostics;
  (void)tolerance_format().read(parse_document(text, "t"), diagnostics);
  return diagnostics.has_errors() ? to_text(diagnostics.all().front()) : "";
}

TEST_CASE("tolerances are read by metric") {
  Diagnostics diagnostics;
  const auto read =
      tolerance_format().read(parse_document("{makespan: 1 %, energy: 0.5}", "t"), diagnostics);
  REQUIRE(read);
  Tolerances outer;
  outer.by_metric.fill(Ratio{7});
  const Tolerances tolerances = with(outer, *read);
  CHECK(tolerances.of(Metric::makespan) == Ratio{10'000'000});
  CHECK(tolerances.of(Metric::energy) == Ratio{500'000'000});
  CHECK(tolerances.of(Metric::period) == Ratio{7});
  CHECK(error_of_tolerance("{makspan: 1 %}") ==
        "t:1:2: error: `makspan` is not a recorded metric; did you mean `makespan`?");
  CHECK(error_of_tolerance("{makespan: 1001 %}") ==
        "t:1:12: error: a tolerance of 1001 %; expected at most 1000 %");
  CHECK(error_of_tolerance("{makespan: -1 %}") != "");
  // 500 % or 5 %? A share is below 1.
  CHECK(error_of_tolerance("{period: 5}") ==
        "t:1:10: error: found `5`; expected a percentage, or a share below 1 such as `0.005`; did "
        "you mean `5 %`?");
  CHECK(error_of_tolerance("{period: 1}").find("did you mean `1 %`?") != std::string::npos);
  CHECK(error_of_tolerance("{period: 0.999}").empty());
  CHECK(error_of_tolerance("{period: 500 %}").empty());
  CHECK(error_of_tolerance("[makespan]") != "");
}

}  // namespace
}  // namespace plimsoll
