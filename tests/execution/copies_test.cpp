// Copies over links and memories, by hand. The tensors are inputs, in place wherever they are first
// needed; one operator of no duration makes the plans whole.
#include "support/played.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::Named;
using test::Played;
using test::seconds;

constexpr const char* kMemories =
    "platform: p\nmemories:\n  hbm: {capacity: unlimited}\n  dram: {capacity: unlimited}\n"
    "  disk: {capacity: unlimited}\nprocessors:\n  gpu: {memory: hbm}\n";

struct Sizes {
  int x = 8, y = 4, z = 6;
};

class Copies {
 public:
  explicit Copies(const std::string& platform, Sizes sizes = {})
      : workload_(test::workload_of(
            fmt::format("workload: w\ninputs: {{x: {} B, y: {} B, z: {} B}}\ngraph:\n"
                        "  - {{name: o, inputs: [x, y, z], forward: 0 s, backward: 0 s}}\n",
                        sizes.x, sizes.y, sizes.z))),
        platform_(test::platform_of(platform)),
        named_(workload_, platform_),
        builder_(workload_, platform_, "test") {}

  StepId copy(const std::string& tensor, const std::string& from, const std::string& to) {
    return builder_.copy(builder_.channel(named_.memory(from), named_.memory(to)),
                         named_.tensor(tensor), 0, SourceRelease::keep);
  }
  PlanBuilder& builder() { return builder_; }

  Played play() {
    const LaneId stream = builder_.stream(ProcessorId{0});
    for (std::uint32_t op = 0; op < workload_.operators.size(); ++op)
      builder_.compute(stream, OperatorId{op});
    return test::play(builder_.finish(), workload_, platform_);
  }

 private:
  Workload workload_;
  Platform platform_;
  Named named_;
  PlanBuilder builder_;
};

/// Start and end in whole seconds.
std::pair<std::int64_t, std::int64_t> span(const Played& it, StepId step) {
  return {it.start(step).count() / seconds(1).count(), it.end(step).count() / seconds(1).count()};
}
using Span = std::pair<std::int64_t, std::int64_t>;

std::string with_link(const std::string& keys) {
  return std::string(kMemories) + "links:\n  bus: {between: [hbm, dram]" + keys + "}\n";
}

}  // namespace

TEST_CASE("a full-duplex fifo link carries one copy at a time each way") {
  // Latency 1 s; out at 2 B/s, in at 3 B/s. x: 1 + 8/2 = 5; y: 1 + 4/2 = 3; z: 1 + 6/3 = 3.
  Copies copies(with_link(", latency: 1 s, bandwidth: {to_dram: 2 B/s, to_hbm: 3 B/s}"));
  const StepId x = copies.copy("x", "hbm", "dram"), y = copies.copy("y", "hbm", "dram");
  const StepId z = copies.copy("z", "dram", "hbm");
  const Played it = copies.play();
  CHECK(span(it, x) == Span{0, 5});
  CHECK(span(it, y) == Span{5, 8});
  CHECK(span(it, z) == Span{0, 3});
  CHECK(it.execution.makespan == seconds(8));
  CHECK(it.metrics.links[0].bytes == std::array{Bytes{12}, Bytes{6}});
  CHECK(it.metrics.links[0].busy == std::array{1.0, 0.375});
  CHECK_FALSE(it.metrics.links[0].busy_of_both);
  CHECK(busy_share(it.metrics.links[0]) == 1.0);
  CHECK(it.execution.memories[1].bytes_written == Bytes{12});
  CHECK(it.execution.memories[1].bytes_read == Bytes{6});
}

TEST_CASE("a half-duplex fifo link carries one copy at a time, in issue order") {
  // x out [0,4); z was issued before y: in [4,6), then y out [6,8).
  Copies copies(with_link(", duplex: half, bandwidth: {to_dram: 2 B/s, to_hbm: 3 B/s}"));
  const StepId x = copies.copy("x", "hbm", "dram"), z = copies.copy("z", "dram", "hbm");
  const StepId y = copies.copy("y", "hbm", "dram");
  const Played it = copies.play();
  CHECK(span(it, x) == Span{0, 4});
  CHECK(span(it, z) == Span{4, 6});
  CHECK(span(it, y) == Span{6, 8});
  // What each direction carried is kept apart.
  CHECK(it.metrics.links[0].bytes == std::array{Bytes{12}, Bytes{6}});
  CHECK(it.metrics.links[0].busy == std::array{0.75, 0.25});
  // Both take turns on it, all of the time.
  CHECK(it.metrics.links[0].busy_of_both == 1.0);
  CHECK(busy_share(it.metrics.links[0]) == 1.0);
}

