// The known periods of pipelines without a flush, through the formats that users see: a scenario in
// YAML in, the result's JSON out.
#include "plan/file/plan_file.hpp"
#include "support/oracles.hpp"
#include "support/split_pipelines.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::json;
using test::oracle;
using test::peak;
using test::run_scenario;

std::string stages_yaml(const json& forward, const json& backward) {
  std::string text = "workload: stages\nchain:\n";
  for (std::size_t s = 0; s < forward.size(); ++s)
    text += fmt::format("  - {{name: s{}, forward: {} s, backward: {} s, saved: 1 B}}\n", s,
                        forward.at(s).get<int>(), backward.at(s).get<int>());
  return text;
}

/// With momentum, a third copy of the parameters beside their gradient.
std::string layers_yaml(const json& layers) {
  std::string text = "workload: layers\noptimizer: sgd-momentum\nchain:\n";
  for (std::size_t l = 0; l < layers.size(); ++l)
    text += fmt::format(
        "  - {{name: l{}, forward: {} s, backward: {} s, saved: {} B, parameters: {} B}}\n", l,
        layers.at(l).at("forward").get<int>(), layers.at(l).at("backward").get<int>(),
        layers.at(l).at("saved").get<int>(), layers.at(l).at("parameters").get<int>());
  return text;
}

/// A claim is the measurement.
void check_period(const json& result, double period) {
  REQUIRE(result.at("status") == "ok");
  CHECK(result.at("period_s") == period);
  CHECK(result.at("claims").at("period_s") == result.at("period_s"));
  CHECK(result.at("claims").at("makespan_s") == result.at("makespan_s"));
}

}  // namespace

TEST_CASE("periodic oracles: 1f1b-star at a given period keeps the fewest in flight") {
  const json data = oracle("pipeline_periodic.json");
  for (const json& row : data.at("contiguous")) {
    INFO(row.at("id"));
    const auto devices = static_cast<std::int64_t>(row.at("forward").size());
    const json result = run_scenario(
        test::row_yaml(devices, "0 s"), stages_yaml(row.at("forward"), row.at("backward")),
        fmt::format("{{name: pipeline/1f1b-star, period: {} s}}", row.at("period").get<int>()));
    check_period(result, row.at("period").get<double>());
    CHECK(result.at("claims").at("in_flight") == row.at("in_flight"));
    for (std::size_t d = 0; d < row.at("in_flight").size(); ++d)
      CHECK(peak(result, fmt::format("hbm{}", d)) == row.at("in_flight").at(d));
    // One sample a microbatch: 8 x 4 + 36 of them are played.
    CHECK(result.at("throughput_samples_per_s").get<double>() ==
          Approx(68 / result.at("makespan_s").get<double>()));
  }
}

TEST_CASE("periodic oracles: the least period over all cuts under a limit on memory") {
  const json data = oracle("pipeline_periodic.json").at("partitions");
  const std::string platform = test::row_yaml(data.at("devices"), "0 s");
  const std::string workload = layers_yaml(data.at("layers"));
  for (const json& row : data.at("rows")) {
    INFO(row.dump());
    const auto star = [&](const std::string& partition) {
      return run_scenario(
          platform, workload,
          fmt::format("{{name: pipeline/1f1b-star, partition: {}, memory_limit: {} B}}", partition,
                      row.at("memory").get<std::int64_t>()));
    };
    const json free = star("1f1b-star");
    const json given = star(fmt::format("[{}]", row.at("cut_by_load").get<int>()));
    if (row.at("optimum").is_null()) {
      CHECK(free.at("status") == "infeasible");
      CHECK(given.at("status") == "infeasible");
      continue;
    }
    const json& optimum = row.at("optimum");
    check_period(free, optimum.at("period").get<double>());
    check_period(given, row.at("period_of_cut_by_load").get<double>());
    CHECK(free.at("claims").at("in_flight") == optimum.at("in_flight"));
    for (std::size_t d = 0; d < 2; ++d)
      CHECK(peak(free, fmt::format("hbm{}", d)) == optimum.at("peaks").at(d));
    // 12 s of work on two devices.
    CHECK(free.at("bounds").at("period_s") == 6.0);
    CHECK(free.at("claims").at("optimal") == (optimum.at("period") == 6));
  }
}

