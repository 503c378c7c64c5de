// How much the machine does for a plan: counts of events and tries, which must not grow faster than
// the plan.
#include "support/played.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::Named;
using test::Played;
using test::seconds;

/// Operators of 1 s, each of which sends what it makes to dram over 10 B/s: of six one makes 40 B,
/// the others 1 B, so that the large one is on its way while the small ones come and go.
Played groups_of_six(std::uint32_t groups) {
  std::string text = "workload: w\ngraph:\n";
  for (std::uint32_t i = 0; i < 6 * groups; ++i)
    text +=
        fmt::format("  - {{name: n{0}, outputs: {{t{0}: {1} B}}, forward: 1 s, backward: 0 s}}\n",
                    i, i % 6 == 0 ? 40 : 1);
  const Workload workload = test::workload_of(text);
  const Platform platform = test::platform_of(
      "platform: p\nmemories:\n  hbm: {capacity: unlimited}\n  dram: {capacity: unlimited}\n"
      "processors:\n  gpu: {memory: hbm}\n"
      "links:\n  bus: {between: [hbm, dram], bandwidth: 10 B/s, sharing: fair}\n");
  const Named named(workload, platform);
  PlanBuilder builder(workload, platform, "test");
  const LaneId stream = builder.stream(ProcessorId{0});
  const LaneId channel = builder.channel(named.memory("hbm"), named.memory("dram"));
  for (std::uint32_t i = 0; i < 6 * groups; ++i) {
    builder.compute(stream, named.op(fmt::format("n{}.forward", i)));
    builder.copy(channel, named.tensor(fmt::format("t{}", i)), 0, SourceRelease::keep);
  }
  for (std::uint32_t i = 6 * groups; i-- > 0;)
    builder.compute(stream, named.op(fmt::format("n{}.backward", i)));
  return test::play(builder.finish(), workload, platform);
}

}  // namespace

TEST_CASE("a fair link handles one event for each end, whatever else is on its way") {
  // Of each stage: the ends of its two operators, and of its copy.
  for (const std::uint32_t groups : {10u, 40u}) {
    const Played it = groups_of_six(groups);
    CHECK(it.execution.status == RunStatus::ok);
    CHECK(it.execution.events <= 6 * groups * 3);
    CHECK(it.execution.tries == it.plan.steps.size());
  }
}

TEST_CASE("a link that falls free is offered to one of those that wait for it") {
  // Copies of one tensor to 60 disks behind one link, all ready at once: each is tried when it is
  // ready, and again when its turn has come.
  constexpr std::uint32_t kDisks = 60;
  std::string text =
      "platform: p\nmemories:\n  hbm: {capacity: unlimited}\n  hub: {capacity: unlimited}\n";
  std::string links = "links:\n  up: {between: [hbm, hub], bandwidth: 1 B/s}\n";
  for (std::uint32_t d = 0; d < kDisks; ++d) {
    text += fmt::format("  disk{}: {{capacity: unlimited}}\n", d);
    links += fmt::format("  down{0}: {{between: [hub, disk{0}]}}\n", d);
  }
  const Platform platform = test::platform_of(text + "processors:\n  gpu: {memory: hbm}\n" + links);
  const Workload workload = test::workload_of(
      "workload: w\ninputs: {x: 1 B}\ngraph:\n"
      "  - {name: o, inputs: [x], forward: 0 s, backward: 0 s}\n");
  const Named named(workload, platform);
  PlanBuilder builder(workload, platform, "test");
  std::vector<StepId> copies;
  for (std::uint32_t d = 0; d < kDisks; ++d)
    copies.push_back(
        builder.copy(builder.channel(named.memory("hbm"), named.memory(fmt::format("disk{}", d))),
                     named.tensor("x"), 0, SourceRelease::keep));
  const LaneId stream = builder.stream(ProcessorId{0});
  for (std::uint32_t op = 0; op < workload.operators.size(); ++op)
    builder.compute(stream, OperatorId{op});
  const Played it = test::play(builder.finish(), workload, platform);
  for (std::uint32_t d = 0; d < kDisks; ++d) CHECK(it.start(copies[d]) == seconds(d));
  CHECK(it.execution.tries <= it.plan.steps.size() + kDisks);
}

}  // namespace plimsoll
