// The closed forms of pipelines that stash weights, through the formats that users see.
#include "support/oracles.hpp"
#include "support/split_pipelines.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {

TEST_CASE("weight version oracles: what microbatches and versions take, and a steady period") {
  // F = 1 s, BW = 2 s, 1 B kept for a microbatch, 100 B of parameters: no idle time means a
  // microbatch every 3 s.
  const test::json data = test::oracle("pipeline_versions.json");
  for (const test::json& row : data.at("rows")) {
    const std::int64_t p = row.at("p"), m = row.at("m");
    const std::string name = row.at("policy");
    INFO(name << " on " << p);
    std::string chain = "workload: w\nchain:\n";
    for (std::int64_t i = 0; i < p; ++i)
      chain += fmt::format(
          "  - {{name: s{}, forward: 1 s, backward: 2 s, saved: 1 B, parameters: 100 B}}\n", i);
    const test::json result =
        test::run_scenario(test::row_yaml(p, "0 s"), chain,
                           fmt::format("{{name: pipeline/{}, microbatches: {}}}", name, m));
    REQUIRE(result.at("status") == "ok");
    CHECK(result.at("period_s") == 3.0);
    CHECK(result.at("claims").at("period_s") == 3.0);
    for (std::int64_t i = 0; i < p; ++i) {
      const std::int64_t expected =
          row.at("in_flight").at(static_cast<std::size_t>(i)).get<int>() +
          100 * row.at("versions").at(static_cast<std::size_t>(i)).get<int>() + 100;
      const std::string memory = fmt::format("hbm{}", i);
      CHECK(test::peak(result, memory) == expected);
      CHECK(result.at("claims").at("peak_bytes").at(memory) == expected);
    }
  }
}

TEST_CASE("a memory limit that no order meets is answered with one that does") {
  // Two devices that keep 3 B of parameters and 3 B of their gradients, and 1 B for the only
  // microbatch that fits: 7 B. Below that the answer is 7 B.
  const std::string chain =
      "workload: w\nchain:\n"
      "  - {name: a, forward: 1 s, backward_input: 1 s, backward_weight: 1 s, saved: 1 B, "
      "parameters: 3 B}\n"
      "  - {name: b, forward: 1 s, backward_input: 1 s, backward_weight: 1 s, saved: 1 B, "
      "parameters: 3 B}\n";
  for (const char* name : {"zb-1p", "zb-2p"}) {
    const auto under = [&](int limit) {
      return test::run_scenario(
          test::row_yaml(2, "0 s"), chain,
          fmt::format("{{name: pipeline/{}, microbatches: 4, memory_limit: {} B}}", name, limit));
    };
    CHECK(under(7).at("status") == "ok");
    CHECK(test::peak(under(7), "hbm0") == 7);
    const test::json none = under(6);
    CHECK(none.at("status") == "infeasible");
    CHECK(none.dump().find("\"smallest_budget_bytes\":7") != std::string::npos);
  }
}

}  // namespace plimsoll
