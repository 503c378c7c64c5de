// Plans whose lists are long: checking them takes time in proportion to their length. At the sizes
// here twice as much work for twice the size is done in a moment, four times as much never.
#include "plan/build/plan_builder.hpp"
#include "plan/check/plan_checker.hpp"
#include "plan/core/readers.hpp"
#include "plan/small_chain.hpp"
#include "workload/core/workload_builder.hpp"

#include <catch2/catch.hpp>

using namespace plimsoll;
using namespace plimsoll::test;

namespace {

const Workload kPaired = small_chain(1);
const Platform kOneGpu = small_machine();

/// F1 of microbatch 0; B1 of it with F1 of microbatch 1; B1 of that.
Plan overlapped() {
  PlanBuilder builder(kPaired, kOneGpu, "test");
  const LaneId gpu = builder.stream(ProcessorId{0});
  const OperatorId forward = find_operator(kPaired, "s1.forward");
  const OperatorId backward = find_operator(kPaired, "s1.backward");
  builder.compute(gpu, forward);
  builder.pair(gpu, {backward, 0}, {forward, 1}, Time{5});
  builder.compute(gpu, backward, 1);
  return builder.finish();
}

/// Lets a step read or write `more`, too.
void append(Plan& plan, Slice& list, const std::vector<BufferId>& more) {
  const auto old = plan.list(list);
  const std::vector<BufferId> kept(old.begin(), old.end());
  list.begin = static_cast<std::uint32_t>(plan.buffer_lists.size());
  plan.buffer_lists.insert(plan.buffer_lists.end(), more.begin(), more.end());
  plan.buffer_lists.insert(plan.buffer_lists.end(), kept.begin(), kept.end());
  list.end = static_cast<std::uint32_t>(plan.buffer_lists.size());
}

}  // namespace

TEST_CASE("an overlapped pair may read and write long lists", "[plan_checker]") {
  // A million stays of the input that the pair reads, and as many that it writes.
  Plan plan = overlapped();
  const std::uint32_t count = 1'000'000;
  std::vector<BufferId> read(count, plan.initial.front()), written;
  for (std::uint32_t i = 0; i < count; ++i) {
    written.push_back(BufferId{static_cast<std::uint32_t>(plan.buffers.size())});
    plan.buffers.push_back(plan[plan.initial.front()]);
  }
  append(plan, plan.steps[1].reads, read);
  append(plan, plan.steps[1].writes, written);
  const auto problems = check_plan(plan, kPaired, kOneGpu, Topology(kOneGpu));
  REQUIRE(problems.size() == 20);
  for (const std::string& problem : problems)
    CHECK(problem ==
          "s1.backward of microbatch 0 with s1.forward of microbatch 1 writes `input` in `hbm`, "
          "which is none of its outputs");
}

TEST_CASE("an operator of many inputs may read a long list", "[plan_checker]") {
  // 50,000 inputs, and a list that names the first of them two million times before the others.
  const std::uint32_t inputs = 50'000, reads = 2'000'000;
  WorkloadBuilder making("wide");
  std::vector<TensorId> tensors;
  for (std::uint32_t i = 0; i < inputs; ++i)
    tensors.push_back(making.add(Tensor{"x" + std::to_string(i), Bytes{1}}));
  making.add(OperatorSpec{.name = "F", .kept = tensors, .bare = tensors});
  making.add(OperatorSpec{.name = "B", .phase = Phase::backward, .reads = tensors});
  const Workload workload = making.freeze();
  PlanBuilder builder(workload, kOneGpu, "test");
  const LaneId gpu = builder.stream(ProcessorId{0});
  builder.compute(gpu, OperatorId{0});
  builder.compute(gpu, OperatorId{1});
  Plan plan = builder.finish();
  append(plan, plan.steps[1].reads,
         std::vector<BufferId>(reads, plan.list(plan.steps[1].reads)[0]));
  CHECK(check_plan(plan, workload, kOneGpu, Topology(kOneGpu)).empty());
}

TEST_CASE("a buffer may have many readers on channels and streams", "[plan_checker]") {
  // A million copies, then as many steps of one stream: the copies, and the last of the stream.
  const std::uint32_t count = 1'000'000;
  Plan plan;
  plan.lanes.resize(2);
  plan.lanes[1].kind = Lane::Kind::channel;
  std::vector<StepId> readers;
  for (std::uint32_t s = 0; s < 2 * count; ++s) {
    plan.steps.push_back(Step{.lane = LaneId{s < count ? 1u : 0u}});
    readers.push_back(StepId{s});
  }
  LastInLanes last_in_lanes(plan);
  const auto last = last_in_lanes.of(readers);
  REQUIRE(last.size() == count + 1);
  CHECK(last.front() == StepId{0});
  CHECK(last.back() == StepId{2 * count - 1});
}

TEST_CASE("a buffer may be released many times in a bad plan", "[plan_checker]") {
  // Each of the releases is refused without a look at the readers, of which there are as many.
  Plan plan = overlapped();
  const std::uint32_t count = 1'000'000;
  const BufferId released = plan.releases.front().buffer;
  append(plan, plan.steps.back().reads, std::vector<BufferId>(count, released));
  for (std::uint32_t i = 0; i < count; ++i) plan.releases.push_back(plan.releases.front());
  CHECK(check_plan(plan, kPaired, kOneGpu, Topology(kOneGpu)).size() == 20);
}
