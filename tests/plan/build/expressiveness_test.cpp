// The four things that a plan must be able to say, built, checked and executed.
#include "plan/small_chain.hpp"
#include "support/chains.hpp"
#include "support/played.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::kDram;
using test::kHbm;
using test::Named;
using test::Played;
using test::seconds;

constexpr ProcessorId kGpu{0};

test::Chain unit_chain(std::size_t stages) {
  return test::equal_chain(stages, {.output = 1, .saved = 1});
}

}  // namespace

TEST_CASE("a plan can say: an eager prefetch") {
  // Four stages, forwards of 2 s, backwards of 3 s; sizes: a 1 B, saved 4 B; the link moves 2 B/s
  // each way, so a copy takes 2 s.
  //   F1..F4                [0,2) [2,4) [4,6) [6,8)
  //   out of saved_1        [2,4)  right after F1; F2 reads a_1 from it until 4: freed at 4
  //   B4 .. B1              [8,11) [11,14) [14,17) [17,20)
  //   in of saved_1         issued when B3 starts: [11,13), long before B2 reads a_1 at 14
  // Nothing waits: 20 s. Memory: a_0 = 1; after F4: 1 + saved_2..4 = 13; B4 adds delta_4 and
  // delta_3: 15. After B4: 1 + 8 + 1; B3 and the prefetch, which start at 11, add 1 + 4: 15. With
  // everything kept it is 1 + 16 + 2 = 19.
  test::Chain chain = unit_chain(4);
  chain.forward.assign(4, 2);
  chain.backward.assign(4, 3);
  chain.saved.assign(4, 4);
  const Workload workload = test::chain_workload(chain);
  test::OneGpu gpu;
  gpu.bandwidth_out = gpu.bandwidth_in = 2;
  const Platform platform = test::one_gpu(gpu);
  const Named named(workload, platform);
  const TensorId saved = named.tensor("s1.saved");

  PlanBuilder builder(workload, platform, "prefetch");
  const LaneId stream = builder.stream(kGpu);
  builder.compute(stream, named.op("s1.forward"));
  const StepId out = builder.copy(builder.channel(kHbm, kDram), saved, 0, SourceRelease::whole);
  for (const char* op : {"s2.forward", "s3.forward", "s4.forward", "s4.backward"})
    builder.compute(stream, named.op(op));
  CHECK_FALSE(builder.holds(saved, 0, kHbm));
  CHECK(builder.holds(saved, 0, kDram));
  const StepId b3 = builder.compute(stream, named.op("s3.backward"));
  const StepId in = builder.copy(builder.channel(kDram, kHbm), saved, 0, SourceRelease::whole);
  builder.after_start(in, b3);
  builder.compute(stream, named.op("s2.backward"));
  builder.compute(stream, named.op("s1.backward"));

  const Played it = test::play(builder.finish(), workload, platform);
  CHECK(it.execution.makespan == seconds(20));
  CHECK(it.start(out) == seconds(2));
  CHECK(it.start(in) == seconds(11));
  CHECK(it.end(in) == seconds(13));
  CHECK(it.peak(kHbm) == 15);
  CHECK(it.peak(kDram) == 4);
  CHECK(it.execution.processors[0].stall == std::array<Time, kStallCauses>{});
}

