#include "plan/check/plan_checker.hpp"

#include "plan/small_chain.hpp"
#include "workload/core/workload_builder.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include <catch2/catch.hpp>
#include <fmt/format.h>

using namespace plimsoll;
using namespace plimsoll::test;

namespace {

using Problems = std::vector<std::string>;

const Workload kChain = small_chain(3);
const Platform kMachine = small_machine();

Problems check(const Plan& plan, const Platform& machine = kMachine,
               const Workload& workload = kChain) {
  return check_plan(plan, workload, machine, Topology(machine));
}

/// Three stages; saved_1 goes to dram and comes back. The numbers of steps and buffers:
///
///   0 F1  reads 0 (input)             writes 1 (s1.saved)
///   1 F2  reads 1                     writes 2 (s2.saved)
///   2 copy out                1       writes 3 (s1.saved in dram), takes 1 away
///   3 F3  reads 2                     writes 4 (s3.saved)
///   4 B3  reads 4, 2                  writes 5 (s2.gradient), 6 (s3.gradient)
///   5 copy in                 3       writes 7 (s1.saved), keeps 3
///   6 B2  reads 5, 2, 7               writes 8 (s1.gradient)
///   7 B1  reads 8, 7, 0               writes 9 (input.gradient)
///
/// Lanes: 0 gpu, 1 out, 2 in. Releases: of 2, 3, 4, 5, 6, 7, 8, in this order.
Plan good_plan(
    const Platform& machine = kMachine,
    const std::function<void(PlanBuilder&)>& last = [](PlanBuilder& builder) {
      builder.compute(LaneId{0}, find_operator(kChain, "s1.backward"));
    }) {
  PlanBuilder builder(kChain, machine, "test");
  const LaneId gpu = builder.stream(ProcessorId{0});
  const LaneId out = builder.channel(kHbm, kDram), in = builder.channel(kDram, kHbm);
  const auto op = [&](const char* name) { return find_operator(kChain, name); };
  const TensorId saved = find_tensor(kChain, "s1.saved");
  builder.compute(gpu, op("s1.forward"));
  builder.compute(gpu, op("s2.forward"));
  builder.copy(out, saved, 0, SourceRelease::whole);
  builder.compute(gpu, op("s3.forward"));
  builder.compute(gpu, op("s3.backward"));
  builder.copy(in, saved, 0, SourceRelease::keep);
  builder.compute(gpu, op("s2.backward"));
  last(builder);
  return builder.finish();
}

Step& step(Plan& plan, std::size_t i) {
  return plan.steps[i];
}
BufferId& read(Plan& plan, std::size_t s, std::uint32_t i) {
  return plan.buffer_lists[plan.steps[s].reads.begin + i];
}
BufferId& written(Plan& plan, std::size_t s, std::uint32_t i) {
  return plan.buffer_lists[plan.steps[s].writes.begin + i];
}

/// What the checker says of the good plan after one change.
Problems after(const std::function<void(Plan&)>& change) {
  Plan plan = good_plan();
  change(plan);
  return check(plan);
}

}  // namespace

TEST_CASE("the plan that the other tests break is good", "[plan_checker]") {
  const Plan plan = good_plan();
  CHECK(check(plan) == Problems{});
  REQUIRE(plan.steps.size() == 8);
  REQUIRE(plan.buffers.size() == 10);
  REQUIRE(plan.releases.size() == 7);
  CHECK(plan.releases[0].buffer == BufferId{2});
}

