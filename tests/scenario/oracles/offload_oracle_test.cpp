// The known optima of offload on small chains, through the formats that users see: a scenario in
// YAML in, the result's JSON out.
#include "plan/file/plan_file.hpp"
#include "support/oracles.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::chain_of;
using test::gpu_of;
using test::json;
using test::oracle;
using test::run_scenario;

json run_with_budget(const json& instance, std::int64_t budget, const std::string& policy,
                     const std::string& more = "") {
  return run_scenario(test::platform_yaml(gpu_of(instance, std::nullopt)),
                      test::chain_yaml(chain_of(instance)),
                      fmt::format("{{name: {}, budget: {} B{}}}", policy, budget, more));
}

/// `expected` is a makespan, or null where no schedule fits.
void check_makespan(const json& result, const json& expected) {
  if (expected.is_null()) {
    CHECK(result.at("status") == "infeasible");
    return;
  }
  REQUIRE(result.at("status") == "ok");
  CHECK(result.at("makespan_s") == expected.get<double>());
  CHECK(result.at("claims").at("makespan_s") == result.at("makespan_s"));
}

void check_budget(const json& instance, std::int64_t budget, const json& expected) {
  const json& optimum = expected.at("optimal_makespan");
  const json exact = run_with_budget(instance, budget, "offload/exact");
  check_makespan(exact, optimum);
  if (!optimum.is_null()) CHECK(exact.at("claims").at("optimal") == true);
  for (const char* policy : {"offload/greedy", "offload/dynamic", "offload/exact"}) {
    INFO(policy);
    const json result = run_with_budget(instance, budget, policy);
    if (optimum.is_null()) {
      CHECK(result.at("status") == "infeasible");
      continue;
    }
    REQUIRE(result.at("status") == "ok");
    CHECK(result.at("makespan_s") >= optimum.get<double>());
    CHECK(result.at("memories").at("hbm").at("peak_requested_bytes") <= budget);
    CHECK(result.at("claims").at("makespan_s") == result.at("makespan_s"));
    // What is proven to be the best is its own bound.
    const bool is_exact = result.at("policy") == "offload/exact";
    CHECK(result.at("bounds").at("makespan_s") ==
          (is_exact ? optimum : expected.at("lower_bound_divisible_lp")).get<double>());
    if (!is_exact)
      CHECK(result.at("claims").at("model_makespan_s") ==
            expected.at("fluid_timing").get<double>());
  }
}

}  // namespace

TEST_CASE("offload oracles: optimum, bound and fluid timing under the known limits") {
  const json data = oracle("offload_chain.json");
  for (const json& it : data.at("instances")) {
    INFO(it.at("name"));
    check_budget(it.at("instance"), it.at("instance").at("M"), it.at("expected"));
  }
}

TEST_CASE("offload oracles: the optimum of every set that is given") {
  const json data = oracle("offload_chain.json");
  for (const json& it : data.at("instances"))
    for (const auto& [key, expected] : it.at("expected").at("optimal_makespan_by_set").items()) {
      INFO(it.at("name") << " " << key);
      std::string set;
      for (const char c : key == "none" ? std::string() : key)
        set += c == ' ' ? std::string(", ") : std::string(1, c);
      const json& instance = it.at("instance");
      const std::int64_t limit = instance.at("M");
      check_makespan(run_with_budget(instance, limit, "offload/exact", ", set: [" + set + "]"),
                     expected);
      // Stages go by their names as well: s1, s2, s3.
      std::string named;
      for (const char c : set)
        named += c >= '0' && c <= '9' ? std::string("s") + c : std::string(1, c);
      check_makespan(run_with_budget(instance, limit, "offload/exact", ", set: [" + named + "]"),
                     expected);
    }
}

TEST_CASE("offload oracles: the smallest feasible budget") {
  const json data = oracle("offload_chain.json");
  for (const json& it : data.at("instances")) {
    const std::int64_t least = it.at("expected").at("min_feasible_limit");
    for (const char* policy : {"offload/greedy", "offload/dynamic", "offload/exact"}) {
      INFO(it.at("name") << " " << policy);
      const json below = run_with_budget(it.at("instance"), least - 1, policy);
      REQUIRE(below.at("status") == "infeasible");
      CHECK(below.at("infeasible").at("smallest_budget_bytes") == least);
      CHECK(run_with_budget(it.at("instance"), least, policy).at("status") == "ok");
    }
  }
}

TEST_CASE("offload oracles: the homogeneous sweep over budgets") {
  const json sweep = oracle("offload_chain.json").at("sweep");
  for (const json& row : sweep.at("rows")) {
    INFO("M = " << row.at("M"));
    check_budget(sweep.at("instance"), row.at("M"), row);
  }
}

TEST_CASE(
    "copies of one direction share it on a half-duplex fair link that is faster the other way") {
  // Four times 10 MB at 1 GB/s out are 40 ms, however many are under way; back, at 100 GB/s, 0.4
  // ms.
  const std::string platform =
      "platform: p\nmemories: {hbm: {capacity: unlimited}, dram: {capacity: unlimited}}\n"
      "processors: {gpu: {memory: hbm}}\n"
      "links: {pcie: {between: [hbm, dram], bandwidth: {to_dram: 1 GB/s, to_hbm: 100 GB/s}, "
      "duplex: half, sharing: fair}}\n";
  std::string chain = "workload: w\ninput: 0 B\nchain:\n";
  for (int s = 1; s <= 6; ++s)
    chain += "  - {name: s" + std::to_string(s) +
             ", forward: 0 s, backward: 0 s, output: 0 B, saved: " + (s <= 4 ? "10 MB" : "1 MB") +
             "}\n";
  const json run = test::run_scenario(platform, chain, "{name: offload/prefix, stages: 4}");
  CHECK(run.at("makespan_s") == 0.0404);
}

TEST_CASE("what is proven of a plan is not proven of it on another link") {
  const auto scenario = [](const char* bandwidth) {
    return test::scenario_of(
        fmt::format("platform: p\nmemories:\n  hbm: {{capacity: 15 B}}\n  dram: {{capacity: "
                    "unlimited}}\nprocessors:\n  gpu: {{memory: hbm}}\nlinks:\n  pcie: {{between: "
                    "[hbm, dram], bandwidth: {}}}\n",
                    bandwidth),
        "workload: w\nchain:\n  - {repeat: 6, items: [{name: 's{i}', forward: 2 ms, backward: 4 "
        "ms, "
        "output: 1 B, saved: 4 B}]}\n",
        "{name: offload/exact, budget: 15 B}");
  };
  const RunResult planned = run(scenario("1 kB/s"))[0];
  REQUIRE(planned.claims.optimal == true);
  const test::TemporaryFolder folder;
  const auto path = folder / "plan.json";
  write_plan(planned.plan, planned.workload_as_run, scenario("1 kB/s").platform, path);
  const RunResult same = run_plan_file(scenario("1 kB/s"), path);
  CHECK(same.claims.optimal == true);
  CHECK(same.bounds.makespan == planned.bounds.makespan);
  for (const char* bandwidth : {"100 kB/s", "500 B/s"}) {
    const RunResult other = run_plan_file(scenario(bandwidth), path);
    CHECK(other.metrics.makespan != planned.metrics.makespan);
    CHECK_FALSE(other.claims.optimal);
    CHECK_FALSE(other.bounds.makespan);
  }
}

}  // namespace plimsoll