TEST_CASE("on a fair link the latency elapses first, then copies share the bandwidth") {
  // 2 B/s, latency 1 s. x and y start at 0 and join at 1, 1 B/s each: y ends at 5, x has 4 B left
  // and the link for itself: 7. z, issued in the channel after y, starts after the end of y at 5,
  // joins at 6, when x has 2 B left: 1 B/s each, x ends at 8, z has 4 B left: 10.
  Copies copies(with_link(", sharing: fair, latency: 1 s, bandwidth: 2 B/s"));
  const StepId x = copies.copy("x", "hbm", "dram"), y = copies.copy("y", "hbm", "dram");
  const StepId z = copies.copy("z", "hbm", "dram");
  copies.builder().after_end(z, y);
  const Played it = copies.play();
  CHECK(span(it, x) == Span{0, 8});
  CHECK(span(it, y) == Span{0, 5});
  CHECK(span(it, z) == Span{5, 10});
}

TEST_CASE("the directions of a fair link share only where it is half-duplex") {
  // 2 B/s. Full: x out 8/2 = 4 s, z in 6/2 = 3 s. Half: 1 B/s each, z ends at 6, x has 2 B left: 7.
  for (const bool half : {false, true}) {
    Copies copies(with_link(std::string(", sharing: fair, bandwidth: 2 B/s") +
                            (half ? ", duplex: half" : "")));
    const StepId x = copies.copy("x", "hbm", "dram"), z = copies.copy("z", "dram", "hbm");
    const Played it = copies.play();
    CHECK(span(it, x) == Span{0, half ? 7 : 4});
    CHECK(span(it, z) == Span{0, half ? 6 : 3});
  }
}

TEST_CASE("a memory's own bandwidth limits every copy, but is not shared") {
  // A fair link without a limit, a disk that takes 1 B/s: y (4 B) and z (6 B) end at 4 and 6.
  Copies copies(
      "platform: p\nmemories:\n  hbm: {capacity: unlimited}\n"
      "  dram: {capacity: unlimited, write: {bandwidth: 1 B/s}}\nprocessors:\n"
      "  gpu: {memory: hbm}\nlinks:\n  bus: {between: [hbm, dram], sharing: fair}\n");
  const StepId y = copies.copy("y", "hbm", "dram"), z = copies.copy("z", "hbm", "dram");
  const Played it = copies.play();
  CHECK(span(it, y) == Span{0, 4});
  CHECK(span(it, z) == Span{0, 6});
}

TEST_CASE("over several links latencies add, the least bandwidth counts, all are held") {
  // x over both: 1 + 2 + 8/2 = 7 s at the 2 B/s of the second. y over the first alone waits for it:
  // 7 + 1 + 4/4 = 9. z the other way over the second: [0, 2 + 6/2).
  Copies copies(std::string(kMemories) +
                "links:\n  a: {between: [hbm, dram], latency: 1 s, bandwidth: 4 B/s}\n"
                "  b: {between: [dram, disk], latency: 2 s, bandwidth: 2 B/s}\n");
  const StepId x = copies.copy("x", "hbm", "disk"), y = copies.copy("y", "hbm", "dram");
  const StepId z = copies.copy("z", "disk", "dram");
  const Played it = copies.play();
  CHECK(span(it, x) == Span{0, 7});
  CHECK(span(it, y) == Span{7, 9});
  CHECK(span(it, z) == Span{0, 5});
  CHECK(it.metrics.links[0].bytes[0] == Bytes{12});
  CHECK(it.metrics.links[1].bytes == std::array{Bytes{8}, Bytes{6}});
}

TEST_CASE("a copy that waits for one link of its way holds none of the others") {
  // x hbm -> dram holds a until 8; y hbm -> disk wants a and b: it waits for a. z dram -> disk,
  // issued after y, wants b alone, which is free: [0, 6). Then y over both at 8: [8, 12).
  Copies copies(std::string(kMemories) +
                "links:\n  a: {between: [hbm, dram], bandwidth: 1 B/s}\n"
                "  b: {between: [dram, disk], bandwidth: 1 B/s}\n");
  const StepId x = copies.copy("x", "hbm", "dram"), y = copies.copy("y", "hbm", "disk");
  const StepId z = copies.copy("z", "dram", "disk");
  const Played it = copies.play();
  CHECK(span(it, x) == Span{0, 8});
  CHECK(span(it, z) == Span{0, 6});
  CHECK(span(it, y) == Span{8, 12});
}