TEST_CASE("rule 1: ids are in range", "[plan_checker]") {
  CHECK(after([](Plan& p) { p.lanes[0].processor = ProcessorId{1}; }) ==
        Problems{"a lane names a processor or memory that the platform does not have"});
  CHECK(after([](Plan& p) { p.lanes[1].to = MemoryId{3}; }) ==
        Problems{"a lane names a processor or memory that the platform does not have"});
  CHECK(after([](Plan& p) { p.buffers[4].tensor = kNoTensor; }) ==
        Problems{"a buffer names a tensor, memory or microbatch that does not exist"});
  CHECK(after([](Plan& p) { read(p, 1, 0) = BufferId{10}; }) ==
        Problems{"a step names a buffer that does not exist"});
  CHECK(after([](Plan& p) { p.initial[0] = BufferId{10}; }) ==
        Problems{"an initial buffer does not exist"});
  CHECK(after([](Plan& p) { step(p, 0).op = kNoOperator; }) ==
        Problems{"a step names a lane, operator, microbatch or list that does not exist"});
  CHECK(after([](Plan& p) { step(p, 0).lane = LaneId{3}; }) ==
        Problems{"a step names a lane, operator, microbatch or list that does not exist"});
  CHECK(after([](Plan& p) {
          step(p, 0).reads = {1, 0};
        }) == Problems{"a step names a lane, operator, microbatch or list that does not exist"});
  CHECK(after([](Plan& p) {
          p.dependencies.push_back({StepId{8}, {}});
        }) == Problems{"a step depends on a step that does not exist"});
  CHECK(after([](Plan& p) { p.releases[0].buffer = BufferId{10}; }) ==
        Problems{"a release names a buffer or list that does not exist"});
  CHECK(after([](Plan& p) { p.release_steps[0] = StepId{8}; }) ==
        Problems{"a release waits for a step that does not exist"});
  CHECK(after([](Plan& p) { p.ordered_grants.push_back(MemoryId{3}); }) ==
        Problems{"a memory with ordered grants does not exist"});
}

TEST_CASE("rule 1: microbatches are counted", "[plan_checker]") {
  // Six operators that are not the optimizer's; eight steps could run sixteen at most.
  CHECK(after([](Plan& p) { p.microbatches = 0; })[0] == "the plan has no microbatches");
  CHECK(after([](Plan& p) { p.microbatches = 3; }) ==
        Problems{"8 steps are too few for 6 operators of 3 microbatches"});
  CHECK(after([](Plan& p) { p.buffers[7].microbatch = 1; }) ==
        Problems{"a buffer names a tensor, memory or microbatch that does not exist"});
  CHECK(after([](Plan& p) { step(p, 0).microbatch = 1; }) ==
        Problems{"a step names a lane, operator, microbatch or list that does not exist"});
  CHECK(after([](Plan& p) { p.steady_from_microbatch = 0; }) ==
        Problems{"the plan is steady from microbatch 0, which leaves no interval among 1"});
}

TEST_CASE("rule 5: only what no operator makes is in place from the start", "[plan_checker]") {
  const Problems saved = after([](Plan& p) { p.initial.push_back(BufferId{1}); });
  REQUIRE(!saved.empty());
  CHECK(saved[0] ==
        "`s1.saved` in `hbm` is in place before the first step, but an operator makes it");
  CHECK(after([](Plan& p) { p.initial.push_back(p.initial[0]); }) ==
        Problems{"`input` in `hbm` is placed twice before the first step"});
}

TEST_CASE("rule 6: what stays is not released, what a copy takes goes once", "[plan_checker]") {
  // Buffer 9 is delta_0, made by the last step.
  const Problems gone = after([](Plan& p) { p.releases[0].buffer = BufferId{9}; });
  CHECK(std::ranges::any_of(gone, [](const std::string& problem) {
    return problem.ends_with("is released, but it stays to the end");
  }));
  // The copy out of saved_1, once more, into a stay of its own.
  CHECK(after([](Plan& p) {
          p.buffers.push_back(p.buffers[3]);
          p.buffer_lists.push_back(BufferId{10});
          const auto end = static_cast<std::uint32_t>(p.buffer_lists.size());
          p.steps.push_back(step(p, 2));
          p.steps.back().writes = {end - 1, end};
        }) == Problems{"`s1.saved` in `hbm` is taken away twice"});
}

