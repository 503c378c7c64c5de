// Claims that are made hold, where links and memories make it hard to be certain.
#include "policy/claims/claims.hpp"

#include "support/chains.hpp"
#include "support/policies.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::Named;
using test::Played;
using test::seconds;

/// The plan with its claims, played.
Played play_with_claims(Plan plan, const Workload& workload, const Platform& platform) {
  const Topology topology(platform);
  const ChainView view = chain_view(workload);
  plan.claims = claims_of(plan, Problem{workload, view, platform, topology});
  return test::play(std::move(plan), workload, platform);
}

}  // namespace

TEST_CASE("a copy that waits for one link of its way does not hold up others on the next") {
  // A star. x a -> d holds up_a [0, 10). y a -> c wants up_a and down_c: it waits for up_a. z
  // b -> c, issued after y and ready at 3, finds down_c free: [3, 5). y starts at 10.
  const Platform platform = test::platform_of(
      "platform: star\nmemories:\n  a: {capacity: unlimited}\n  b: {capacity: unlimited}\n"
      "  c: {capacity: unlimited}\n  d: {capacity: unlimited}\nprocessors:\n  gpu: {memory: a}\n"
      "switches: [sw]\nlinks:\n"
      "  la: {between: [a, sw], bandwidth: 1 B/s}\n  lb: {between: [b, sw], bandwidth: 1 B/s}\n"
      "  lc: {between: [c, sw], bandwidth: 1 B/s}\n  ld: {between: [d, sw], bandwidth: 1 B/s}\n");
  const Workload workload = test::workload_of(
      "workload: w\ninputs: {x: 10 B, y: 4 B, z: 2 B}\ngraph:\n"
      "  - {name: o, inputs: [x, y, z], forward: 3 s, backward: 0 s}\n");
  const Named named(workload, platform);
  PlanBuilder builder(workload, platform, "test");
  const StepId f = builder.compute(builder.stream(ProcessorId{0}), named.op("o.forward"));
  const auto copy = [&](const char* tensor, const char* from, const char* to) {
    return builder.copy(builder.channel(named.memory(from), named.memory(to)), named.tensor(tensor),
                        0, SourceRelease::keep);
  };
  copy("x", "a", "d");
  const StepId y = copy("y", "a", "c"), z = copy("z", "b", "c");
  builder.after_end(z, f);
  builder.compute(builder.stream(ProcessorId{0}), named.op("o.backward"));
  const Played it = play_with_claims(builder.finish(), workload, platform);
  CHECK(it.start(z) == seconds(3));
  CHECK(it.start(y) == seconds(10));
  CHECK(it.execution.makespan == seconds(14));
  test::require_claims_hold(it);
}

TEST_CASE("a copy that waits for memory does not hold up others on its link") {
  // Half duplex. Grants of hbm in issue order; the copy back of saved_1 waits for memory, while a
  // later-issued copy of the input the other way finds the link free.
  const test::Chain chain{{1, 1, 5}, {9, 1, 1}, {2, 0, 0, 0}, {4, 4, 4}, {}, {}};
  const Workload workload = test::chain_workload(chain);
  test::OneGpu gpu;
  gpu.capacity = 10;
  gpu.link = ", duplex: half";
  const Platform platform = test::one_gpu(gpu);
  const Named named(workload, platform);
  PlanBuilder builder(workload, platform, "test");
  const LaneId stream = builder.stream(ProcessorId{0});
  const LaneId out = builder.channel(MemoryId{0}, MemoryId{1});
  const LaneId in = builder.channel(MemoryId{1}, MemoryId{0});
  const TensorId saved = named.tensor("s1.saved");
  builder.order_grants(MemoryId{0});
  // F1 [0,1), out [1,5), F2 [1,2), F3 from 5 to 10: 2 + 4 + 4 of 10 B. The copy back may start
  // when F3 does, at 5, but waits for B3 to free saved_3 at 11. The input goes out from 6 (after
  // the copy of saved_1 has ended at 5, and as soon as the link is free) to 7.
  builder.compute(stream, named.op("s1.forward"));
  builder.copy(out, saved, 0, SourceRelease::whole);
  builder.compute(stream, named.op("s2.forward"));
  const StepId f3 = builder.compute(stream, named.op("s3.forward"));
  builder.compute(stream, named.op("s3.backward"));
  const StepId back = builder.copy(in, saved, 0, SourceRelease::whole);
  builder.after_start(back, f3);
  const StepId input = builder.copy(out, named.tensor("input"), 0, SourceRelease::keep);
  builder.compute(stream, named.op("s2.backward"));
  builder.compute(stream, named.op("s1.backward"));
  const Played it = play_with_claims(builder.finish(), workload, platform);
  CHECK(it.start(back) == seconds(11));
  CHECK(it.start(input) == seconds(5));
  test::require_claims_hold(it);
}

TEST_CASE("an arena that rounds up or breaks up its space claims nothing that it cannot hold") {
  // Two stages of 5 B: with blocks of 8 B an arena of 12 B has no room for both; counted exactly
  // they take 10 B.
  const test::Chain chain{{1, 1}, {1, 1}, {0, 0, 0}, {5, 5}, {}, {}};
  const Workload workload = test::chain_workload(chain);
  const Platform platform = test::platform_of(
      "platform: p\nmemories:\n  hbm: {capacity: 12 B, allocator: best-fit, alignment: 8 B}\n"
      "processors:\n  gpu: {memory: hbm}\n");
  const Played it = test::play_policy("none", workload, platform);
  CHECK(it.execution.status == RunStatus::oom);
  CHECK_FALSE(it.plan.claims.makespan);
}

TEST_CASE("claims on arenas hold, and are made where there is room") {
  // 16 B hold both.
  const test::Chain chain{{1, 1}, {1, 1}, {0, 0, 0}, {5, 5}, {}, {}};
  const Platform platform = test::platform_of(
      "platform: p\nmemories:\n  hbm: {capacity: 16 B, allocator: best-fit, alignment: 8 B}\n"
      "processors:\n  gpu: {memory: hbm}\n");
  const Played it = test::play_policy("none", test::chain_workload(chain), platform);
  REQUIRE(it.plan.claims.makespan);
  test::require_claims_hold(it);
  CHECK(it.peak(MemoryId{0}) == 10);
}

}  // namespace plimsoll