TEST_CASE("a plan can say: drop what was kept and make it again") {
  // Three stages, all times and sizes 1, budget 5 with a_0 = 1. F1 keep, F2 keep, release saved_1,
  // F3 keep, B3, F1 keep, B2, B1: 7 operators of 1 s and one more forward, so 7 s.
  // Memory, with r what stays: F1 r=2; F2 3; saved_1 goes after F2 has read a_1: 2; F3 3; B3 adds
  // delta_3 and delta_2: 5; after it a_0, saved_2, delta_2: 3; F1 again 4; B2 adds delta_1: 5;
  // after it a_0, saved_1, delta_1: 3; B1 adds delta_0: 4. So the peak is 5.
  // No schedule whose stored values stay until they are used does it in less than 8 at this budget.
  const Workload workload = test::chain_workload(unit_chain(3));
  test::OneGpu gpu;
  gpu.capacity = 5;
  const Platform platform = test::one_gpu(gpu);
  const Named named(workload, platform);

  PlanBuilder builder(workload, platform, "drop");
  const LaneId stream = builder.stream(kGpu);
  builder.compute(stream, named.op("s1.forward"));
  const StepId f2 = builder.compute(stream, named.op("s2.forward"));
  builder.release(named.tensor("s1.saved"), 0, kHbm);
  CHECK_FALSE(builder.holds(named.tensor("s1.saved"), 0, kHbm));
  builder.compute(stream, named.op("s3.forward"));
  builder.compute(stream, named.op("s3.backward"));
  const StepId again = builder.compute(stream, named.op("s1.forward"));
  builder.compute(stream, named.op("s2.backward"));
  builder.compute(stream, named.op("s1.backward"));

  const Played it = test::play(builder.finish(), workload, platform);
  CHECK(it.execution.status == RunStatus::ok);
  CHECK(it.execution.makespan == seconds(7));
  CHECK(it.peak(kHbm) == 5);
  CHECK(it.plan[again].instance == 1);
  CHECK(it.metrics.processors[0].recomputed_ops == 1);

  // The first saved_1 goes after F2, the second after B1; each is a buffer of its own.
  std::vector<StepId> released_after;
  for (const Release& release : it.plan.releases)
    if (it.plan[release.buffer].tensor == named.tensor("s1.saved"))
      released_after.push_back(it.plan.after(release).back());
  CHECK(released_after == std::vector{f2, StepId{6}});
}

namespace {

constexpr const char* kTwoGpus =
    "platform: two\nmemories:\n  hbm: {capacity: unlimited}\nprocessors:\n  gpu: {memory: hbm}\n";

}  // namespace

TEST_CASE("a plan can say: an overlapped pair") {
  // One stage, forward 2 s, backward 3 s, two microbatches; F of the second runs together with B of
  // the first in 4 s instead of 5. F(0) [0,2), the pair [2,6), B(1) [6,9).
  // Memory: a_0 of each microbatch 1, saved 3. At 2: a_0 x 2, saved(0), and the pair makes
  // saved(1), delta_1(0), delta_0(0): 2 + 6 + 2 = 10. At 6 B(1): 2 + delta_0(0) + saved(1) + 2 more
  // = 8.
  const Workload workload = test::workload_of(
      "workload: w\ninput: 1 B\nchain:\n"
      "  - {name: s, forward: 2 s, backward: 3 s, output: 1 B, saved: 3 B}\n");
  const Platform platform = test::platform_of(kTwoGpus);
  const Named named(workload, platform);
  const OperatorId forward = named.op("s.forward"), backward = named.op("s.backward");

  PlanBuilder builder(workload, platform, "pair");
  const LaneId stream = builder.stream(kGpu);
  builder.compute(stream, forward, 0);
  const StepId pair =
      builder.pair(stream, {forward, 1, Form::keep}, {backward, 0, Form::keep}, seconds(4));
  const StepId last = builder.compute(stream, backward, 1);
  const Played it = test::play(builder.finish(), workload, platform);
  CHECK(it.plan.microbatches == 2);
  CHECK(it.start(pair) == seconds(2));
  CHECK(it.end(pair) == seconds(6));
  CHECK(it.end(last) == seconds(9));
  CHECK(it.peak(kHbm) == 10);
  CHECK(it.execution.processors[0].operators == 4);
  CHECK(it.execution.processors[0].busy == seconds(9));
  CHECK(describe(it.plan, pair, workload, platform) ==
        "s.forward of microbatch 1 with s.backward of microbatch 0");
}

