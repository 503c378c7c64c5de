// Powers fitted to measurements: what is found, what it is worth, and what is refused.
#include "scenario/calibration/power_calibration.hpp"

#include "report/calibration/calibration_json.hpp"
#include "report/calibration/power_calibration_text.hpp"
#include "scenario/calibration/calibrated_platform.hpp"
#include "scenario/document/search_path.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace plimsoll {
namespace {

const std::filesystem::path kShippedCalibrations =
    std::filesystem::path(PLIMSOLL_SOURCE_DIR) / "scenarios/calibration";

/// What the platform states that a calibration has made.
PowerCoefficients shipped_powers(const std::string& name) {
  Diagnostics diagnostics;
  const Platform platform = read_platform(
      read_document(std::filesystem::path(PLIMSOLL_SOURCE_DIR) / "platforms" / (name + ".yaml")),
      diagnostics, resolver_of_extends());
  diagnostics.throw_if_errors();
  const Processor& unit = platform.processors.front();
  return {*unit.power, *unit.power_curve.voltage_floor};
}

/// A calibration of a platform in place; `rows` under `fit`.
PowerCalibrationSpec spec_of(const std::string& rows) {
  return read_power_calibration(parse_document(
      "calibration: c\nplatform: v100-sxm2-16gb\npower:\n  fit:\n" + rows, "c.yaml"));
}

std::string row(int batch, std::int64_t cap, const std::string& power) {
  return fmt::format(
      "    - {{name: lenet {0}, workload: {{model: lenet, batch: {0}}}, power_cap: {1} W, power: "
      "{2}, "
      "source: s}}\n",
      batch, cap, power);
}

}  // namespace

TEST_CASE("shipped powers are within 7 % of the held-out ones on average, for each GPU") {
  for (const std::string name :
       {"v100-sxm2-16gb-power", "a40-power", "p100-sxm2-16gb-power", "quadro-rtx-6000-power"}) {
    CAPTURE(name);
    const auto spec =
        read_power_calibration(read_document(kShippedCalibrations / (name + ".yaml")));
    const PowerRows rows = read_power_rows(spec, kShippedCalibrations);
    std::vector<OperatorPace> paces;
    for (const PowerRow& it : rows.rows) paces.push_back(step_pace(rows, it, shipped_powers(name)));
    const PowerErrors errors = errors_of(rows, paces);
    CHECK(errors.mean_tested <= 70'000);
    CHECK(errors.mean_fitted <= 30'000);
    const auto caps = least_energy_caps(rows, paces);
    const auto good =
        std::ranges::count_if(caps, [](const auto& it) { return it.excess <= 20'000; });
    CHECK(10 * good >= 8 * std::ssize(caps));
  }
}

TEST_CASE("the report says that nothing is held out, and which rows drew more than their cap") {
  const auto text = [](const std::string& rows) {
    return power_calibration_text(*calibrate_powers(spec_of(rows), kShippedCalibrations), Style{});
  };
  const std::string above = text(row(64, 250, "90 W") + row(2048, 100, "103 W"));
  CHECK_THAT(above,
             Catch::Contains("on the rows fitted; none is held out\n"
                             "measured above the cap: 1 of 2 rows, most of all \"lenet 2048\", "
                             "103 W under 100 W; a run keeps to its cap\n"));
  CHECK_THAT(text(row(64, 250, "90 W")), !Catch::Contains("above the cap"));
}

TEST_CASE("a fit finds powers with which its rows come out") {
  // Powers as some coefficients make them: the fit needs not find these, but the same powers to 2 %.
  const PowerCalibrationSpec asked = spec_of(row(64, 250, "1 W") + row(2048, 250, "1 W") +
                                             row(8192, 250, "1 W") + row(8192, 120, "1 W"));
  PowerRows rows = read_power_rows(asked, kShippedCalibrations);
  PowerCoefficients truth;
  truth.power.idle = Power{40'000'000'000};
  truth.power.launch = Power{70'000'000'000};
  truth.power.memory = Power{160'000'000'000};
  truth.power.active = Power{240'000'000'000};
  truth.voltage_floor = Ratio{800'000'000};
  std::vector<PowerMeasurement> measured;
  for (const PowerRow& it : rows.rows) {
    measured.push_back(*it.measured);
    measured.back().power = step_pace(rows, it, truth).power;
  }
  for (std::size_t i = 0; i < measured.size(); ++i) rows.rows[i].measured = &measured[i];
  const PowerCoefficients fitted = fit_powers(rows);
  for (const PowerRow& it : rows.rows) {
    const double ours = in_watts(step_pace(rows, it, fitted).power);
    CHECK(ours == Approx(in_watts(it.measured->power)).epsilon(0.02));
  }
}

TEST_CASE("a calibration of powers makes a platform with what it found, and JSON") {
  const test::TemporaryFolder files;
  auto spec = spec_of(row(64, 250, "120 W") + row(8192, 250, "210 W") + row(8192, 120, "115 W"));
  const auto it = calibrate_powers(std::move(spec), kShippedCalibrations);
  const std::filesystem::path target = files.path() / "c.yaml";
  files.write("c.yaml", calibrated_platform(*it, kShippedCalibrations, target));
  Diagnostics diagnostics;
  const Platform platform =
      read_platform(read_document(target), diagnostics, resolver_of_extends());
  diagnostics.throw_if_errors();
  const Processor& unit = platform.processors.front();
  CHECK(platform.name == "c");
  CHECK(unit.power->idle == it->fitted.power.idle);
  CHECK(unit.power->launch == it->fitted.power.launch);
  CHECK(unit.power->memory == it->fitted.power.memory);
  CHECK(unit.power->active == it->fitted.power.active);
  CHECK(unit.power_curve.voltage_floor == it->fitted.voltage_floor);
  // What is stated is measured; rates are those of the platform that it extends.
  const auto stated =
      std::ranges::find(platform.provenance, "processors.gpu.power", &Provenance::path);
  REQUIRE(stated != platform.provenance.end());
  CHECK(stated->quality == Quality::measured);
  CHECK_THAT(stated->source, Catch::Contains("powers of 3 rows") && Catch::Contains("no others"));
  CHECK(unit.compute == it->before().compute);

  const auto result = nlohmann::json::parse(power_calibration_json(*it));
  CHECK(result.at("processor") == "gpu");
  REQUIRE(result.at("rows").size() == 3);
  CHECK(result.at("rows").at(0).at("measured_w") == 120.0);
  CHECK(result.at("rows").at(2).at("power_cap_w") == 120.0);
  CHECK(result.at("coefficients").size() == 5);
  CHECK(result.at("coefficients").at(3).at("fitted").get<double>() ==
        in_watts(it->fitted.power.active));
  CHECK(result.at("errors").at("fit").at("rows") == 3);
  CHECK(result.at("errors").at("test") == nlohmann::json{{"rows", 0}});
}

TEST_CASE("calibrations of powers say what is wrong") {
  const auto message = [](const std::string& rows) {
    try {
      (void)spec_of(rows);
    } catch (const InputError& error) {
      return to_text(error.diagnostics().front());
    }
    return std::string();
  };
  CHECK(message("    []\n") == "c.yaml:1:1: error: no power under `fit`");
  CHECK(message(row(8, 250, "0 W")) == "c.yaml:5:84: error: found `0 W`, expected more than zero");
  CHECK(message(row(8, 250, "0.0 W")) ==
        "c.yaml:5:84: error: found `0.0 W`, expected more than zero");
}

}  // namespace plimsoll
