// The band of an energy by the quality of the numbers that it rests on.
#include "platform/core/energy_band.hpp"

#include "platform/file/platform_file.hpp"

#include <catch2/catch.hpp>

using namespace plimsoll;

namespace {

EnergyBand band_of(const std::string& power, const std::string& provenance) {
  Diagnostics diagnostics;
  const Platform platform = read_platform(
      parse_document(
          "platform: p\nmemories: {ram: {capacity: 1 kB}}\nprocessors:\n  cpu: {memory: ram, "
          "compute: {fp32: 1 FLOP/s}, power: " +
              power + "}\nprovenance:\n" + provenance,
          "p.yaml"),
      diagnostics);
  diagnostics.throw_if_errors();
  return energy_band(platform);
}

std::string source(const std::string& path, const std::string& quality) {
  return "  " + path + ": {quality: " + quality + ", source: s}\n";
}

const std::string kStates = "{idle: 1 W, active: 2 W}";

}  // namespace

TEST_CASE("an energy is as sure as the worst power or rate that it rests on") {
  const std::string rate = source("processors.cpu.compute", "measured");
  const std::string power = source("processors.cpu.power", "measured");
  // The capacity has no source, and moves no energy.
  const EnergyBand measured = band_of(kStates, rate + power);
  CHECK(measured.quality == Quality::measured);
  CHECK(measured.least == Approx(0.9));
  CHECK(measured.most == Approx(1.1));
  const EnergyBand fitted = band_of("{idle: 1 W, active: 2 W, memory: 1.5 W}", rate + power);
  CHECK(fitted.least == Approx(0.85));
  CHECK(fitted.most == Approx(1.15));
  for (const EnergyBand& worse :
       {band_of(kStates, rate), band_of(kStates, rate + source("processors.cpu.power", "headline")),
        band_of(kStates, power + source("processors.cpu.compute", "estimate"))}) {
    CHECK(worse.quality > Quality::measured);
    CHECK(worse.least == 0.5);
    CHECK(worse.most == 2);
  }
}