namespace {

constexpr const char* kRow =
    "platform: row\nmemories:\n  hbm0: {capacity: unlimited}\n  hbm1: {capacity: unlimited}\n"
    "processors:\n  gpu0: {memory: hbm0}\n  gpu1: {memory: hbm1}\n"
    "links:\n  l: {between: [hbm0, hbm1]}\n";

constexpr const char* kTwoStages =
    "workload: w\nchain:\n  - {name: s1, forward: 1 s, backward: 2 s, saved: 1 B}\n"
    "  - {name: s2, forward: 1 s, backward: 2 s, saved: 1 B}\n";

/// 1F1B on two devices without a drain: gpu0 runs F(0), then F(k+1), B(k); gpu1 F(k), B(k).
Plan periodic_plan(const Workload& workload, const Platform& platform, std::uint32_t microbatches) {
  const Named named(workload, platform);
  PlanBuilder builder(workload, platform, "periodic");
  const LaneId gpu0 = builder.stream(ProcessorId{0}), gpu1 = builder.stream(ProcessorId{1});
  const LaneId there = builder.channel(MemoryId{0}, MemoryId{1});
  const LaneId back = builder.channel(MemoryId{1}, MemoryId{0});
  const auto forward = [&](std::uint32_t k) {
    builder.compute(gpu0, named.op("s1.forward"), k);
    builder.copy(there, named.tensor("s1.output"), k, SourceRelease::keep);
  };
  forward(0);
  for (std::uint32_t k = 0; k < microbatches; ++k) {
    builder.compute(gpu1, named.op("s2.forward"), k);
    builder.compute(gpu1, named.op("s2.backward"), k);
    builder.copy(back, named.tensor("s1.gradient"), k, SourceRelease::keep);
    if (k + 1 < microbatches) forward(k + 1);
    builder.compute(gpu0, named.op("s1.backward"), k);
  }
  Plan plan = builder.finish();
  plan.steady_from_microbatch = 1;
  return plan;
}

}  // namespace

TEST_CASE("a plan can say: a periodic pipeline") {
  // gpu1 is busy without a gap: F(k) B(k) every 3 s from 1 on, so B2(k) ends at 4 + 3k, and B1(k)
  // follows on gpu0 when F1(k+1) is over, which began at 1 + 3(k-1) + 2 = 3k: B1(k) [4+3k, 6+3k).
  // Microbatches end 3 s apart: the period is F + B = 3 s, and with five of them the makespan 18 s.
  const Workload workload = test::workload_of(kTwoStages);
  const Platform platform = test::platform_of(kRow);
  const Played it = test::play(periodic_plan(workload, platform, 5), workload, platform);
  CHECK(it.execution.makespan == seconds(18));
  CHECK(it.execution.period == seconds(3));
  // In flight at once: two on gpu0, one on gpu1, as a 1F1B without drain has p - i.
  CHECK(it.peak(MemoryId{0}) == 2);
  CHECK(it.peak(MemoryId{1}) == 1);

  // As a flush schedule the same steps would take the span of gpu0: 18 s.
  Plan flush = periodic_plan(workload, platform, 5);
  flush.steady_from_microbatch.reset();
  CHECK(test::play(std::move(flush), workload, platform).execution.period == seconds(18));
}

TEST_CASE("the steady interval counts both operators of a pair") {
  // One device, pairs of F(k+1) and B(k) that last 3 s: microbatch k ends with the pair that holds
  // its backward. F(0) [0,1), pair k [1+3k, 4+3k), B(3) [10,12): microbatches end at 4, 7, 10, 12.
  // From microbatch 0 to 2 there are two intervals of 3 s... with the last, (12 - 4) / 3 s.
  const Workload workload = test::workload_of(
      "workload: w\nchain:\n  - {name: s, forward: 1 s, backward: 2 s, saved: 1 B}\n");
  const Platform platform = test::platform_of(kTwoGpus);
  const Named named(workload, platform);
  PlanBuilder builder(workload, platform, "pairs");
  const LaneId stream = builder.stream(kGpu);
  const OperatorId forward = named.op("s.forward"), backward = named.op("s.backward");
  builder.compute(stream, forward, 0);
  for (std::uint32_t k = 0; k < 3; ++k)
    builder.pair(stream, {forward, k + 1, Form::keep}, {backward, k, Form::keep}, seconds(3));
  builder.compute(stream, backward, 3);
  Plan plan = builder.finish();
  plan.steady_from_microbatch = 0;
  const Played it = test::play(std::move(plan), workload, platform);
  CHECK(it.execution.period == Time{seconds(8).count() / 3});
}