TEST_CASE("periodic oracles: two slots on one device beat every contiguous allocation") {
  const json row = oracle("pipeline_periodic.json").at("shared");
  const std::string platform = test::row_yaml(2, "0 s");
  const std::string workload = stages_yaml(row.at("forward"), row.at("backward"));
  const auto periodic = [&](const std::string& keys) {
    return run_scenario(platform, workload, "{name: pipeline/periodic, " + keys + "}");
  };
  const std::string placed = fmt::format("placement: {}", row.at("placement").dump());
  const auto within = [&](std::int64_t limit) {
    return periodic(fmt::format("{}, memory_limit: {} B", placed, limit));
  };
  const json least = within(row.at("peaks").at(0).get<std::int64_t>());
  check_period(least, row.at("period").get<double>());
  CHECK(least.at("claims").at("optimal") == true);
  CHECK(least.at("bounds").at("period_s") == row.at("period"));
  for (std::size_t d = 0; d < 2; ++d)
    CHECK(peak(least, fmt::format("hbm{}", d)) == row.at("peaks").at(d));
  // MadPipe finds that allocation, and the contiguous optimum does not reach it.
  const std::string limit = fmt::format("memory_limit: {} B", row.at("peaks").at(0).get<int>());
  const json found = periodic("partition: madpipe, " + limit);
  check_period(found, row.at("period").get<double>());
  CHECK(found.at("claims").at("in_flight") == least.at("claims").at("in_flight"));
  CHECK(found.at("claims").at("optimal") == true);
  const json contiguous = run_scenario(
      platform, workload, "{name: pipeline/1f1b-star, partition: 1f1b-star, " + limit + "}");
  check_period(contiguous, row.at("contiguous_period").get<double>());
  // The peak of the first device is least: with a byte less it takes longer.
  const json tighter = within(row.at("peaks").at(0).get<std::int64_t>() - 1);
  CHECK(tighter.at("status") == "ok");
  CHECK(tighter.at("period_s").get<double>() > row.at("period").get<double>());
  // One of each slot: two on the first device.
  CHECK(within(1).at("status") == "infeasible");
  CHECK(within(2).at("status") == "ok");
  for (const int cut : {1, 2})
    check_period(periodic(fmt::format("partition: [{}]", cut)),
                 row.at("contiguous_period").get<double>());
}

TEST_CASE("a saved plan of more microbatches than a mini-batch has is read as what it was") {
  const Scenario scenario =
      test::scenario_of(test::row_yaml(2, "0 s"),
                        "workload: stages\nbatch: 6\nchain:\n  - {name: s0, forward: 1 s, "
                        "backward: 2 s, saved: 1 B}\n"
                        "  - {name: s1, forward: 2 s, backward: 2 s, saved: 1 B}\n",
                        "{name: pipeline/1f1b-star, microbatches: 3}");
  const RunResult planned = run(scenario)[0];
  REQUIRE(planned.plan.microbatches > 3);
  CHECK(planned.workload_as_run.microbatch == 2);
  const test::TemporaryFolder folder;
  for (const char* name : {"plan.json", "plan.pb"}) {
    const auto path = folder / name;
    write_plan(planned.plan, planned.workload_as_run, scenario.platform, path);
    const RunResult read = run_plan_file(scenario, path);
    CHECK(read.workload_as_run.microbatch == 2);
    CHECK(read.metrics.period == planned.metrics.period);
    CHECK(read.metrics.makespan == planned.metrics.makespan);
    CHECK(read.metrics.throughput == planned.metrics.throughput);
  }
}

TEST_CASE("periodic oracles: what is infeasible names the least limit that is not") {
  const json data = oracle("pipeline_periodic.json").at("partitions");
  const std::string text = "scenario: s\nplatform:\n" +
                           test::indented(test::row_yaml(data.at("devices"), "0 s")) +
                           "workload:\n" + test::indented(layers_yaml(data.at("layers"))) +
                           "policy: {name: pipeline/1f1b-star, partition: 1f1b-star, "
                           "memory_limit: 16 B}\n";
  const auto results = run(read_scenario(parse_document(text, "s.yaml"), "."));
  REQUIRE(results.front().infeasible);
  // One microbatch in flight everywhere: cut after one layer 7 | 25, after two 14 | 18, after three
  // 22 | 10.
  CHECK(results.front().infeasible->smallest_budget == Bytes{18});
}

}  // namespace plimsoll
