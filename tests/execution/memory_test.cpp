// When memory is taken and given back, what is alive at the peak, and how a run ends without it.
#include "base/dense_id.hpp"
#include "plan/small_chain.hpp"
#include "policy/interface/policy.hpp"
#include "support/chains.hpp"
#include "support/policies.hpp"

#include <random>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::Named;
using test::Played;
using test::seconds;

constexpr MemoryId kHbm{0};

Bytes of(const std::array<Bytes, kTensorClasses>& classes, TensorClass which) {
  return classes[static_cast<std::size_t>(which)];
}

std::string gpu_with(const std::string& keys) {
  return "platform: p\nmemories:\n  hbm: {" + keys +
         "}\n  dram: {capacity: unlimited}\n"
         "processors:\n  gpu: {memory: hbm}\nlinks:\n  bus: {between: [hbm, dram], bandwidth: 1 "
         "B/s}\n";
}

}  // namespace

TEST_CASE("the peak is in the backward, and says what was alive") {
  // a_0 = 1; s1: a 1, saved 3, parameters 5; s2: a 2, saved 4, backward workspace 6.
  //   placed: a_0 1, parameters 5: 6
  //   F1 [0,1): 9   F2 [1,2): 13   B2 [2,4): + delta_2 2, delta_1 1, workspace 6 = 22
  //   B1 [4,6): 6 + saved_1 3 + delta_1 1 + delta_0 1 + parameter gradient 5 = 16
  // The peak is 22 at 2 s: parameters 5, gradients 3, activations 1 (a_0), saved 7, workspace 6.
  const Workload workload = test::workload_of(
      "workload: w\ninput: 1 B\nchain:\n"
      "  - {name: s1, forward: 1 s, backward: 2 s, output: 1 B, saved: 3 B, parameters: 5 B}\n"
      "  - {name: s2, forward: 1 s, backward: 2 s, output: 2 B, saved: 4 B, backward_workspace: 6 "
      "B}\n");
  const Platform platform = test::platform_of(gpu_with("capacity: 30 B, reserved: 4 B"));
  const Played it = test::play_policy("none", workload, platform);
  CHECK(it.peak(kHbm) == 22);
  const MemoryMetrics& hbm = it.metrics.memories[0];
  CHECK(hbm.peak_requested == Bytes{22});
  CHECK(hbm.peak_reserved == Bytes{26});  // with what the platform reserves
  CHECK(hbm.capacity == Bytes{30});
  CHECK(hbm.peak_time == seconds(2));
  CHECK(of(hbm.at_peak, TensorClass::parameter) == Bytes{5});
  CHECK(of(hbm.at_peak, TensorClass::gradient) == Bytes{3});
  CHECK(of(hbm.at_peak, TensorClass::activation) == Bytes{1});
  CHECK(of(hbm.at_peak, TensorClass::saved) == Bytes{7});
  CHECK(of(hbm.at_peak, TensorClass::workspace) == Bytes{6});
  CHECK(of(hbm.at_peak, TensorClass::in_flight) == Bytes{});
  // In place at the end: a_0, parameters and their gradient, delta_0.
  const auto& end = it.execution.memories[0].at_end;
  CHECK(of(end, TensorClass::activation) == Bytes{1});
  CHECK(of(end, TensorClass::parameter) == Bytes{5});
  CHECK(of(end, TensorClass::gradient) == Bytes{6});
  CHECK(of(end, TensorClass::saved) == Bytes{});
  CHECK(of(end, TensorClass::workspace) == Bytes{});
}

TEST_CASE("a copy's destination is in flight until its end") {
  // saved_1 = 3 B comes back [0 ...]: while it is on its way its bytes are in flight. In dram the
  // peak, 3 B, is taken when the copy out starts: all of it in flight.
  const test::Chain chain{{1, 1, 1}, {1, 1, 1}, {0, 0, 0, 0}, {3, 1, 1}, {}, {}};
  const Workload workload = test::chain_workload(chain);
  const Played it = test::play_policy("offload/all", workload, test::one_gpu({}));
  const MemoryRecord& dram = it.execution.memories[1];
  CHECK(dram.peak.requested == Bytes{3});
  CHECK(dram.peak_time == seconds(1));
  CHECK(of(dram.at_peak, TensorClass::in_flight) == Bytes{3});
  CHECK(of(dram.at_peak, TensorClass::saved) == Bytes{});
}