TEST_CASE("rule 1: lanes exist on the platform", "[plan_checker]") {
  // The gpu has streams 0 and 1; nothing joins disk.
  CHECK(after([](Plan& p) { p.lanes[0].stream = 1; }) == Problems{});
  CHECK(after([](Plan& p) { p.lanes[0].stream = 2; }) == Problems{"`gpu` has no stream 2"});
  CHECK(after([](Plan& p) { p.lanes[1].to = kDisk; }) ==
        Problems{"no link leads from `hbm` to `disk`"});
}

TEST_CASE("rule 1: a stream and a channel have one lane", "[plan_checker]") {
  const auto with_lane = [](std::size_t like, const std::function<void(Lane&)>& change) {
    return after([&](Plan& p) {
      Lane lane = p.lanes[like];
      change(lane);
      p.lanes.push_back(lane);
    });
  };
  const auto leave = [](Lane&) {};
  CHECK(with_lane(0, leave) ==
        Problems{"lanes 0 and 3 are both stream 0 of `gpu`; expected one lane for a stream"});
  CHECK(with_lane(0, [](Lane& lane) { lane.stream = 1; }) == Problems{});
  CHECK(with_lane(2, leave) == Problems{"lanes 2 and 3 are both the channel from `dram` to `hbm`; "
                                        "expected one lane for a channel"});
  CHECK(with_lane(2, [](Lane& lane) { lane.stream = 1; }) == Problems{});
  // Two lanes that nothing tells apart would run two operators at once on one stream: F2 and a
  // second run of F1, here, at 1 ms each and both from 1 ms on.
  CHECK(after([](Plan& p) {
          p.lanes.push_back(p.lanes[0]);
          step(p, 3).lane = LaneId{3};
        }).size() == 1);
}

TEST_CASE("rule 2: computation runs on streams, copies on channels", "[plan_checker]") {
  CHECK(after([](Plan& p) { step(p, 1).lane = LaneId{1}; }) ==
        Problems{"step 1 is in a lane of the wrong kind"});
  const Problems copy = after([](Plan& p) { step(p, 2).lane = LaneId{0}; });
  REQUIRE(copy.size() == 1);
  CHECK(copy[0].ends_with("is in a lane of the wrong kind"));
}

TEST_CASE("rule 3: what an operator needs is read where it is", "[plan_checker]") {
  // F2 reads a_1, which lies inside saved_1; neither the input nor the stay in dram will do.
  CHECK(after([](Plan& p) { read(p, 1, 0) = BufferId{0}; }) ==
        Problems{"s2.forward does not read `s1.output` from `hbm`"});
  CHECK(after([](Plan& p) { read(p, 1, 0) = BufferId{3}; }) ==
        Problems{"s2.forward does not read `s1.output` from `hbm`"});
  CHECK(after([](Plan& p) { step(p, 6).reads.end -= 1; }) ==
        Problems{"s2.backward does not read `s1.output` from `hbm`"});
  // Nor that of another run: the copies that now join different ones are reported, too.
  CHECK(after([](Plan& p) { p.buffers[7].instance = 1; }) ==
        Problems{"copy of s1.saved from dram to hbm: source and destination are of different "
                 "microbatches or runs"});
}

TEST_CASE("rule 4: a step writes the tensors of its form", "[plan_checker]") {
  CHECK(after([](Plan& p) { step(p, 1).writes.end = step(p, 1).writes.begin; }) ==
        Problems{"s2.forward does not write its output `s2.saved`"});
  CHECK(after([](Plan& p) { step(p, 1).form = Form::bare; }) ==
        Problems{"s2.forward does not write its output `s2.output`",
                 "s2.forward writes `s2.saved` in `hbm`, which is none of its outputs"});
  CHECK(after([](Plan& p) { written(p, 1, 0) = BufferId{3}; }) ==
        Problems{"s2.forward does not write its output `s2.saved`",
                 "s2.forward writes `s1.saved` in `dram`, which is none of its outputs"});
  // B3 makes delta_2 and, as the last, delta_3.
  CHECK(after([](Plan& p) { written(p, 4, 1) = BufferId{5}; }) ==
        Problems{"s3.backward does not write its output `s3.gradient`",
                 "s3.backward writes `s2.gradient` in `hbm`, which is none of its outputs"});
  CHECK(after([](Plan& p) { written(p, 5, 0) = BufferId{1}; }) ==
        Problems{"`s1.saved` in `hbm` is written twice", "`s1.saved` in `hbm` is never written"});
}

