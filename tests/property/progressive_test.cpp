// Progressive release: by hand on one copy, and against whole release on random chains.
#include "execution/execution.hpp"
#include "plan/build/plan_builder.hpp"
#include "plan/check/plan_checker.hpp"
#include "property/random_chains.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000'000;

/// Three stages; saved_1 leaves as soon as forward 1 has ended and is back for the backwards.
Plan offload_first(const Workload& workload, const Platform& platform, SourceRelease release) {
  PlanBuilder builder(workload, platform, "test");
  const LaneId stream = builder.stream(ProcessorId{0});
  const LaneId out = builder.channel(MemoryId{0}, MemoryId{1});
  const LaneId in = builder.channel(MemoryId{1}, MemoryId{0});
  const TensorId saved = workload.list(workload.operators[0].kept).front();
  builder.compute(stream, OperatorId{0});
  builder.copy(out, saved, 0, release);
  builder.compute(stream, OperatorId{1});
  builder.compute(stream, OperatorId{2});
  const StepId last = builder.compute(stream, OperatorId{3});
  builder.after_end(builder.copy(in, saved, 0, SourceRelease::whole), last);
  builder.compute(stream, OperatorId{4});
  builder.compute(stream, OperatorId{5});
  builder.order_grants(MemoryId{0});
  return builder.finish();
}

Execution run(const Plan& plan, const Workload& workload, const Platform& platform) {
  const Topology topology(platform);
  REQUIRE(check_plan(plan, workload, platform, topology).empty());
  return execute(lower(plan, workload, platform, topology));
}

}  // namespace

TEST_CASE("a waiting allocation starts when enough of the source has left") {
  // saved_1 = 10 B leaves at 2 B/s from t = 1 (forward 1 takes 1 s) to t = 6. Forward 2 (1 B) reads
  // it from t = 1 to t = 3, so nothing is free before t = 3. Forward 3 needs 4 B; of the limit of
  // 12 B saved_1 and saved_2 take 11 B. It wants 3 B more than are free: 4 B have left by t = 3, so
  // it starts then, at once. Whole: it waits for the end of the copy, t = 6.
  const test::Chain chain{{1, 2, 1}, {1, 1, 1}, {0, 0, 0, 0}, {10, 1, 4}, {}, {}};
  test::OneGpu gpu;
  gpu.capacity = 16;
  gpu.bandwidth_out = 2;
  gpu.bandwidth_in = 10;
  *gpu.capacity = 12;
  const Workload workload = test::chain_workload(chain);
  const Platform platform = test::one_gpu(gpu);
  const auto start_of_forward_3 = [&](SourceRelease release) {
    return run(offload_first(workload, platform, release), workload, platform).start[3];
  };
  CHECK(start_of_forward_3(SourceRelease::progressive) == Time{3 * kSecond});
  CHECK(start_of_forward_3(SourceRelease::whole) == Time{6 * kSecond});

  // With saved_3 = 8 B it wants 7 B: they have left after 3.5 s, at t = 4.5.
  const Workload larger =
      test::chain_workload({{1, 2, 1}, {1, 1, 1}, {0, 0, 0, 0}, {10, 1, 8}, {}, {}});
  const Plan plan = offload_first(larger, platform, SourceRelease::progressive);
  CHECK(run(plan, larger, platform).start[3] == Time{4 * kSecond + kSecond / 2});
}

TEST_CASE("progressive release is refused on arenas and fair links") {
  const Workload workload =
      test::chain_workload({{1, 1, 1}, {1, 1, 1}, {0, 0, 0, 0}, {2, 2, 2}, {}, {}});
  test::OneGpu arena, fair;
  arena.allocator = "best-fit";
  fair.link = ", sharing: fair";
  const auto problem = [&](const test::OneGpu& gpu) {
    const Platform platform = test::one_gpu(gpu);
    const Plan plan = offload_first(workload, platform, SourceRelease::progressive);
    return check_plan(plan, workload, platform, Topology(platform)).at(0);
  };
  CHECK(problem(arena) ==
        "copy of s1.saved from hbm to dram: progressive release needs the `ideal` allocator in "
        "`hbm`");
  CHECK(problem(fair) ==
        "copy of s1.saved from hbm to dram: progressive release needs `fifo` links");
}

TEST_CASE("progressive release never ends later than whole release, nor needs more") {
  test::Dice dice(20240608);
  int shorter = 0;
  for (int round = 0; round < 2000; ++round) {
    test::Chain chain;
    chain.output = {0, 0, 0, 0};
    for (int i = 0; i < 3; ++i) {
      chain.forward.push_back(dice(0, 5));
      chain.backward.push_back(dice(0, 5));
      chain.saved.push_back(dice(1, 9));
    }
    test::OneGpu gpu;
    gpu.capacity = dice(10, 30);
    gpu.bandwidth_out = dice(1, 3);
    gpu.bandwidth_in = dice(1, 3);
    const Workload workload = test::chain_workload(chain);
    const Platform platform = test::one_gpu(gpu);
    const auto execution = [&](SourceRelease release) {
      return run(offload_first(workload, platform, release), workload, platform);
    };
    const Execution whole = execution(SourceRelease::whole);
    const Execution fluid = execution(SourceRelease::progressive);
    if (whole.status != RunStatus::ok) continue;
    REQUIRE(fluid.status == RunStatus::ok);
    REQUIRE(fluid.makespan <= whole.makespan);
    REQUIRE(fluid.memories[0].peak.requested <= Bytes{*gpu.capacity});
    REQUIRE(fluid.memories[0].at_end == whole.memories[0].at_end);
    shorter += fluid.makespan < whole.makespan;
  }
  CHECK(shorter > 100);
}

}  // namespace plimsoll
