// What `expect:` holds a run to. The runs are those of two_stages(): `none` takes 45 ms for a batch
// of 4 and peaks at 11 MiB (see json_report_test.cpp).
#include "scenario/run/bounds.hpp"

#include "report/run_scenario.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

std::vector<BoundCheck> checks(const std::string& expect, const std::string& capacity = "16 MiB",
                               const std::string& policy = "none") {
  const std::string power = ", power: {idle: 1 W, active: 3 W}";
  const RanScenario ran =
      run_scenario(two_stages(capacity, policy, power) + "expect: {" + expect + "}\n");
  return check_bounds(*ran.scenario.expect, ran.results.front());
}

/// What does not hold, a line each.
std::string broken(const std::string& expect, const std::string& capacity = "16 MiB",
                   const std::string& policy = "none") {
  std::string text;
  for (const BoundCheck& check : checks(expect, capacity, policy))
    if (!check.holds) text += check.words + "\n";
  return text;
}

TEST_CASE("bounds hold up to their border") {
  CHECK(broken("makespan: {at_most: 45 ms}") == "");
  CHECK(broken("makespan: {at_least: 45 ms}") == "");
  CHECK(broken("makespan: {equals: 45 ms}") == "");
  CHECK(broken("makespan: {at_most: 44999999999 ps}") ==
        "makespan is 45 ms (above by 1 ps), expected at most 45 ms\n");
  CHECK(broken("makespan: {at_least: 46 ms}") == "makespan is 45 ms, expected at least 46 ms\n");
  CHECK(broken("makespan: {equals: 45000000001 ps}") ==
        "makespan is 45 ms (below by 1 ps), expected 45 ms\n");
}

TEST_CASE("every metric has its value") {
  // 4 / 45 ms = 88.8 samples a second; busy all the time; 3 W x 45 ms = 135 mJ, a quarter of it a
  // sample. What is kept: 4 + 3 MiB.
  CHECK(broken("peak_memory: {sram: {equals: 11 MiB}, sd: {equals: 0 B}}, period: {equals: 45 ms},"
               "throughput: {at_least: 88.8, at_most: 88.9 samples/s}, overhead: {equals: 0},"
               "bubble: {cpu: {equals: 0}}, energy: {equals: 135 mJ},"
               "energy_per_sample: {equals: 33.75 mJ}, saved: {equals: 7 MiB}") == "");
  CHECK(broken("peak_memory: {sram: {at_most: 10 MiB}}, overhead: {at_least: 1 %},"
               "bubble: {cpu: {at_least: 1 %}}, saved: {at_most: 6 MiB}, energy: {at_most: 1 J}") ==
        "peak of sram is 11 MiB, expected at most 10 MiB\n"
        "overhead is 0 %, expected at least 1 %\n"
        "bubble of cpu is 0 %, expected at least 1 %\n"
        "saved bytes is 7 MiB, expected at most 6 MiB\n");
  // remat/every-stage: one forward of 10 ms again, of 45 ms (text_report_test.cpp): 22.2 %.
  CHECK(broken("overhead: {at_least: 22 %, at_most: 22.3 %}", "16 MiB", "remat/every-stage") == "");
}

TEST_CASE("where no status is written, ok is expected") {
  CHECK(broken("saved: {equals: 7 MiB}", "8 MiB") == "status is oom, expected ok\n");
  CHECK(broken("status: oom", "8 MiB") == "");
  CHECK(broken("status: oom") == "status is ok, expected oom\n");
}

TEST_CASE("a metric that the run does not have does not hold") {
  CHECK(broken("status: oom, makespan: {at_most: 1 s}", "8 MiB") ==
        "the run has no makespan (status oom), expected at most 1 s\n");
  CHECK(broken("smallest_budget: {at_most: 1 GiB}") ==
        "the run has no smallest budget (status ok), expected at most 1 GiB\n");
}

TEST_CASE("an infeasible run is held to its smallest budget") {
  const std::string policy = "{name: offload/greedy, budget: 1 MiB}";
  CHECK(broken("status: infeasible, smallest_budget: {at_least: 2 MiB, at_most: 16 MiB}", "16 MiB",
               policy) == "");
}

TEST_CASE("a bound is told where it stands") {
  const auto all = checks("status: oom, makespan: {at_most: 1 ms}");
  REQUIRE(all.size() == 2);
  // Line 18 of the text begins "expect: {status: oom, makespan: {".
  CHECK(all[0].where.line == all[1].where.line);
  CHECK(all[0].where.column == 18);
  CHECK(all[1].where.column == 33);
}

}  // namespace
}  // namespace plimsoll
