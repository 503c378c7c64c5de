// Why streams stand still, and how runs end that wait for themselves.
#include "support/chains.hpp"
#include "support/policies.hpp"

#include <fstream>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace plimsoll {
namespace {

using test::Named;
using test::Played;
using test::seconds;

Time stall(const Played& it, StallCause cause, std::size_t processor = 0) {
  return it.execution.processors[processor].stall[static_cast<std::size_t>(cause)];
}

constexpr const char* kTwoStreams =
    "platform: p\nmemories:\n  hbm: {capacity: unlimited}\n  dram: {capacity: unlimited}\n"
    "processors:\n  gpu: {memory: hbm, streams: 2}\n"
    "links:\n  bus: {between: [hbm, dram], bandwidth: 1 B/s}\n";

/// Two operators without inputs and one that reads both.
constexpr const char* kFork =
    "workload: w\ngraph:\n"
    "  - {name: a, outputs: {u: 1 B}, forward: 2 s, backward: 1 s}\n"
    "  - {name: b, outputs: {v: 1 B}, forward: 5 s, backward: 1 s}\n"
    "  - {name: c, inputs: [u, v], forward: 1 s, backward: 1 s}\n";

}  // namespace

TEST_CASE("waiting for a copy is a stall by transfer") {
  // saved 2 B over 1 B/s; stage 1 is offloaded. F1 [0,1) F2 [1,2), its copy [1,3), F3 [3,4),
  // B3 [4,5) with the copy back [4,6), B2 [6,7), B1 [7,8): F3 and B2 wait 1 s each.
  const test::Chain chain{{1, 1, 1}, {1, 1, 1}, {0, 0, 0, 0}, {2, 2, 2}, {}, {}};
  const Played it =
      test::play_policy("offload/all", test::chain_workload(chain), test::one_gpu({}));
  CHECK(it.execution.makespan == seconds(8));
  CHECK(stall(it, StallCause::transfer) == seconds(2));
  CHECK(stall(it, StallCause::dependency) == Time{});
  CHECK(stall(it, StallCause::memory) == Time{});
  CHECK(!it.execution.waited_for_memory);
  CHECK(it.metrics.processors[0].busy == seconds(6));
  CHECK(it.metrics.processors[0].span == seconds(8));
  CHECK(it.metrics.processors[0].bubble == 0.25);
}

TEST_CASE("waiting for memory is a stall of its own, after what else was waited for") {
  // F1 [0,1) leaves 4 B, the copy out [1,5) frees them; F2 starts at 1 and reads a_1 until 2. F3
  // needs 4 B more than the limit of 9 has until 5: it waits 3 s for memory. Copy back from 8,
  // when B3 (which nothing holds up) starts: F3 [5,6), B3 [6,7), copy [6,10), B2 [7,8), B1 waits
  // for the copy until 10: 2 s by transfer.
  const test::Chain chain{{1, 1, 1}, {1, 1, 1}, {0, 0, 0, 0}, {4, 4, 4}, {}, {}};
  const Workload workload = test::chain_workload(chain);
  test::OneGpu gpu;
  gpu.capacity = 9;
  const Platform platform = test::one_gpu(gpu);
  const Named named(workload, platform);
  PlanBuilder builder(workload, platform, "test");
  const LaneId stream = builder.stream(ProcessorId{0});
  const TensorId saved = named.tensor("s1.saved");
  builder.compute(stream, named.op("s1.forward"));
  builder.copy(builder.channel(MemoryId{0}, MemoryId{1}), saved, 0, SourceRelease::whole);
  builder.compute(stream, named.op("s2.forward"));
  const StepId f3 = builder.compute(stream, named.op("s3.forward"));
  const StepId b3 = builder.compute(stream, named.op("s3.backward"));
  const StepId in =
      builder.copy(builder.channel(MemoryId{1}, MemoryId{0}), saved, 0, SourceRelease::whole);
  builder.after_end(in, b3);
  builder.compute(stream, named.op("s2.backward"));
  builder.compute(stream, named.op("s1.backward"));
  const Played it = test::play(builder.finish(), workload, platform);
  // B3 [6,7) frees saved_3 at 7, when the copy back may start: [7,11). B2 [7,8) reads a_1 from the
  // copy and so waits until 11 itself: 4 s by transfer.
  CHECK(it.start(f3) == seconds(5));
  CHECK(it.start(in) == seconds(7));
  CHECK(stall(it, StallCause::memory) == seconds(3));
  CHECK(it.execution.waited_for_memory);
  CHECK(stall(it, StallCause::transfer) == seconds(4));
  CHECK(it.execution.makespan == seconds(13));
  CHECK(it.metrics.processors[0].busy + seconds(7) == it.metrics.processors[0].span);
}