TEST_CASE("a fair link behind a fifo one: the fifo link is held throughout") {
  // x hbm -> disk over fifo a (4 B/s) and fair b (2 B/s): [0, 4). y the same way waits: [4, 6).
  // z dram -> disk shares b with x: 1 B/s each from 0 to 6, when z ends; x has 2 B left: 7.
  Copies copies(std::string(kMemories) +
                "links:\n  a: {between: [hbm, dram], bandwidth: 4 B/s}\n"
                "  b: {between: [dram, disk], bandwidth: 2 B/s, sharing: fair}\n");
  const StepId x = copies.copy("x", "hbm", "disk"), y = copies.copy("y", "hbm", "disk");
  const StepId z = copies.copy("z", "dram", "disk");
  const Played it = copies.play();
  CHECK(span(it, x) == Span{0, 7});
  CHECK(span(it, z) == Span{0, 6});
  CHECK(span(it, y) == Span{7, 9});
}

TEST_CASE("a card adds its latencies, limits the bandwidth, rounds up to blocks and erases") {
  // Bus 1 s latency, 8 B/s. Out: write latency 2 s, 4 B/s; x = 8 B is 2 blocks of 5 B: 10 B in
  // 2.5 s; erase blocks of 3 B, 3 of them, 1 s each: 1 + 2 + 2.5 + 3 = 8.5 s. In: read latency 3 s,
  // 2 B/s, the same 10 B in 5 s, nothing erased: 9 s.
  Copies copies(
      "platform: board\nmemories:\n  hbm: {capacity: unlimited}\n"
      "  sd: {capacity: unlimited, block: 5 B, erase: {block: 3 B, time: 1 s},\n"
      "       write: {latency: 2 s, bandwidth: 4 B/s}, read: {latency: 3 s, bandwidth: 2 B/s}}\n"
      "processors:\n  gpu: {memory: hbm}\n"
      "links:\n  spi: {between: [hbm, sd], latency: 1 s, bandwidth: 8 B/s}\n");
  const StepId out = copies.copy("x", "hbm", "sd"), in = copies.copy("x", "sd", "hbm");
  const Played it = copies.play();
  CHECK(it.end(out) - it.start(out) == Time{8'500'000'000'000});
  CHECK(it.start(in) == it.end(out));
  CHECK(it.end(in) - it.start(in) == seconds(9));
  // Whole blocks move; the tensor takes its own size.
  CHECK(it.metrics.links[0].bytes == std::array{Bytes{10}, Bytes{10}});
  CHECK(it.execution.memories[1].peak.requested == Bytes{8});
}

TEST_CASE("nothing to move takes the latency, no limit takes no time, one memory takes neither") {
  Sizes sizes;
  sizes.x = 0;
  Copies slow(with_link(", latency: 2 s, bandwidth: 1 B/s"), sizes);
  const StepId empty = slow.copy("x", "hbm", "dram");
  CHECK(span(slow.play(), empty) == Span{0, 2});

  Copies shared(with_link(", latency: 2 s, bandwidth: 1 B/s, sharing: fair"), sizes);
  const StepId empty_shared = shared.copy("x", "hbm", "dram");
  CHECK(span(shared.play(), empty_shared) == Span{0, 2});

  Copies unlimited(with_link(", latency: 2 s"));
  const StepId fast = unlimited.copy("x", "hbm", "dram");
  CHECK(span(unlimited.play(), fast) == Span{0, 2});

  Copies same(with_link(", latency: 2 s"));
  const StepId hand_over = same.copy("x", "hbm", "hbm");
  const Played it = same.play();
  CHECK(span(it, hand_over) == Span{0, 0});
  CHECK(it.metrics.links[0].bytes == std::array{Bytes{}, Bytes{}});
}

