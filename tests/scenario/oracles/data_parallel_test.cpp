// Replicas through the formats that users see: a scenario in YAML in, the result's JSON out.
#include "policy/pipeline/schedule/plan_tasks.hpp"
#include "support/oracles.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::json;

const std::string kRing =
    "platform: ring\nmemories: {hbm: {capacity: unlimited}}\nprocessors: {gpu: {memory: hbm}}\n"
    "cluster: {count: 4, topology: ring, link: {name: l, bandwidth: 2 B/s, latency: 1 s}}\n";
const std::string kChain =
    "workload: chain\nbatch: 24\nchain:\n  - {name: s, forward: 2 s, backward: 3 s, saved: 5 B, "
    "parameters: 12 B}\n";

json run_with(const std::string& more) {
  return test::run_scenario(kRing, kChain, "{name: pipeline/1f1b, microbatches: 8" + more + "}");
}

}  // namespace

// Each of four replicas runs 2 of 8 microbatches, of 5 s each; then 6 rounds of 1 s + 3 B / (2
// B/s). The mini-batch has 24 samples, however many replicas there are. A replica holds its
// parameters, their gradient and one microbatch's 5 B; it sends and receives 6 x 3 B.
TEST_CASE("a mini-batch over four replicas") {
  for (const char* how : {"data_parallel", "replicas"}) {
    const json result = run_with(std::string(", ") + how + ": 4");
    CHECK(result.at("status") == "ok");
    CHECK(result.at("makespan_s") == 10 + 6 * 2.5);
    CHECK(result.at("throughput_samples_per_s").get<double>() == Approx(24 / 25.0));
    CHECK(result.at("claims").at("makespan_s") == result.at("makespan_s"));
    for (const char* gpu : {"gpu0", "gpu3"})
      CHECK(result.at("processors").at(gpu).at("busy_s") == 10.0);
    for (const char* hbm : {"hbm0", "hbm3"}) CHECK(test::peak(result, hbm) == 12 + 12 + 5);
    CHECK(result.at("links").at("l0-1").at("forward_bytes") == 18);
    CHECK(result.at("links").at("l3-0").at("forward_bytes") == 18);
  }
}

TEST_CASE("the schedule of a replica is told where one is played, and refused where all are") {
  const auto tasks = [](const std::string& how) {
    const RunResult run = plimsoll::run(test::scenario_of(
        kRing, kChain, "{name: pipeline/1f1b, microbatches: 8, " + how + ": 4}"))[0];
    return tasks_of(run.plan, run.workload_as_run, chain_view(run.workload_as_run), {});
  };
  const Schedule schedule = tasks("data_parallel");
  REQUIRE(schedule.orders.size() == 1);
  CHECK(schedule.orders[0].size() == 4);
  CHECK_THROWS_AS(tasks("replicas"), InputError);
}

TEST_CASE("replicas are refused where they are written") {
  const auto refusal = [](const std::string& more) -> std::string {
    try {
      (void)run_with(more);
    } catch (const InputError& error) {
      return error.what();
    }
    return "(accepted)";
  };
  CHECK(refusal(", data_parallel: 3") ==
        "oracle.yaml:12:63: error: 3 replicas do not divide 8 microbatches; expected as many for "
        "each");
  CHECK(refusal(", replicas: [3, 2]").find("the stages have 5 replicas for 4 devices") !=
        std::string::npos);
}

}  // namespace plimsoll