TEST_CASE("two streams run side by side; waiting for the other one is a stall by dependency") {
  // a [0,2) on stream 0, b [0,5) on stream 1, c on stream 0 from 5: it waits 3 s. Then c.b, a.b,
  // b.b from 6 to 9: b.b on stream 1 waits from 5 to 7, when c.b is over; a.b, too, runs then.
  const Workload workload = test::workload_of(kFork);
  const Platform platform = test::platform_of(kTwoStreams);
  const Named named(workload, platform);
  PlanBuilder builder(workload, platform, "test");
  const LaneId first = builder.stream(ProcessorId{0}), second = builder.stream(ProcessorId{0}, 1);
  builder.compute(first, named.op("a.forward"));
  builder.compute(second, named.op("b.forward"));
  const StepId c = builder.compute(first, named.op("c.forward"));
  builder.compute(first, named.op("c.backward"));
  builder.compute(first, named.op("a.backward"));
  builder.compute(second, named.op("b.backward"));
  const Played it = test::play(builder.finish(), workload, platform);
  CHECK(it.start(c) == seconds(5));
  CHECK(it.execution.makespan == seconds(8));
  CHECK(stall(it, StallCause::dependency) == seconds(3 + 2));
  // Busy of both streams together: 2 + 5 + 1 + 1 + 1 + 1; the bubble is a share of both.
  CHECK(it.metrics.processors[0].busy == seconds(11));
  CHECK(it.metrics.processors[0].bubble.value() == Approx(1 - 11.0 / 16));
}

TEST_CASE("a wait before the first operator of a stream is no stall") {
  const Workload workload = test::workload_of(kFork);
  const Platform platform = test::platform_of(kTwoStreams);
  const Named named(workload, platform);
  PlanBuilder builder(workload, platform, "test");
  const LaneId first = builder.stream(ProcessorId{0}), second = builder.stream(ProcessorId{0}, 1);
  builder.compute(first, named.op("a.forward"));
  builder.compute(first, named.op("b.forward"));
  builder.compute(second, named.op("c.forward"));
  for (const char* op : {"c.backward", "b.backward", "a.backward"})
    builder.compute(second, named.op(op));
  const Played it = test::play(builder.finish(), workload, platform);
  CHECK(it.execution.makespan == seconds(11));
  CHECK(it.execution.processors[0].stall == std::array<Time, kStallCauses>{});
}

TEST_CASE("a step may wait for the start of one that was issued after it") {
  // b on stream 1 may start when c does, at 2: c reads only u here.
  const Workload workload = test::workload_of(
      "workload: w\ngraph:\n"
      "  - {name: a, outputs: {u: 1 B}, forward: 2 s, backward: 1 s}\n"
      "  - {name: b, outputs: {v: 1 B}, forward: 5 s, backward: 1 s}\n"
      "  - {name: c, inputs: [u], forward: 1 s, backward: 1 s}\n");
  const Platform platform = test::platform_of(kTwoStreams);
  const Named named(workload, platform);
  PlanBuilder builder(workload, platform, "test");
  const LaneId first = builder.stream(ProcessorId{0}), second = builder.stream(ProcessorId{0}, 1);
  builder.compute(first, named.op("a.forward"));
  const StepId b = builder.compute(second, named.op("b.forward"));
  const StepId c = builder.compute(first, named.op("c.forward"));
  builder.after_start(b, c);
  for (const char* op : {"c.backward", "b.backward", "a.backward"})
    builder.compute(first, named.op(op));
  const Played it = test::play(builder.finish(), workload, platform);
  CHECK(it.start(c) == seconds(2));
  CHECK(it.start(b) == seconds(2));
}