TEST_CASE("what computes may state how long it takes, a copy may not", "[plan_checker]") {
  CHECK(after([](Plan& p) { step(p, 0).duration = Time{1}; }).empty());
  CHECK(after([](Plan& p) { step(p, 2).duration = Time{1}; }) ==
        Problems{"copy of s1.saved from hbm to dram: only what computes states a duration"});
}

TEST_CASE("rule 4: a copy joins two stays of one value", "[plan_checker]") {
  CHECK(after([](Plan& p) { step(p, 2).reads.begin = step(p, 2).reads.end; }) ==
        Problems{"a copy reads 0 buffers and writes 1; expected one of each"});
  CHECK(after([](Plan& p) { read(p, 2, 0) = BufferId{2}; }) ==
        Problems{"copy of s1.saved from hbm to dram: it reads `s2.saved`, which does not hold that "
                 "value"});
  CHECK(after([](Plan& p) { step(p, 2).lane = LaneId{2}; }) ==
        Problems{"copy of s1.saved from dram to hbm: its buffers are not in the memories of its "
                 "channel"});
  // Blocks of an arena cannot leave byte by byte.
  const Platform arena = small_machine(AllocatorKind::best_fit);
  Plan plan = good_plan(arena);
  CHECK(check(plan, arena) == Problems{});
  step(plan, 2).source = SourceRelease::progressive;
  CHECK(check(plan) == Problems{});
  CHECK(
      check(plan, arena) ==
      Problems{"copy of s1.saved from hbm to dram: progressive release needs the `ideal` allocator "
               "in `hbm`"});
}

TEST_CASE("places are whole units of an arena with offsets, within it", "[plan_checker]") {
  Plan plan = good_plan(kMachine);
  const MemoryId hbm = plan.buffers[0].memory;
  const auto problem = [&](Bytes offset) {
    plan.buffers[0].offset = offset;
    const Problems problems = check(plan);
    return problems.empty() ? std::string() : problems.front();
  };
  CHECK_THAT(problem(Bytes{0}), Catch::Contains("has no arena with offsets"));
  // What is beyond the last whole unit is of no use.
  const std::int64_t bytes = kChain[plan.buffers[0].tensor].bytes.count();
  const std::int64_t end = bytes / 16 * 16 + 64, last = (end - bytes) / 16 * 16;
  plan.limits = {{hbm, Bytes{end + 15}}};
  plan.arenas = {{hbm, Bytes{16}, true}};
  CHECK(problem(Bytes{last}).empty());
  CHECK_THAT(problem(Bytes{last + 16}), Catch::Contains(fmt::format("ends at {} B", end)));
  CHECK_THAT(problem(Bytes{8}), Catch::Contains("expected a multiple of 16 B"));
  CHECK_THAT(problem(Bytes{-16}), Catch::Contains("expected a multiple of 16 B"));
  plan.arenas.front().alignment = Bytes{};
  CHECK_THAT(problem(Bytes{0}), Catch::Contains("units of no bytes"));
}