TEST_CASE("a plan can say: the steady interval ends before the drain") {
  // The pairs above end at 4, 7, 10, and the last backward alone at 12: until microbatch 2 the
  // interval is 3 s.
  const Workload workload = test::workload_of(
      "workload: w\nchain:\n  - {name: s, forward: 1 s, backward: 2 s, saved: 1 B}\n");
  const Platform platform = test::platform_of(kTwoGpus);
  const Named named(workload, platform);
  PlanBuilder builder(workload, platform, "pairs");
  const LaneId stream = builder.stream(kGpu);
  const OperatorId forward = named.op("s.forward"), backward = named.op("s.backward");
  builder.compute(stream, forward, 0);
  for (std::uint32_t k = 0; k < 3; ++k)
    builder.pair(stream, {forward, k + 1, Form::keep}, {backward, k, Form::keep}, seconds(3));
  builder.compute(stream, backward, 3);
  Plan plan = builder.finish();
  plan.steady_from_microbatch = 0;
  plan.steady_until_microbatch = 2;
  CHECK(test::play(std::move(plan), workload, platform).execution.period == seconds(3));
}

TEST_CASE("a plan can say: versions of parameters") {
  // F(0) [0,1), F(1) [1,2), B(0) [2,3), an update makes a second version at 3, B(1) [3,4) reads the
  // first one still, F(2) [4,5) the second, B(2) [5,6). At 3 there are both versions, the gradient
  // and what microbatch 1 keeps: 10 + 10 + 10 + 1. From 4 on the first version is gone.
  const Workload workload = test::workload_of(
      "workload: w\nchain:\n"
      "  - {name: s, forward: 1 s, backward: 1 s, saved: 1 B, parameters: 10 B}\n");
  const Platform platform = test::platform_of(kTwoGpus);
  const Named named(workload, platform);
  const TensorId weights = named.tensor("s.parameters");
  const OperatorId forward = named.op("s.forward"), backward = named.op("s.backward");

  PlanBuilder builder(workload, platform, "versions");
  const LaneId stream = builder.stream(kGpu);
  builder.compute(stream, forward, 0);
  const BufferId first = builder.version(weights, kHbm);
  builder.read_version(first, 1);
  builder.compute(stream, forward, 1);
  const StepId b0 = builder.compute(stream, backward, 0);
  const BufferId second = builder.add_version(weights, kHbm, 0, {&b0, 1});
  const StepId b1 = builder.compute(stream, backward, 1);
  const StepId f2 = builder.compute(stream, forward, 2);
  builder.compute(stream, backward, 2);
  const Played it = test::play(builder.finish(), workload, platform);
  CHECK(it.execution.makespan == seconds(6));
  CHECK(it.peak(kHbm) == 31);
  const auto reads = [&](StepId step, BufferId buffer) {
    const auto list = it.plan.list(it.plan[step].reads);
    return std::ranges::find(list, buffer) != list.end();
  };
  CHECK(reads(b1, first));
  CHECK_FALSE(reads(b1, second));
  CHECK(reads(f2, second));
  std::vector<BufferId> released;
  for (const Release& release : it.plan.releases)
    if (it.plan[release.buffer].tensor == weights) released.push_back(release.buffer);
  CHECK(released == std::vector{first});

  // Without a next version parameters stay.
  Plan without = it.plan;
  for (Step& step : without.steps)
    if (step.kind == StepKind::copy) without.buffer_lists[step.reads.begin] = second;
  const Topology topology(platform);
  const auto problems = check_plan(without, workload, platform, topology);
  CHECK(std::ranges::find(problems, "`s.parameters` in `hbm` is released, but it is resident") !=
        problems.end());
}

}  // namespace plimsoll