TEST_CASE("streams that wait for each other's later steps end as deadlock, with the cycle") {
  const Workload workload = test::workload_of(kFork);
  const Platform platform = test::platform_of(kTwoStreams);
  const Named named(workload, platform);
  PlanBuilder builder(workload, platform, "test");
  const LaneId first = builder.stream(ProcessorId{0}), second = builder.stream(ProcessorId{0}, 1);
  // Stream 0: a, c, ...; stream 1: b, b.backward. a waits for the end of b.backward, b.backward
  // reads what c.backward makes, which comes after a in stream 0.
  const StepId a = builder.compute(first, named.op("a.forward"));
  const StepId b = builder.compute(second, named.op("b.forward"));
  builder.compute(first, named.op("c.forward"));
  builder.compute(first, named.op("c.backward"));
  builder.compute(first, named.op("a.backward"));
  const StepId bb = builder.compute(second, named.op("b.backward"));
  builder.after_end(a, bb);
  const Played it = test::play(builder.finish(), workload, platform);
  CHECK(it.execution.status == RunStatus::deadlock);
  // Of what c.backward waits for in its stream, the one that holds it up is the first, a.forward.
  CHECK(it.execution.cycle ==
        std::vector<std::string>{"a.forward waits for the end of b.backward",
                                 "b.backward reads the output of c.backward",
                                 "c.backward comes after, in its stream, a.forward"});
  CHECK(it.end(b) == seconds(5));
  CHECK(it.execution.makespan == seconds(5));  // the end of the last step that ended
  CHECK_FALSE(it.metrics.makespan);
}

TEST_CASE("a memory that grants in issue order may lock itself out") {
  // saved 4 B each, deltas 1 B (0 B of a_0), 11 B in all. F1 [0,1), copy out of saved_1 [1,5),
  // F2 [1,2), F3 from 5, when it is gone: saved_2 and saved_3 are there. The copy back, issued
  // before B3, wants 4 B where 3 are free; B3 wants only 2 and would free 4, but may not go first.
  const test::Chain chain{{1, 1, 1}, {1, 1, 1}, {0, 1, 1, 1}, {4, 4, 4}, {}, {}};
  const Workload workload = test::chain_workload(chain);
  test::OneGpu gpu;
  gpu.capacity = 11;
  const Platform platform = test::one_gpu(gpu);
  const Named named(workload, platform);
  for (const bool ordered : {true, false}) {
    PlanBuilder builder(workload, platform, "test");
    const LaneId stream = builder.stream(ProcessorId{0});
    const TensorId saved = named.tensor("s1.saved");
    builder.compute(stream, named.op("s1.forward"));
    builder.copy(builder.channel(MemoryId{0}, MemoryId{1}), saved, 0, SourceRelease::whole);
    builder.compute(stream, named.op("s2.forward"));
    const StepId f3 = builder.compute(stream, named.op("s3.forward"));
    const StepId in =
        builder.copy(builder.channel(MemoryId{1}, MemoryId{0}), saved, 0, SourceRelease::whole);
    builder.after_end(in, f3);
    for (const char* op : {"s3.backward", "s2.backward", "s1.backward"})
      builder.compute(stream, named.op(op));
    if (ordered) builder.order_grants(MemoryId{0});
    const Played it = test::play(builder.finish(), workload, platform);
    CHECK(it.execution.status == (ordered ? RunStatus::deadlock : RunStatus::ok));
    if (!ordered) continue;
    CHECK(it.execution.cycle ==
          std::vector<std::string>{
              "copy of s1.saved from dram to hbm waits for memory held until s3.backward",
              "s3.backward may allocate only after copy of s1.saved from dram to hbm"});
    // Memory is part of the cycle: what it lacks is told, too.
    REQUIRE(it.execution.oom);
    CHECK(it.execution.oom->step == "copy of s1.saved from dram to hbm");
    CHECK(it.execution.oom->asked == Bytes{4});
    CHECK(it.execution.oom->free == Bytes{3});
  }
}