TEST_CASE("rule 9: what has a place finds it free when it is due", "[plan_checker]") {
  // All of the chain on one stream, but for F3 perhaps: F1 F2 F3 B3 B2 B1. Every buffer in a unit of its
  // own, then two in the same one.
  const auto plan_with = [](std::uint32_t stream_of_f3) {
    PlanBuilder builder(kChain, kMachine, "test");
    const LaneId gpu = builder.stream(ProcessorId{0}, 0);
    const LaneId other = stream_of_f3 == 0 ? gpu : builder.stream(ProcessorId{0}, stream_of_f3);
    for (const char* name :
         {"s1.forward", "s2.forward", "s3.forward", "s3.backward", "s2.backward", "s1.backward"})
      builder.compute(std::string(name) == "s3.forward" ? other : gpu, find_operator(kChain, name));
    Plan plan = builder.finish();
    std::int64_t unit = 0, end = 0;
    for (const Buffer& buffer : plan.buffers)
      unit = std::max(unit, kChain[buffer.tensor].bytes.count());
    for (Buffer& buffer : plan.buffers) buffer.offset = Bytes{std::exchange(end, end + unit)};
    plan.limits = {{kHbm, Bytes{end}}};
    plan.arenas = {{kHbm, Bytes{unit}, true}};
    return plan;
  };
  const Plan good = plan_with(0);
  REQUIRE(check(good) == Problems{});

  const auto share = [&](Plan plan, const char* first, const char* second) {
    const auto at = [&](const char* name) {
      return std::ranges::find(plan.buffers, find_tensor(kChain, name), &Buffer::tensor);
    };
    at(second)->offset = at(first)->offset;
    const Problems problems = check(plan);
    return problems.empty() ? std::string() : problems.front();
  };
  const auto together = [&](const char* first, const char* second) {
    return share(good, first, second);
  };
  // B3 reads s3.saved and makes s3.gradient; B2 comes later.
  CHECK(together("s3.saved", "s1.gradient").empty());
  CHECK(together("s3.saved", "s2.gradient").ends_with("is there until s3.backward has ended"));
  CHECK(together("s1.saved", "s3.saved").starts_with("`s3.saved` is due at"));
  CHECK(together("input", "s2.saved").find("`input`") != std::string::npos);
  CHECK(together("s3.gradient", "s2.gradient").find("when s3.backward starts") !=
        std::string::npos);  // one step makes both

  // What another stream makes is for the engine to see.
  CHECK_FALSE(share(good, "s1.saved", "s3.saved").empty());
  CHECK(share(plan_with(1), "s1.saved", "s3.saved").empty());
}

TEST_CASE("rule 4: a pair writes what both operators leave, and says how long", "[plan_checker]") {
  PlanBuilder builder(kChain, kMachine, "test");
  const LaneId gpu = builder.stream(ProcessorId{0});
  const auto op = [&](const char* name) { return find_operator(kChain, name); };
  for (const char* name : {"s1.forward", "s2.forward", "s3.forward"})
    builder.compute(gpu, op(name));
  builder.pair(gpu, {op("s3.backward"), 0}, {op("s1.forward"), 1}, Time{5});
  for (const char* name : {"s2.backward", "s1.backward"}) builder.compute(gpu, op(name));
  for (const char* name : {"s2.forward", "s3.forward", "s3.backward", "s2.backward", "s1.backward"})
    builder.compute(gpu, op(name), 1);
  const Plan good = builder.finish();
  CHECK(check(good) == Problems{});

  const std::string pair = "s3.backward of microbatch 0 with s1.forward of microbatch 1";
  Plan plan = good;
  plan.steps[3].duration.reset();
  CHECK(check(plan) == Problems{pair + ": an overlapped pair needs a duration"});
  plan = good;
  plan.steps[3].writes.end -= 1;  // saved_1 of microbatch 1
  CHECK(check(plan) == Problems{pair + " does not write its output `s1.saved`"});
}

TEST_CASE("rule 5: what is read is made or in place", "[plan_checker]") {
  CHECK(after([](Plan& p) { p.initial.clear(); }) == Problems{"`input` in `hbm` is never written"});
  // Step 6 reads the stay that the first run left instead of a new one that no step writes.
  CHECK(after([](Plan& p) {
          p.buffers.push_back(p.buffers[7]);
          read(p, 6, 2) = BufferId{10};
        }) == Problems{"`s1.saved` in `hbm` is never written"});
}