TEST_CASE("memory freed at a time can be taken at that time, and no sooner") {
  // saved 4, all else 0. B2 frees saved_2 at 3; under a limit of 8 nothing waits. With forwards of
  // workspace 4 the limit of 12 just holds: F2 takes 4 + 4 beside saved_1 = 12 at 1, when the
  // workspace of F1 has just been freed.
  const test::Chain chain{{1, 1}, {1, 1}, {0, 0, 0}, {4, 4}, {4, 4}, {0, 0}};
  const Workload workload = test::chain_workload(chain);
  test::OneGpu gpu;
  gpu.capacity = 12;
  const Played it = test::play_policy("none", workload, test::one_gpu(gpu));
  CHECK(it.execution.status == RunStatus::ok);
  CHECK(it.execution.makespan == seconds(4));
  CHECK(it.peak(kHbm) == 12);
  gpu.capacity = 11;
  CHECK(test::play_policy("none", workload, test::one_gpu(gpu)).execution.status == RunStatus::oom);
}

TEST_CASE("operators of no duration take place in rounds of one instant") {
  // All times 0. Forwards leave 2 B each, backwards free them: F1 2, F2 4, B2 and B1 with deltas of
  // 1 B: a_0 1 + 4 + 2 = 7 in B2. All at 0 s, one after the other, as each one's end is seen in the
  // round after its start; a peak of all at once would be more.
  const test::Chain chain{{0, 0}, {0, 0}, {1, 1, 1}, {2, 2}, {}, {}};
  const Played it = test::play_policy("none", test::chain_workload(chain), test::one_gpu({}));
  CHECK(it.execution.makespan == Time{});
  CHECK(it.peak(kHbm) == 7);
  CHECK(it.metrics.processors[0].bubble == 1.0);
}

TEST_CASE("peaks are taken after each start") {
  // Two streams: at 1 s A ends and frees 10 B while B and C start with 10 B each: the frees come
  // first, so 20 B at that time, never 30.
  const Workload workload = test::workload_of(
      "workload: w\ngraph:\n"
      "  - {name: a, outputs: {u: 0 B}, forward: 1 s, backward: 0 s, forward_workspace: 10 B}\n"
      "  - {name: b, inputs: [u], forward: 1 s, backward: 0 s, forward_workspace: 10 B}\n"
      "  - {name: c, inputs: [u], forward: 1 s, backward: 0 s, forward_workspace: 10 B}\n");
  const Platform platform = test::platform_of(
      "platform: p\nmemories:\n  hbm: {capacity: 20 B}\nprocessors:\n"
      "  gpu: {memory: hbm, streams: 2}\n");
  const Named named(workload, platform);
  PlanBuilder builder(workload, platform, "test");
  const LaneId first = builder.stream(ProcessorId{0}), second = builder.stream(ProcessorId{0}, 1);
  builder.compute(first, named.op("a.forward"));
  builder.compute(first, named.op("b.forward"));
  const StepId c = builder.compute(second, named.op("c.forward"));
  for (const char* op : {"c.backward", "b.backward", "a.backward"})
    builder.compute(first, named.op(op));
  const Played it = test::play(builder.finish(), workload, platform);
  CHECK(it.start(c) == seconds(1));
  CHECK(it.peak(kHbm) == 20);
  CHECK(it.execution.memories[0].peak_time == seconds(1));
}

TEST_CASE("out of memory: who asked, how much, what is free, and what fills it") {
  // a_0 1, saved 3, 5, 7; F3 asks for 7 where 1 + 3 + 5 = 9 of 14 are taken.
  const test::Chain chain{{1, 1, 1}, {1, 1, 1}, {1, 1, 1, 1}, {3, 5, 7}, {}, {}};
  test::OneGpu gpu;
  gpu.capacity = 14;
  const Played it = test::play_policy("none", test::chain_workload(chain), test::one_gpu(gpu));
  REQUIRE(it.execution.status == RunStatus::oom);
  REQUIRE(it.execution.oom);
  const OutOfMemory& oom = *it.execution.oom;
  CHECK(oom.step == "s3.forward");
  CHECK(oom.memory == "hbm");
  CHECK(oom.asked == Bytes{7});
  CHECK(oom.free == Bytes{5});
  CHECK(oom.largest_free_block == Bytes{5});
  CHECK(oom.capacity == Bytes{14});
  CHECK(oom.residents == 3);
  REQUIRE(oom.largest.size() == 3);
  CHECK(oom.largest[0].tensor == "s2.saved");
  CHECK(oom.largest[0].bytes == Bytes{5});
  CHECK(oom.largest[0].tensor_class == TensorClass::saved);
  CHECK(oom.largest[1].tensor == "s1.saved");
  CHECK(oom.largest[2].tensor == "input");
  CHECK(of(oom.by_class, TensorClass::saved) == Bytes{8});
  CHECK(of(oom.by_class, TensorClass::activation) == Bytes{1});
  CHECK(it.execution.makespan == seconds(2));
  CHECK_FALSE(it.metrics.makespan);
  CHECK_FALSE(it.metrics.throughput);
}

