#include "platform/core/break_even.hpp"

#include "platform/file/platform_file.hpp"
#include "platform/read_text.hpp"

#include <filesystem>

#include <catch2/catch.hpp>

using namespace plimsoll;

namespace {

std::vector<BreakEven> rows_of(const std::string& name, DType dtype = DType::fp32) {
  Diagnostics diagnostics;
  const auto folder = std::filesystem::path(PLIMSOLL_SOURCE_DIR) / "platforms";
  const Platform platform = load_platform(folder / (name + ".yaml"), diagnostics);
  return break_even(platform, Topology(platform), dtype);
}

/// Precondition: one processor and one storage.
BreakEven row_of_text(const std::string& text) {
  const auto [platform, messages] = test::read_text(text);
  CHECK(messages == test::Messages{});
  const auto rows = break_even(platform, Topology(platform));
  REQUIRE(rows.size() == 1);
  return rows[0];
}

}  // namespace

TEST_CASE("a V100 may recompute thousands of FLOPs for every byte over PCIe") {
  const auto rows = rows_of("v100-sxm2-host");
  REQUIRE(rows.size() == 1);
  // 15.7e12 / 12.3e9 = 1276.4228 FLOP per byte each way.
  CHECK(rows[0].time == FlopsPerByte{2'552'846});
  CHECK(to_text(rows[0].time) == "2553 FLOP/B");
  // 15.7e12 FLOP/s x 2 x 10 us.
  CHECK(rows[0].per_copy == Flops{314'000'000});
  CHECK_FALSE(rows[0].energy.has_value());  // neither host memory nor PCIe has one
}

TEST_CASE("on an nRF52840 almost everything is cheaper to recompute than to page") {
  const auto rows = rows_of("nrf52840");
  REQUIRE(rows.size() == 1);
  // SPI takes 4 MB/s either way, less than the card: 6.37e6 / 4e6 = 1.5925, twice, each rounded up to
  // thousandths.
  CHECK(rows[0].time == FlopsPerByte{1593 + 1593});
  CHECK(to_text(rows[0].time) == "3.186 FLOP/B");
  // 6.37e6 FLOP/s x (109 + 113) us = 1414.14.
  CHECK(rows[0].per_copy == Flops{1414});
  // (71.5 + 74.3) nJ/B / (11 mW / 6.37 MFLOP/s = 1.726845 nJ/FLOP) = 84.4315.
  CHECK(rows[0].energy == FlopsPerByte{84'431});
}

TEST_CASE("powers stand for energies, on the way too") {
  const BreakEven row = row_of_text(R"(platform: p
memories:
  ram: {capacity: 1 MB}
  sd: {capacity: 1 GB, read: {bandwidth: 5 MB/s}, write: {bandwidth: 4 MB/s}, power: {idle: 0 W, active: 200 mW}}
processors: {cpu: {memory: ram, compute: {fp32: 10 MFLOP/s}, energy_per_flop: 2 nJ/FLOP}}
links: {spi: {between: [ram, sd], energy: 5 nJ/B}}
)");
  CHECK(row.time == FlopsPerByte{4'500});  // 10 / 4 + 10 / 5
  // Out 0.2 W / 4 MB/s = 50 nJ/B, in 40 nJ/B, the link 5 nJ/B each time: 100 / 2.
  CHECK(row.energy == FlopsPerByte{50'000});
}

TEST_CASE("erasing counts, in time and in what draws power meanwhile") {
  const BreakEven row = row_of_text(R"(platform: p
memories:
  ram: {capacity: 1 MB}
  flash:
    capacity: 1 MB
    erase: {block: 4 KiB, time: 20 ms}
    read: {bandwidth: 800 kB/s, energy: 2 nJ/B}
    write: {bandwidth: 200 kB/s, energy: 50 nJ/B}
processors: {cpu: {memory: ram, compute: {fp32: 10 MFLOP/s}, energy_per_flop: 2 nJ/FLOP}}
links: {spi: {between: [ram, flash], power: {idle: 0 W, active: 1 mW}}}
)");
  // 10e6 x (1 / 200e3 + 1 / 800e3 + 20e-3 / 4096) = 50 + 12.5 + 48.828.
  CHECK(row.time == FlopsPerByte{111'328});
  // 52 nJ of the flash; the link 1 mW x (5 + 1.25 + 4.8828) us = 11.1328 nJ; / 2 nJ.
  CHECK(row.energy == FlopsPerByte{31'566});
}

TEST_CASE("break-even is printed to three digits or more, rounded") {
  CHECK(to_text(FlopsPerByte{84'567}) == "84.6 FLOP/B");
  CHECK(to_text(FlopsPerByte{99'949}) == "99.9 FLOP/B");
  CHECK(to_text(FlopsPerByte{99'950}) == "100 FLOP/B");
  CHECK(to_text(FlopsPerByte{9'999}) == "9.999 FLOP/B");
  CHECK(to_text(FlopsPerByte{2'552'500}) == "2553 FLOP/B");
}

TEST_CASE("what idles anyway is not a copy's, and a longer step lets everything idle for longer") {
  const BreakEven row = row_of_text(R"(platform: p
memories:
  ram: {capacity: 1 MB, power: {idle: 10 mW, active: 20 mW}}
  sd: {capacity: 1 GB, read: {bandwidth: 5 MB/s}, write: {bandwidth: 4 MB/s}, power: {idle: 30 mW, active: 200 mW}}
processors: {cpu: {memory: ram, compute: {fp32: 10 MFLOP/s}, power: {idle: 5 mW, active: 40 mW}}}
links: {spi: {between: [ram, sd], power: {idle: 5 mW, active: 25 mW}}}
)");
  // Copies: (170 + 20) mW x (1/4 + 1/5) us/B = 85.5 nJ/B. A FLOP: idle 50 mW, the processor 35 mW and
  // its memory 10 mW above that, / 10 MFLOP/s = 9.5 nJ.
  CHECK(row.energy == FlopsPerByte{9'000});
}

TEST_CASE(
    "copies that take nothing by what is stated are told from those of which nothing is known") {
  const auto rows = rows_of("nrf52840-storages");  // sd, flash, psram
  REQUIRE(rows.size() == 3);
  CHECK(rows[1].energy == FlopsPerByte{});
  CHECK_FALSE(rows[2].energy.has_value());
}

TEST_CASE("no row without a rate, without a way, or for another processor's memory") {
  CHECK(rows_of("efr32mg24").empty());  // states int8 alone, and no storage
  CHECK(rows_of("stm32u575").size() == 1);
  CHECK(rows_of("stm32u575", DType::int8).size() == 1);
  const auto rows = rows_of("dgx-1-v100");
  CHECK(rows.size() == 8);  // each GPU and host memory
}
