// The known orders and bubbles of schedules with split backwards, through the formats that users
// see: a scenario in YAML in, the result's JSON out.
#include "plan/file/plan_file.hpp"
#include "support/oracles.hpp"
#include "support/split_pipelines.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::json;
using test::oracle;
using test::run_scenario;
using test::scenario_of;

/// The compute steps of each device, as the schedule CSV writes them; of stages s0, s1, ...
std::vector<std::string> orders_of(const RunResult& result, std::size_t devices) {
  std::vector<std::string> orders(devices);
  for (const Step& step : result.plan.steps) {
    if (step.kind != StepKind::compute) continue;
    const Operator& op = result.workload_as_run[step.op];
    std::string& order = orders[static_cast<std::size_t>(result.plan[step.lane].processor)];
    const char type = op.phase == Phase::forward          ? 'F'
                      : op.phase == Phase::backward_input ? 'I'
                                                          : 'W';
    order += fmt::format("{}{}{}{}", order.empty() ? "" : ",",
                         op.name.substr(1, op.name.find('.') - 1), type, step.microbatch);
  }
  return orders;
}

}  // namespace

TEST_CASE("split pipeline oracles: orders, makespans and peaks of zb-h1 and zb-v by hand") {
  const json data = oracle("pipeline_split.json");
  for (const json& row : data.at("orders")) {
    if (row.at("policy").is_null()) continue;
    INFO(row.at("id"));
    const int p = row.at("p"), chunks = row.at("chunks");
    const std::string name = row.at("policy");
    const auto results = run(scenario_of(
        test::row_yaml(p, "0 s"), test::split_chain_yaml(p * chunks, {"1 s", "1 s", "1 s", 1, 1}),
        fmt::format("{{name: pipeline/{}, microbatches: {}{}}}", name, row.at("m").get<int>(),
                    name == "zb-v" ? ", order: hand" : "")));
    CHECK(orders_of(results[0], static_cast<std::size_t>(p)) ==
          row.at("csv").get<std::vector<std::string>>());
    const json result = json::parse(json_report(results)).at(0);
    CHECK(result.at("makespan_s") == row.at("makespan").get<double>());
    CHECK(result.at("claims").at("makespan_s") == result.at("makespan_s"));
    for (int i = 0; i < p; ++i)
      CHECK(result.at("memories").at(fmt::format("hbm{}", i)).at("peak_requested_bytes") ==
            row.at("peak_chunks").at(static_cast<std::size_t>(i)));
  }
}

TEST_CASE("split pipeline oracles: published bubbles from published stage times") {
  const json data = oracle("pipeline_split.json");
  for (const json& row : data.at("bubbles")) {
    const int p = row.at("p"), m = row.at("m");
    const auto ms = [&](const char* key) {
      return fmt::format("{:.3f} ms", row.at(key).get<double>());
    };
    // Half of what a stage keeps is for the weight half.
    const std::string workload = test::split_chain_yaml(p, {ms("F"), ms("B"), ms("W"), 2, 1});
    for (const auto& [name, bubble] : row.at("bubble").items()) {
      INFO(row.at("model") << " on " << p << ", " << m << " microbatches: " << name);
      const json result =
          run_scenario(test::row_yaml(p, ms("message")), workload,
                       fmt::format("{{name: pipeline/{}, microbatches: {}}}", name, m));
      REQUIRE(result.at("status") == "ok");
      double span = 0, work = 0;
      for (const json& gpu : result.at("processors")) {
        span = std::max(span, gpu.at("span_s").get<double>());
        work = std::max(work, gpu.at("busy_s").get<double>());
      }
      CHECK(fmt::format("{:.4f}", 1 - work / span) == fmt::format("{:.4f}", bubble.get<double>()));
      CHECK(result.at("claims").at("makespan_s") == result.at("makespan_s"));
    }
  }
}

TEST_CASE("a plan of split backwards is read from its file as one") {
  const Scenario scenario =
      scenario_of(test::row_yaml(2, "0 s"), test::split_chain_yaml(2, {"1 s", "2 s", "3 s", 2, 1}),
                  "{name: pipeline/zb-h1, microbatches: 4}");
  const RunResult planned = run(scenario)[0];
  const test::TemporaryFolder folder;
  const auto path = folder / "plan.json";
  write_plan(planned.plan, planned.workload_as_run, scenario.platform, path);
  const RunResult read = run_plan_file(scenario, path);
  CHECK(read.metrics.makespan == planned.metrics.makespan);
  CHECK(read.workload_as_run.operators.size() == 6);
}

TEST_CASE("a schedule that splits refuses a stage that gives only its whole backward") {
  const std::string workload =
      "workload: w\nchain:\n  - {name: s0, forward: 1 s, backward_input: 1 s, backward_weight: 1 "
      "s, saved: 1 B}\n  - {name: s1, forward: 1 s, backward: 2 s, saved: 1 B}\n";
  try {
    (void)run_scenario(test::row_yaml(2, "0 s"), workload, "pipeline/zb-h1");
    FAIL("no error");
  } catch (const InputError& error) {
    CHECK_THAT(error.what(), Catch::Contains("stage `s1` gives only `backward`"));
  }
}

}  // namespace plimsoll