TEST_CASE("out of memory by fragmentation: enough is free, but not in one piece") {
  // An arena of 12 B: F1 bare leaves a_1 = 4 at [0,4), F2 keep leaves saved_2 = 4 at [4,8), whose
  // start reads a_1; released, a_1 leaves a hole of 4 B. F3 asks for 6: free are 4 + 4.
  const test::Chain chain{{1, 1, 1}, {1, 1, 1}, {0, 4, 0, 0}, {4, 4, 6}, {}, {}};
  const Workload workload = test::chain_workload(chain);
  test::OneGpu gpu;
  gpu.capacity = 12;
  gpu.allocator = "best-fit";
  const Platform platform = test::one_gpu(gpu);
  const Named named(workload, platform);
  PlanBuilder builder(workload, platform, "test");
  const LaneId stream = builder.stream(ProcessorId{0});
  builder.compute(stream, named.op("s1.forward"), 0, Form::bare);
  for (const char* op : {"s2.forward", "s3.forward"}) builder.compute(stream, named.op(op));
  builder.compute(stream, named.op("s3.backward"));
  // s1 runs again, so its first output goes after F2.
  builder.compute(stream, named.op("s1.forward"));
  for (const char* op : {"s2.backward", "s1.backward"}) builder.compute(stream, named.op(op));
  const Plan plan = builder.finish();
  const Played it = test::play(plan, workload, platform);
  REQUIRE(it.execution.status == RunStatus::oom);
  CHECK(it.execution.oom->step == "s3.forward");
  CHECK(it.execution.oom->asked == Bytes{6});
  CHECK(it.execution.oom->free == Bytes{8});
  CHECK(it.execution.oom->largest_free_block == Bytes{4});
  // Counted exactly it fits: a_0 0, saved_2 4, saved_3 6.
  gpu.allocator = "ideal";
  CHECK(test::play(plan, workload, test::one_gpu(gpu)).execution.status == RunStatus::ok);
}

TEST_CASE("what must be there before the first operator may not fit either") {
  const Workload workload = test::workload_of(
      "workload: w\ninput: 3 B\nchain:\n"
      "  - {name: s1, forward: 1 s, backward: 1 s, saved: 1 B, parameters: 9 B}\n");
  const Platform platform = test::platform_of(gpu_with("capacity: 10 B"));
  const Played it = test::play_policy("none", workload, platform);
  REQUIRE(it.execution.status == RunStatus::oom);
  CHECK(it.execution.oom->step == "placing s1.parameters before the first operator");
  CHECK(it.execution.oom->asked == Bytes{9});
  CHECK(it.execution.oom->free == Bytes{7});
  CHECK(it.execution.makespan == Time{});
}

TEST_CASE("the list of residents is cut at ten, their number is not") {
  test::Chain chain;
  chain.output.push_back(1);
  for (int i = 0; i < 13; ++i) {
    chain.forward.push_back(1);
    chain.backward.push_back(1);
    chain.output.push_back(0);
    chain.saved.push_back(1);
  }
  test::OneGpu gpu;
  gpu.capacity = 13;
  const Played it = test::play_policy("none", test::chain_workload(chain), test::one_gpu(gpu));
  REQUIRE(it.execution.status == RunStatus::oom);
  CHECK(it.execution.oom->step == "s13.forward");
  CHECK(it.execution.oom->largest.size() == 10);
  CHECK(it.execution.oom->residents == 13);
}