TEST_CASE("an eager prefetch too early runs out of memory") {
  // Oracle A2 under its limit of 25 B, which has no answer for distance 2. Both copies back are
  // issued before B3; when B4 is over they hold 9 B more than B3 can spare:
  //   a_0 3 + saved_1 6 + saved_2 3 + saved_3 9 + delta_3 3 = 24, and B3 wants delta_2 = 3 B.
  std::ifstream file(std::string(PLIMSOLL_SOURCE_DIR) + "/tests/oracles/offload_chain.json");
  const nlohmann::json data = nlohmann::json::parse(file);
  const nlohmann::json& it = data.at("instances").at(1);
  REQUIRE(it.at("name") == "A2_one_stall");
  REQUIRE(it.at("expected").at("policy_eager").at("distance_2").is_null());
  const nlohmann::json& x = it.at("instance");
  const test::Chain chain{x.at("f"), x.at("b"), x.at("a"), x.at("abar"), {}, {}};
  test::OneGpu gpu;
  gpu.capacity = x.at("M").get<std::int64_t>();
  gpu.bandwidth_out = x.at("bw_out");
  gpu.bandwidth_in = x.at("bw_in");
  const Played played = test::play_policy("{name: offload/eager, distance: 2}",
                                          test::chain_workload(chain), test::one_gpu(gpu));
  REQUIRE(played.execution.status == RunStatus::oom);
  CHECK(played.execution.oom->step == "s3.backward");
  CHECK(played.execution.oom->asked == Bytes{3});
  CHECK(played.execution.oom->free == Bytes{1});
  CHECK(played.execution.oom->residents == 5);
}

TEST_CASE("the wait in which a run ends out of memory is a stall, up to the end") {
  // F1 [0,1) and F2 [1,2) leave 4 B each; F3 wants 4 B more where 1 of 9 B is free, from 2 on. The
  // copy out [1,5) keeps its source: at 5 nothing is under way. Busy 2 s of 5, 3 s of waiting.
  const Workload workload =
      test::chain_workload({{1, 1, 1}, {1, 1, 1}, {0, 0, 0, 0}, {4, 4, 4}, {}, {}});
  test::OneGpu gpu;
  gpu.capacity = 9;
  const Platform platform = test::one_gpu(gpu);
  const Named named(workload, platform);
  PlanBuilder builder(workload, platform, "test");
  const LaneId stream = builder.stream(ProcessorId{0});
  builder.compute(stream, named.op("s1.forward"));
  builder.copy(builder.channel(MemoryId{0}, MemoryId{1}), named.tensor("s1.saved"), 0,
               SourceRelease::keep);
  for (const char* op : {"s2.forward", "s3.forward", "s3.backward", "s2.backward", "s1.backward"})
    builder.compute(stream, named.op(op));
  const Played it = test::play(builder.finish(), workload, platform);
  CHECK(it.execution.status == RunStatus::oom);
  CHECK(it.execution.makespan == seconds(5));
  CHECK(stall(it, StallCause::memory) == seconds(3));
  CHECK(stall(it, StallCause::transfer) == Time{});
  CHECK(it.metrics.processors[0].busy == seconds(2));
  // What is related to a makespan is not there without one.
  CHECK_FALSE(it.metrics.processors[0].bubble);
  CHECK_FALSE(it.metrics.links[0].busy);
  CHECK(it.metrics.links[0].bytes[0] == Bytes{4});
}

