// Memories that are placed ahead of time (allocator `static`).
#include "support/chains.hpp"
#include "support/placed_runs.hpp"
#include "support/policies.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::Played;

/// The pinwheel of docs/placement.md as three operators: a makes left and bottom, b reads bottom and
/// makes top and centre, c reads top and makes right. In each 9 B are alive; nobody reads left,
/// centre and right, which go right after their operators.
Workload pinwheel() {
  return test::workload_of(
      "workload: pinwheel\ngraph:\n  operators:\n"
      "    - {name: a, time: 1 s, outputs: {left: 6 B, bottom: 3 B}}\n"
      "    - {name: b, inputs: [bottom], time: 1 s, outputs: {top: 3 B, centre: 3 B}}\n"
      "    - {name: c, inputs: [top], time: 1 s, outputs: {right: 6 B}}\n");
}

Platform with(const std::string& capacity, const std::string& allocator) {
  return test::platform_of(
      fmt::format("platform: p\nmemories:\n  hbm: {{capacity: {}, allocator: {}}}\n"
                  "processors:\n  gpu: {{memory: hbm}}\n",
                  capacity, allocator));
}

}  // namespace

TEST_CASE("a placement that needs more than the load") {
  // By size, of equal ones the later first: right and left at 0 (they never meet), centre at 0, top
  // above right at 6, and bottom above left and top at 9: up to 12 B. The pinwheel fits into 9.
  const Played greedy =
      test::play_policy("none", pinwheel(), with("12 B", "{static: {method: greedy-by-size}}"));
  REQUIRE(greedy.execution.status == RunStatus::ok);
  CHECK(greedy.execution.makespan == test::seconds(3));
  CHECK(greedy.execution.memories[0].peak == MemoryUse{Bytes{9}, Bytes{9}, Bytes{12}});
  CHECK(greedy.metrics.memories[0].fragmentation == Approx(0.25));
  const Played exact =
      test::play_policy("none", pinwheel(), with("9 B", "{static: {method: exact}}"));
  REQUIRE(exact.execution.status == RunStatus::ok);
  CHECK(exact.execution.memories[0].peak == MemoryUse{Bytes{9}, Bytes{9}, Bytes{9}});
}

TEST_CASE("a placement that exceeds the capacity ends the run before it begins") {
  const Played it =
      test::play_policy("none", pinwheel(), with("11 B", "{static: {method: greedy-by-size}}"));
  REQUIRE(it.execution.status == RunStatus::oom);
  REQUIRE(it.execution.oom);
  const OutOfMemory& oom = *it.execution.oom;
  CHECK(oom.step == "placing 5 buffers and workspaces ahead of time");
  CHECK(oom.memory == "hbm");
  CHECK(oom.asked == Bytes{12});
  CHECK(oom.free == Bytes{11});
  REQUIRE(oom.placement);
  CHECK(oom.placement->method == "greedy-by-size");
  CHECK(oom.placement->load == Bytes{9});
  CHECK(oom.placement->end == Bytes{12});
  CHECK(oom.placement->lower_bound == Bytes{9});
  CHECK(it.execution.makespan == Time{});
  CHECK_FALSE(it.metrics.makespan);
  // A claim that rests on reuse is not made: without it the five need 21 B.
  CHECK_FALSE(it.plan.claims.makespan);
  CHECK(test::play_policy("none", pinwheel(), with("21 B", "static")).plan.claims.makespan);
}

TEST_CASE("what exact accounting refuses is told as that tells it") {
  const Played it = test::play_policy("none", pinwheel(), with("8 B", "static"));
  const Played ideal = test::play_policy("none", pinwheel(), with("8 B", "ideal"));
  REQUIRE(it.execution.status == RunStatus::oom);
  REQUIRE(ideal.execution.status == RunStatus::oom);
  CHECK(it.execution.oom->step == ideal.execution.oom->step);
  CHECK(it.execution.oom->asked == Bytes{9});
  CHECK(it.execution.oom->free == Bytes{8});
  CHECK_FALSE(it.execution.oom->placement);
}

TEST_CASE("placed blocks are aligned, and a limit of the plan holds for the placement") {
  // In units of 4 B: left and right 2, the others 1. As the pinwheel has them: load 3 units, of
  // which the exact search needs no more: 12 B.
  const std::string exact = "{static: {method: exact, alignment: 4 B}}";
  const Played it = test::play_policy("none", pinwheel(), with("unlimited", exact));
  REQUIRE(it.execution.status == RunStatus::ok);
  CHECK(it.execution.memories[0].peak == MemoryUse{Bytes{9}, Bytes{12}, Bytes{12}});
  Plan plan = it.plan;
  plan.claims = {};
  plan.limits.emplace_back(MemoryId{0}, Bytes{11});
  const Played limited = test::play(plan, pinwheel(), with("unlimited", exact));
  REQUIRE(limited.execution.status == RunStatus::oom);
  REQUIRE(limited.execution.oom->placement);
  CHECK(limited.execution.oom->placement->end == Bytes{12});
  CHECK(limited.execution.oom->capacity == Bytes{11});
}

TEST_CASE("more blocks than can be placed are refused") {
  // Each stage keeps 1 B: with 16,400 stages that is above 16,384.
  test::Chain chain;
  chain.output.push_back(0);
  for (int stage = 0; stage < 16'400; ++stage) {
    chain.forward.push_back(1);
    chain.backward.push_back(1);
    chain.output.push_back(0);
    chain.saved.push_back(1);
  }
  const Workload workload = test::chain_workload(chain);
  const Platform platform = with("unlimited", "static");
  const Topology topology(platform);
  const Plan plan = test::planned("none", workload, platform);
  const Program program = lower(plan, workload, platform, topology);
  CHECK_THROWS_AS(execute(program), InputError);
}

TEST_CASE("sizes beyond those of placements are refused") {
  // Two buffers of 2^59 + 1 B, one after the other: 2 B above 2^60 in all.
  const Workload workload = test::workload_of(
      "workload: large\ngraph:\n  operators:\n"
      "    - {name: a, time: 1 s, outputs: {x: 576460752303423489 B}}\n"
      "    - {name: b, time: 1 s, outputs: {y: 576460752303423489 B}}\n");
  const Platform platform = with("unlimited", "static");
  const Topology topology(platform);
  const Plan plan = test::planned("none", workload, platform);
  const Program program = lower(plan, workload, platform, topology);
  CHECK_THROWS_AS(execute(program), InputError);
}

}  // namespace plimsoll