TEST_CASE("rule 6: a release waits for the last readers", "[plan_checker]") {
  // Release 0 is that of saved_2, read last by B2 (step 6).
  CHECK(after([](Plan& p) { p.release_steps[p.releases[0].after.begin] = StepId{4}; }) ==
        Problems{"`s2.saved` in `hbm` is released before s2.backward has read it"});
  // A later step of the same stream will do, a copy of another lane will not.
  CHECK(after([](Plan& p) { p.release_steps[p.releases[0].after.begin] = StepId{7}; }) ==
        Problems{});
  CHECK(after([](Plan& p) { p.release_steps[p.releases[0].after.begin] = StepId{5}; }) ==
        Problems{"`s2.saved` in `hbm` is released before s2.backward has read it"});
  // Release 1 is that of the stay in dram, read by the copy in; step 6 may start later, but copies
  // do not end in order with the stream.
  CHECK(
      after([](Plan& p) { p.release_steps[p.releases[1].after.begin] = StepId{6}; }) ==
      Problems{"`s1.saved` in `dram` is released before copy of s1.saved from dram to hbm has read "
               "it"});
  CHECK(after([](Plan& p) { p.releases[0].after.end = p.releases[0].after.begin; }) ==
        Problems{"`s2.saved` in `hbm` is released without waiting for anything",
                 "`s2.saved` in `hbm` is released before s2.backward has read it"});
}

TEST_CASE("rule 6: what nobody reads is released after it was made", "[plan_checker]") {
  // delta_3 (buffer 6) is read by nothing; its release (the fifth) waits for B3, which made it.
  CHECK(good_plan().releases[4].buffer == BufferId{6});
  CHECK(after([](Plan& p) { p.release_steps[p.releases[4].after.begin] = StepId{3}; }) ==
        Problems{"`s3.gradient` in `hbm` is released before s3.backward has read it"});
}

TEST_CASE("rule 6: nothing is released twice, nothing that is resident", "[plan_checker]") {
  CHECK(after([](Plan& p) { p.releases.push_back(p.releases[0]); }) ==
        Problems{"`s2.saved` in `hbm` is released twice"});
  // Buffer 1 is taken away by the copy out.
  CHECK(after([](Plan& p) {
          const auto begin = static_cast<std::uint32_t>(p.release_steps.size());
          p.release_steps.insert(p.release_steps.end(), {StepId{1}, StepId{2}});
          p.releases.push_back({BufferId{1}, {begin, begin + 2}});
        }) == Problems{"`s1.saved` in `hbm` is released twice"});
  CHECK(after([](Plan& p) {
          const auto begin = static_cast<std::uint32_t>(p.release_steps.size());
          p.release_steps.push_back(StepId{7});
          p.releases.push_back({BufferId{0}, {begin, begin + 1}});
        }) == Problems{"`input` in `hbm` is released, but it is resident"});
}

TEST_CASE("rule 7: every operator runs, backwards once", "[plan_checker]") {
  const auto with_end = [](const std::function<void(PlanBuilder&)>& last) {
    return check(good_plan(kMachine, last));
  };
  CHECK(with_end([](PlanBuilder&) {}) == Problems{"`s1.backward` of microbatch 0 is left out"});
  CHECK(with_end([](PlanBuilder& builder) {
          for (int i = 0; i < 2; ++i)
            builder.compute(LaneId{0}, find_operator(kChain, "s1.backward"));
        }) == Problems{"`s1.backward` of microbatch 0 runs 2 times"});
  CHECK(with_end([](PlanBuilder& builder) {  // recomputation
          builder.compute(LaneId{0}, find_operator(kChain, "s3.forward"));
          builder.compute(LaneId{0}, find_operator(kChain, "s1.backward"));
        })
            .empty());
  CHECK(after([](Plan& p) { p.microbatches = 2; }).size() == 6);
}