TEST_CASE("the waits in which a run ends as deadlock are stalls by what never came") {
  // a [0,2) on stream 0, b [0,5) on stream 1. c, next on stream 0, waits from 2 to the end at 5:
  // once for an operator, whose input c.backward makes; once for a copy of u, which exists from 2
  // on and waits for c itself.
  const Workload workload = test::workload_of(kFork);
  const Platform platform = test::platform_of(kTwoStreams);
  const Named named(workload, platform);
  for (const bool for_copy : {false, true}) {
    PlanBuilder builder(workload, platform, "test");
    const LaneId first = builder.stream(ProcessorId{0}), second = builder.stream(ProcessorId{0}, 1);
    builder.compute(first, named.op("a.forward"));
    builder.compute(second, named.op("b.forward"));
    const StepId c = builder.compute(first, named.op("c.forward"));
    const StepId copy = builder.copy(builder.channel(MemoryId{0}, MemoryId{1}), named.tensor("u"),
                                     0, SourceRelease::keep);
    for (const char* op : {"c.backward", "a.backward"}) builder.compute(first, named.op(op));
    const StepId bb = builder.compute(second, named.op("b.backward"));
    if (for_copy) builder.after_end(copy, c);
    builder.after_end(c, for_copy ? copy : bb);
    const Played it = test::play(builder.finish(), workload, platform);
    CHECK(it.execution.status == RunStatus::deadlock);
    CHECK(it.execution.makespan == seconds(5));
    CHECK(stall(it, StallCause::dependency) == seconds(for_copy ? 0 : 3));
    CHECK(stall(it, StallCause::transfer) == seconds(for_copy ? 3 : 0));
    CHECK(stall(it, StallCause::memory) == Time{});
  }
}

TEST_CASE("a cycle that no memory would end is a deadlock, whatever else waits for memory") {
  // b wants 10 B of 5 B; u is held until c, but c and d wait for each other's end.
  const Workload workload = test::workload_of(
      "workload: w\ngraph:\n"
      "  - {name: a, outputs: {u: 1 B}, forward: 2 s, backward: 1 s}\n"
      "  - {name: b, outputs: {v: 1 B}, forward: 5 s, backward: 1 s, forward_workspace: 9 B}\n"
      "  - {name: c, inputs: [u], forward: 1 s, backward: 1 s}\n"
      "  - {name: d, inputs: [u], forward: 1 s, backward: 1 s}\n");
  const Platform platform = test::platform_of(
      "platform: p\nmemories:\n  hbm: {capacity: 5 B}\nprocessors:\n"
      "  gpu: {memory: hbm, streams: 3}\n");
  const Named named(workload, platform);
  PlanBuilder builder(workload, platform, "test");
  const LaneId first = builder.stream(ProcessorId{0}), third = builder.stream(ProcessorId{0}, 2);
  builder.compute(first, named.op("a.forward"));
  builder.compute(builder.stream(ProcessorId{0}, 1), named.op("b.forward"));
  const StepId c = builder.compute(first, named.op("c.forward"));
  const StepId d = builder.compute(third, named.op("d.forward"));
  builder.after_end(c, d);
  builder.after_end(d, c);
  for (const char* op : {"d.backward", "c.backward", "b.backward", "a.backward"})
    builder.compute(first, named.op(op));
  const Played it = test::play(builder.finish(), workload, platform);
  CHECK(it.execution.status == RunStatus::deadlock);
  CHECK(it.execution.cycle == std::vector<std::string>{"c.forward waits for the end of d.forward",
                                                       "d.forward waits for the end of c.forward"});
  CHECK_FALSE(it.execution.oom);
}

}  // namespace plimsoll