TEST_CASE("a copy back in waits until the copy out has freed the source") {
  // F1 [0,2) leaves saved_1 = 4 B. Copy out over 1 B/s: [2,6). F2 reads a_1 from it until 12, so it
  // is freed at 12, although the copy back could start at 6.
  const Workload workload = test::workload_of(
      "workload: w\nchain:\n  - {name: s1, forward: 2 s, backward: 1 s, saved: 4 B}\n"
      "  - {name: s2, forward: 10 s, backward: 1 s, saved: 1 B}\n");
  const Platform platform = test::platform_of(with_link(", bandwidth: 1 B/s"));
  const Named named(workload, platform);
  PlanBuilder builder(workload, platform, "test");
  const LaneId stream = builder.stream(ProcessorId{0});
  const TensorId saved = named.tensor("s1.saved");
  builder.compute(stream, named.op("s1.forward"));
  const StepId out =
      builder.copy(builder.channel(MemoryId{0}, MemoryId{1}), saved, 0, SourceRelease::whole);
  builder.compute(stream, named.op("s2.forward"));
  const StepId in =
      builder.copy(builder.channel(MemoryId{1}, MemoryId{0}), saved, 0, SourceRelease::whole);
  builder.compute(stream, named.op("s2.backward"));
  builder.compute(stream, named.op("s1.backward"));
  const Played it = test::play(builder.finish(), workload, platform);
  CHECK(span(it, out) == Span{2, 6});
  CHECK(span(it, in) == Span{12, 16});
}

TEST_CASE("a copy back waits for nothing that its copy out keeps") {
  // As above, but the copy out keeps saved_1, which stays until B1: the copy back starts at 6, when
  // the copy out is over, into a place of its own.
  const Workload workload = test::workload_of(
      "workload: w\nchain:\n  - {name: s1, forward: 2 s, backward: 1 s, saved: 4 B}\n"
      "  - {name: s2, forward: 10 s, backward: 1 s, saved: 1 B}\n");
  const Platform platform = test::platform_of(with_link(", bandwidth: 1 B/s"));
  const Named named(workload, platform);
  PlanBuilder builder(workload, platform, "test");
  const LaneId stream = builder.stream(ProcessorId{0});
  const TensorId saved = named.tensor("s1.saved");
  builder.compute(stream, named.op("s1.forward"));
  builder.copy(builder.channel(MemoryId{0}, MemoryId{1}), saved, 0, SourceRelease::keep);
  builder.compute(stream, named.op("s2.forward"));
  const StepId in =
      builder.copy(builder.channel(MemoryId{1}, MemoryId{0}), saved, 0, SourceRelease::whole);
  builder.compute(stream, named.op("s2.backward"));
  builder.compute(stream, named.op("s1.backward"));
  const Played it = test::play(builder.finish(), workload, platform);
  CHECK(span(it, in) == Span{6, 10});
}

TEST_CASE("which copy out a copy back waits for does not depend on how buffers are numbered") {
  // The plan of the test before the last: the copy back starts at 12. Files list buffers in any
  // order.
  const Workload workload = test::workload_of(
      "workload: w\nchain:\n  - {name: s1, forward: 2 s, backward: 1 s, saved: 4 B}\n"
      "  - {name: s2, forward: 10 s, backward: 1 s, saved: 1 B}\n");
  const Platform platform = test::platform_of(with_link(", bandwidth: 1 B/s"));
  const Named named(workload, platform);
  PlanBuilder builder(workload, platform, "test");
  const LaneId stream = builder.stream(ProcessorId{0});
  const TensorId saved = named.tensor("s1.saved");
  builder.compute(stream, named.op("s1.forward"));
  builder.copy(builder.channel(MemoryId{0}, MemoryId{1}), saved, 0, SourceRelease::whole);
  builder.compute(stream, named.op("s2.forward"));
  const StepId in =
      builder.copy(builder.channel(MemoryId{1}, MemoryId{0}), saved, 0, SourceRelease::whole);
  builder.compute(stream, named.op("s2.backward"));
  builder.compute(stream, named.op("s1.backward"));
  Plan plan = builder.finish();
  const auto turn = [last = plan.buffers.size() - 1](BufferId& b) {
    b = BufferId{static_cast<std::uint32_t>(last - static_cast<std::size_t>(b))};
  };
  std::ranges::reverse(plan.buffers);
  std::ranges::for_each(plan.buffer_lists, turn);
  std::ranges::for_each(plan.initial, turn);
  for (Release& release : plan.releases) turn(release.buffer);
  CHECK(span(test::play(plan, workload, platform), in) == Span{12, 16});
}

}  // namespace plimsoll