// va is read by b and goes then: vb may not lie there, vc may.
TEST_CASE("a plan says where in an arena everything lies") {
  const Workload workload = test::workload_of(
      "workload: g\ngraph:\n  - {name: a, time: 1 s, outputs: {va: 2 B}}\n"
      "  - {name: b, inputs: [va], time: 1 s, outputs: {vb: 2 B}}\n"
      "  - {name: c, inputs: [vb], time: 1 s, outputs: {vc: 2 B}}\n"
      "  - {name: d, inputs: [vc], time: 1 s}\n");
  const Platform platform = test::platform_of(gpu_with("capacity: 30 B"));
  Plan plan = test::planned("none", workload, platform);
  plan.claims = {};
  plan.limits = {{kHbm, Bytes{10}}};
  plan.arenas = {{kHbm, Bytes{1}, true}};
  const auto place = [&](std::optional<Bytes> b, std::optional<Bytes> c) {
    const auto made = [&](std::size_t step) {
      return index(plan.list(plan.steps[step].writes).front());
    };
    plan.buffers[made(0)].offset = Bytes{0};
    plan.buffers[made(1)].offset = b;
    plan.buffers[made(2)].offset = c;
  };
  const auto played = [&](std::optional<Bytes> b, std::optional<Bytes> c) {
    place(b, c);
    return test::play(plan, workload, platform);
  };
  const Played good = played(Bytes{8}, Bytes{0});
  CHECK(good.execution.status == RunStatus::ok);
  CHECK_FALSE(good.execution.waited_for_memory);
  CHECK(good.execution.memories[0].peak.reserved == Bytes{10});
  CHECK(played(Bytes{2}, Bytes{4}).execution.memories[0].peak.reserved == Bytes{6});
  const Played without = played(std::nullopt, Bytes{0});
  REQUIRE(without.execution.status == RunStatus::oom);
  CHECK(without.execution.oom->step == "b");
  // One byte is in va: the checker refuses it, and the engine would not find the place free.
  place(Bytes{1}, Bytes{0});
  const Topology topology(platform);
  CHECK(check_plan(plan, workload, platform, topology).size() == 1);
  const Execution unchecked = execute(lower(plan, workload, platform, topology));
  REQUIRE(unchecked.status == RunStatus::oom);
  CHECK(unchecked.oom->step == "b");
}

TEST_CASE("what an arena reserves is what was granted, not what was tried") {
  // a_0 [0,1), saved [1,5). The backward wants delta_0 of 1 B, delta_1 of 2 B and 20 B of workspace
  // of an arena of 12 B: the deltas would fit, the workspace never does, so nothing is granted.
  const test::Chain chain{{1}, {1}, {1, 2}, {4}, {0}, {20}};
  test::OneGpu gpu;
  gpu.capacity = 12;
  gpu.allocator = "best-fit";
  const Played it = test::play_policy("none", test::chain_workload(chain), test::one_gpu(gpu));
  REQUIRE(it.execution.status == RunStatus::oom);
  CHECK(it.execution.memories[0].peak.reserved == Bytes{5});
  CHECK(it.execution.memories[0].peak.allocated == Bytes{5});
  CHECK(it.metrics.memories[0].peak_reserved == Bytes{5});
  CHECK(it.metrics.memories[0].fragmentation == 0.0);
}

// On one stream the checker knows all there is to know of places: what it refuses would end in want of
// memory, and what it lets pass does not.
TEST_CASE("a place is refused exactly where the engine would not find it free") {
  const Workload chain = test::small_chain(3);
  const Platform machine = test::small_machine();
  const Topology topology(machine);
  PlanBuilder builder(chain, machine, "test");
  const LaneId gpu = builder.stream(ProcessorId{0});
  for (const char* name :
       {"s1.forward", "s2.forward", "s3.forward", "s3.backward", "s2.backward", "s1.backward"})
    builder.compute(gpu, test::find_operator(chain, name));
  Plan plan = builder.finish();
  // Every buffer has a place of its own; then some of them are somewhere else, in whole MiB.
  Bytes end;
  for (Buffer& buffer : plan.buffers) {
    buffer.offset = end;
    end += chain[buffer.tensor].bytes;
  }
  plan.limits = {{kHbm, end}};
  plan.arenas = {{kHbm, Bytes{1 << 20}, true}};
  const Plan apart = plan;
  std::mt19937_64 random(5);
  int refused = 0, ran = 0;
  for (int round = 0; round < 2000; ++round) {
    plan.buffers = apart.buffers;
    for (int moved = 0; moved <= round % 3; ++moved) {
      Buffer& buffer = plan.buffers[random() % plan.buffers.size()];
      const auto units =
          static_cast<std::uint64_t>((end - chain[buffer.tensor].bytes).count() >> 20);
      buffer.offset = Bytes{static_cast<std::int64_t>(random() % (units + 1)) << 20};
    }
    const bool is_good = check_plan(plan, chain, machine, topology).empty();
    const Execution execution = execute(lower(plan, chain, machine, topology));
    REQUIRE(is_good == (execution.status == RunStatus::ok));
    (is_good ? ran : refused) += 1;
  }
  CHECK(refused > 100);
  CHECK(ran > 100);
}

}  // namespace plimsoll
