// hybrid/best on the chains whose best offload is known, through the formats that users see: a
// scenario in YAML in, the result's JSON out.
#include "support/oracles.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::json;

json run_best(const json& instance, std::int64_t budget, const std::string& more = "") {
  return test::run_scenario(test::platform_yaml(test::gpu_of(instance, std::nullopt)),
                            test::chain_yaml(test::chain_of(instance)),
                            fmt::format("{{name: hybrid/best, budget: {} B{}}}", budget, more));
}

}  // namespace

TEST_CASE("hybrid/best is at least as good as the best offload and the best recomputation") {
  const json data = test::oracle("offload_chain.json");
  for (const json& it : data.at("instances")) {
    INFO(it.at("name"));
    const json& instance = it.at("instance");
    const std::int64_t budget = instance.at("M");
    const json result = run_best(instance, budget);
    REQUIRE(result.at("status") == "ok");
    CHECK(result.at("policy") == "hybrid/best");
    const double makespan = result.at("makespan_s");
    const json& optimum = it.at("expected").at("optimal_makespan");
    if (!optimum.is_null()) CHECK(makespan <= optimum.get<double>());
    const json exact =
        test::run_scenario(test::platform_yaml(test::gpu_of(instance, std::nullopt)),
                           test::chain_yaml(test::chain_of(instance)),
                           fmt::format("{{name: remat/exact, budget: {} B}}", budget));
    if (exact.at("status") == "ok") CHECK(makespan <= exact.at("makespan_s").get<double>());
    CHECK(result.at("claims").at("makespan_s") == makespan);
    CHECK(result.at("bounds").at("makespan_s") <= makespan);
    CHECK(test::peak(result) <= budget);
    // Byte by byte is no slower than all at the end.
    const json progressive = run_best(instance, budget, ", release: progressive");
    REQUIRE(progressive.at("status") == "ok");
    CHECK(progressive.at("makespan_s") <= makespan);
    CHECK(test::peak(progressive) <= budget);
  }
}

TEST_CASE("hybrid/best has no plan for a budget that nothing fits") {
  const json data = test::oracle("offload_chain.json");
  CHECK(run_best(data.at("instances").at(0).at("instance"), 1).at("status") == "infeasible");
}

}  // namespace plimsoll