TEST_CASE("rule 7: the optimizer runs", "[plan_checker]") {
  // Chains have no operator for it: F makes y, B reads it and makes g, the optimizer reads g.
  WorkloadBuilder making("update");
  const TensorId y = making.add(Tensor{"y", Bytes{1}});
  const TensorId g =
      making.add(Tensor{"g", Bytes{1}, TensorClass::gradient, Lifetime::accumulated, kNoTensor});
  making.add(OperatorSpec{.name = "F", .kept = {y}, .bare = {y}});
  making.add(
      OperatorSpec{.name = "B", .phase = Phase::backward, .reads = {y}, .kept = {g}, .bare = {g}});
  making.add(OperatorSpec{.name = "update", .phase = Phase::optimizer, .reads = {g}});
  const Workload workload = making.freeze();

  const auto check_operators = [&](std::uint32_t count) {
    PlanBuilder builder(workload, kMachine, "test");
    const LaneId gpu = builder.stream(ProcessorId{0});
    for (std::uint32_t op = 0; op < count; ++op) builder.compute(gpu, OperatorId{op});
    return check(builder.finish(), kMachine, workload);
  };
  CHECK(check_operators(3) == Problems{});
  CHECK(check_operators(2) == Problems{"`update` is left out"});
}

namespace {

/// F makes y and z; R, an optimizer's, changes y in place; Q, another, reads z alone.
struct Change {
  Change() {
    WorkloadBuilder making("change");
    y = making.add(Tensor{"y", Bytes{1}});
    z = making.add(Tensor{"z", Bytes{1}});
    making.add(OperatorSpec{.name = "F", .kept = {y, z}, .bare = {y, z}});
    making.add(OperatorSpec{.name = "R", .phase = Phase::optimizer, .reads = {y}, .updates = {y}});
    making.add(OperatorSpec{.name = "Q", .phase = Phase::optimizer, .reads = {z}});
    workload = making.freeze();
  }

  /// 0 F; 1 copy of y, which keeps it; 2 Q on the other stream; 3 R. `order` adds dependencies; the
  /// builder's own are dropped.
  Problems check(const std::function<void(PlanBuilder&)>& order) const {
    PlanBuilder builder(workload, kMachine, "test");
    const LaneId gpu = builder.stream(ProcessorId{0});
    builder.compute(gpu, OperatorId{0});
    builder.copy(builder.channel(kHbm, kDram), y, 0, SourceRelease::keep);
    builder.compute(builder.stream(ProcessorId{0}, 1), OperatorId{2});
    builder.compute(gpu, OperatorId{1});
    order(builder);
    Plan plan = builder.finish();
    // The builder's own comes first.
    REQUIRE_FALSE(plan.after(plan.steps[3]).empty());
    ++plan.steps[3].after.begin;
    return ::check(plan, kMachine, workload);
  }

  Workload workload;
  TensorId y{}, z{};
};

}  // namespace

TEST_CASE("rule 8: what changes in place has its order with every other reader", "[plan_checker]") {
  const Change change;
  const StepId copy{1}, q{2}, r{3};
  const Problems refused{
      "steps 1 and 3: copy of y from hbm to dram reads `y` in `hbm`, R changes it, and nothing "
      "orders "
      "the two; expected one of them after the end of the other"};
  CHECK(change.check([](PlanBuilder&) {}) == refused);
  // Either way round will do, directly or through others: Q after the copy, R after Q.
  CHECK(change.check([&](PlanBuilder& b) { b.after_end(r, copy); }) == Problems{});
  CHECK(change.check([&](PlanBuilder& b) { b.after_end(copy, r); }) == Problems{});
  CHECK(change.check([&](PlanBuilder& b) {
    b.after_end(q, copy);
    b.after_end(r, q);
  }) == Problems{});
  // Starts do not tell that the copy is over.
  CHECK(change.check([&](PlanBuilder& b) { b.after_start(r, copy); }) == refused);
  CHECK(change.check([&](PlanBuilder& b) {
    b.after_start(q, copy);
    b.after_end(r, q);
  }) == refused);
}

