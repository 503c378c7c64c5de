#include "scenario/run/claim_check.hpp"

#include "plan/file/plan_file.hpp"
#include "report/run/run_notes.hpp"
#include "support/oracles.hpp"
#include "support/temporary_folder.hpp"

#include <functional>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using Words = std::vector<std::string>;

/// Two stages of 2 ms forth and 4 ms back, 12 ms in all, that keep 4 B each.
Scenario two_stage_scenario() {
  return test::scenario_of(
      "platform: p\nmemories:\n  hbm: {capacity: 100 B}\nprocessors:\n  gpu: {memory: hbm}\n",
      "workload: w\nchain:\n  - {repeat: 2, items: [{name: 's{i}', forward: 2 ms, backward: 4 ms, "
      "output: 1 B, saved: 4 B}]}\n",
      "none");
}

/// The run of what `none` plans, read from a file that says something else of it.
RunResult from_file(const std::function<void(Plan&)>& change) {
  const Scenario scenario = two_stage_scenario();
  RunResult planned = run(scenario)[0];
  change(planned.plan);
  const test::TemporaryFolder folder;
  const auto path = folder / "plan.json";
  write_plan(planned.plan, planned.workload_as_run, scenario.platform, path);
  return run_plan_file(scenario, path);
}

}  // namespace

TEST_CASE("what a file claims of its plan is held against the measurement") {
  const RunResult same = from_file([](Plan&) {});
  CHECK(same.metrics.makespan == Time{12'000'000'000});
  CHECK(check_claims(same).differing == Words{});
  CHECK(is_as_claimed(same));

  const RunResult shorter = from_file([](Plan& p) { p.claims.makespan = Time{9'000'000'000}; });
  CHECK(check_claims(shorter).differing == Words{"makespan: claimed 9 ms, measured 12 ms"});
  CHECK_FALSE(is_as_claimed(shorter));
}

TEST_CASE("a bound that a file states is violated by a run that does better") {
  // The plan itself shows that one takes 12 ms and not 15.
  const RunResult violated = from_file([](Plan& p) {
    p.claims = {};
    p.bounds.makespan = Time{15'000'000'000};
    p.bounds.peak = {{MemoryId{0}, Bytes{80}}};
  });
  const Words differing = check_claims(violated).differing;
  REQUIRE(differing.size() == 2);
  CHECK(differing[0] == "makespan: claimed to be at least 15 ms in every plan, measured 12 ms");
  CHECK(
      differing[1].starts_with("peak of hbm: claimed to be at least 80 B in every plan, measured"));
  CHECK_FALSE(is_as_claimed(violated));
  CHECK_FALSE(violated.bounds.makespan);
  CHECK(violated.bounds.peak.empty());
}

TEST_CASE("bounds of a file are told as what the file claims") {
  const RunResult lower = from_file([](Plan& p) {
    p.claims.optimal = true;
    p.bounds = {};
    p.bounds.makespan = Time{10'000'000'000};
  });
  CHECK(is_as_claimed(lower));
  CHECK(bound_notes(lower) ==
        Words{"the file claims that no schedule of its kind takes less than 10 ms; this one takes "
              "20 % more",
              "the file claims that it is the best of its kind"});
  // It takes 12 ms: a picosecond more than the bound is no 0 %.
  const RunResult near = from_file([](Plan& p) {
    p.bounds = {};
    p.bounds.makespan = Time{11'999'999'999};
  });
  CHECK(bound_notes(near)[0] ==
        "the file claims that no schedule of its kind takes less than 12 ms; this one takes less "
        "than 0.01 % more");
}

TEST_CASE("a policy's own claims decide nothing about a run") {
  const RunResult planned = run(two_stage_scenario())[0];
  CHECK(is_as_claimed(planned));
  CHECK(bound_notes(planned) == Words{"no schedule of its kind takes less time"});
}

}  // namespace plimsoll
