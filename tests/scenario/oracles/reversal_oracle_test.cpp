// The known answers of binomial reversal and of two levels of storage, YAML in, JSON out.
#include "policy/remat/reversal/binomial.hpp"
#include "support/oracles.hpp"
#include "support/sample.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::equal_chain;
using test::json;
using test::oracle;
using test::peak;
using test::run_scenario;

}  // namespace

TEST_CASE("reversal oracles: remat/revolve runs the least number of forwards again") {
  const json data = oracle("revolve.json");
  for (const json& row : data.at("rows")) {
    const std::size_t steps = row.at("steps");
    const std::int64_t advances = row.at("advances");
    INFO(row.dump());
    CHECK(binomial_advances(row.at("steps"), row.at("snapshots")) == advances);
    if (advances > (test::runs_all() ? 500'000 : 20'000))
      continue;  // too long to execute in a test
    const std::string slots = fmt::format("snapshots: {}", row.at("snapshots").get<int>());
    const auto run_with = [&](const std::string& policy) {
      return run_scenario(test::platform_yaml({}), test::chain_yaml(equal_chain(steps)),
                          fmt::format("{{name: {}, {}}}", policy, slots));
    };
    const json result = run_with("remat/revolve");
    // 1 s each: the advances, a kept forward and a backward of every step.
    CHECK(result.at("makespan_s") ==
          static_cast<double>(advances) + 2 * static_cast<double>(steps));
    CHECK(result.at("claims").at("makespan_s") == result.at("makespan_s"));
    CHECK(result.at("claims").at("peak_bytes").at("hbm") == peak(result));
    CHECK(result.at("processors").at("gpu").at("recomputed_ops") == advances);
    if (advances < 100'000)
      CHECK(run_with("remat/mixed").at("processors").at("gpu").at("recomputed_ops") <= advances);
  }
}

TEST_CASE("two-level oracles: remat/two-level takes the least time") {
  const json data = oracle("two_level_checkpoint.json");
  for (const json& row : data.at("rows")) {
    INFO(row.dump());
    REQUIRE(row.at("forward") == 1);
    REQUIRE(row.at("backward") == 1);
    // States of 10 B at 10/write B/s out and 10/read B/s in.
    const std::int64_t write = row.at("write"), read = row.at("read");
    const json result =
        run_scenario(test::platform_yaml({std::nullopt, 10 / write, 10 / read, "ideal", ""}),
                     test::chain_yaml(equal_chain(row.at("n"))),
                     fmt::format("{{name: remat/two-level, ram_slots: {}, storage_slots: {}, "
                                 "storage: dram}}",
                                 row.at("ram").get<int>(), row.at("storage").get<int>()));
    REQUIRE(result.at("status") == "ok");
    CHECK(result.at("makespan_s") == row.at("opt").get<double>());
    CHECK(result.at("claims").at("makespan_s") == result.at("makespan_s"));
    CHECK(result.at("claims").at("peak_bytes").at("hbm") == peak(result));
    if (row.at("storage") == 0)
      CHECK(result.at("links").at("pcie").at("forward_bytes") == 0);
    else
      CHECK(peak(result, "dram") <= 10 * row.at("storage").get<std::int64_t>());
  }
}

}  // namespace plimsoll