TEST_CASE("rule 8: gradients are added to one after the other", "[plan_checker]") {
  // Microbatch 0 on stream 0 makes the gradient of the parameters, 1 and 2 on streams 1 and 0 add
  // to it.
  const Workload workload = small_chain(1, Bytes{8});
  PlanBuilder builder(workload, kMachine, "test");
  for (const std::uint32_t m : {0u, 1u, 2u})
    for (const char* name : {"s1.forward", "s1.backward"})
      builder.compute(builder.stream(ProcessorId{0}, m % 2), find_operator(workload, name), m);
  Plan plan = builder.finish();
  CHECK(check(plan, kMachine, workload) == Problems{});
  for (Step& it : plan.steps) it.after = {};
  CHECK(check(plan, kMachine, workload) ==
        Problems{"steps 3 and 5: s1.backward of microbatch 1 changes `s1.parameters.gradient` in "
                 "`hbm`, s1.backward of microbatch 2 changes it, and nothing orders the two; "
                 "expected one of them after the end of the other"});
}

TEST_CASE("at most twenty problems are listed", "[plan_checker]") {
  Plan plan = good_plan();
  for (int i = 0; i < 30; ++i) plan.releases.push_back(plan.releases[0]);
  CHECK(check(plan).size() == 20);
}

namespace {

/// One change by chance, of ids in range or just beyond, of every part of a plan.
void mutate(Plan& plan, std::mt19937_64& random) {
  const auto below = [&](std::size_t size) {
    return static_cast<std::uint32_t>(random() % std::max<std::size_t>(size, 1));
  };
  const auto some = [&](auto& list) -> auto& {
    return list[below(list.size())];
  };
  const std::uint32_t kind = below(13);
  if (kind == 0) plan.steps.erase(plan.steps.begin() + below(plan.steps.size()));
  if (kind == 1) std::swap(some(plan.steps), some(plan.steps));
  if (kind == 2) std::swap(some(plan.buffer_lists), some(plan.buffer_lists));
  if (kind == 3) some(plan.buffer_lists) = BufferId{below(plan.buffers.size() + 1)};
  if (kind == 4) some(plan.buffers).memory = MemoryId{below(4)};
  if (kind == 5) some(plan.buffers).tensor = some(plan.buffers).tensor;
  if (kind == 6) some(plan.buffers).microbatch = below(3);
  if (kind == 7) some(plan.steps).lane = LaneId{below(plan.lanes.size() + 1)};
  if (kind == 8) some(plan.steps).op = some(plan.steps).op;
  if (kind == 9) some(plan.steps).reads.end = below(plan.buffer_lists.size() + 2);
  if (kind == 10) some(plan.steps).writes.begin = below(plan.buffer_lists.size() + 2);
  if (kind == 11 && !plan.releases.empty())
    some(plan.release_steps) = StepId{below(plan.steps.size() + 1)};
  if (kind == 12 && !plan.releases.empty())
    some(plan.releases).buffer = BufferId{below(plan.buffers.size() + 1)};
}

}  // namespace

TEST_CASE("random plans are good, and changed ones never upset the checker", "[plan_checker]") {
  std::mt19937_64 random(7);
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const int stages = 1 + static_cast<int>(seed % 6);
    const Workload workload =
        seed % 2 == 0 ? small_chain(stages) : small_chain(stages, Bytes{8}, Optimizer::adam);
    const Plan good = RandomPlan(workload, kMachine, stages, seed).make();
    const Topology topology(kMachine);
    REQUIRE(check_plan(good, workload, kMachine, topology) == Problems{});
    for (int i = 0; i < 50; ++i) {
      Plan plan = good;
      mutate(plan, random);
      const Problems problems = check_plan(plan, workload, kMachine, topology);
      CHECK(problems.size() <= 20);
      if (!problems.empty()) ++refused;
    }
  }
  // Of 10 000 changes some are none (two equal things swapped) or leave another good plan (order of
  // steps, spared reads, later releases); those are fewer than the bad ones.
  CHECK(refused > 5000);
}
