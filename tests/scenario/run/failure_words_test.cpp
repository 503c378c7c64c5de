// The words for why a run failed.
#include "scenario/run/failure_words.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

OutOfMemory refusal(Bytes largest_free_block) {
  OutOfMemory oom;
  oom.step = "s2.forward";
  oom.memory = "sram";
  oom.asked = Bytes{3 << 20};
  oom.free = Bytes{1 << 20};
  oom.largest_free_block = largest_free_block;
  oom.capacity = Bytes{6 << 20};
  return oom;
}

TEST_CASE("a run that ended well has no failure") {
  CHECK(why_it_failed({}).empty());
  CHECK(failure_in_words({}).empty());
}

TEST_CASE("a request that was refused says what was free, and the block where that is less") {
  RunResult result;
  result.oom = refusal(Bytes{1 << 20});
  CHECK(why_it_failed(result) == "s2.forward asks for 3 MiB of sram, where 1 MiB of 6 MiB is free");
  result.oom = refusal(Bytes{1 << 19});
  CHECK(failure_in_words(result) ==
        "out of memory: s2.forward asks for 3 MiB of sram, where 1 MiB of 6 MiB is free, in blocks "
        "of at most 512 KiB");
  result.oom->free = Bytes{(3 << 20) - 1};
  CHECK_THAT(why_it_failed(result),
             Catch::StartsWith("s2.forward asks for 3145728 B of sram, where "
                               "3145727 B of 6 MiB is free"));
  result.oom->free = result.oom->largest_free_block = result.oom->capacity = Bytes{2 << 20};
  CHECK(why_it_failed(result) == "s2.forward asks for 3 MiB of sram, which has only 2 MiB");
}

TEST_CASE("a planner that finds nothing says what it could meet, where it could meet anything") {
  RunResult result;
  result.infeasible = Infeasible{"no schedule fits", MemoryId{0}, Bytes{8 << 20}};
  CHECK(failure_in_words(result) ==
        "no plan: no schedule fits; the smallest budget that it could meet is 8 MiB");
  result.infeasible->is_found = true;
  CHECK(why_it_failed(result) ==
        "no schedule fits; its search finds a plan within 8 MiB; less may do");
  result.infeasible->smallest_budget = Bytes::unlimited();
  CHECK(why_it_failed(result) == "no schedule fits");
}

TEST_CASE("a cycle of waits is told by its first ones, whatever memory it lacks") {
  RunResult result;
  result.oom = refusal(Bytes{1 << 20});
  result.cycle = {"a waits for b", "b waits for a"};
  CHECK(failure_in_words(result) == "deadlock: a waits for b; b waits for a");
  result.cycle = {"a waits for b", "b waits for c", "c waits for d", "d waits for e",
                  "e waits for a"};
  CHECK(why_it_failed(result) == "a waits for b; b waits for c; c waits for d; and 2 more");
}

}  // namespace
}  // namespace plimsoll
