// GPipe and 1F1B against their closed forms, and what pipelines refuse.
#include "property/random_chains.hpp"
#include "support/policies.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::Dice;
using test::Played;
using test::seconds;

/// A fifo link is held for the latency, too: messages that come faster than that need a fair one.
std::string row_of(std::int64_t devices, std::int64_t latency, const char* sharing = "fifo") {
  std::string memories, processors, links;
  for (std::int64_t i = 0; i < devices; ++i) {
    memories += fmt::format("  hbm{}: {{capacity: unlimited}}\n", i);
    processors += fmt::format("  gpu{0}: {{memory: hbm{0}}}\n", i);
    if (i + 1 < devices)
      links += fmt::format("  l{0}: {{between: [hbm{0}, hbm{1}], latency: {2} s, sharing: {3}}}\n",
                           i, i + 1, latency, sharing);
  }
  return "platform: row\nmemories:\n" + memories + "processors:\n" + processors + "links:\n" +
         links;
}

std::string equal_stages(std::int64_t stages, std::int64_t forward, std::int64_t backward) {
  std::string text = "workload: equal\nchain:\n";
  for (std::int64_t i = 0; i < stages; ++i)
    text += fmt::format("  - {{name: s{}, forward: {} s, backward: {} s, saved: 1 B}}\n", i,
                        forward, backward);
  return text;
}

struct Case {
  std::int64_t p, m, forward, backward, latency;
  /// Messages never follow each other faster than the latency.
  [[nodiscard]] bool spaced() const { return latency <= std::min(forward, backward); }
  [[nodiscard]] std::string policy(const char* name) const {
    return fmt::format("{{name: pipeline/{}, microbatches: {}}}", name, m);
  }
};

Case random_case(Dice& dice) {
  Case it{dice(2, 6), dice(1, 12), dice(1, 9), dice(1, 9), 0};
  if (dice(0, 1) == 1) it.latency = dice(1, 9);
  return it;
}

/// A chain of equal stages, one a device.
Played played(const Case& it, const char* name) {
  const Workload workload = test::workload_of(equal_stages(it.p, it.forward, it.backward));
  const Platform platform =
      test::platform_of(row_of(it.p, it.latency, it.spaced() ? "fifo" : "fair"));
  return test::play_policy(it.policy(name), workload, platform);
}

std::string error_of(const std::string& policy, const std::string& workload,
                     const std::string& platform) {
  try {
    (void)test::planned(policy, test::workload_of(workload), test::platform_of(platform));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("gpipe: (m+p-1)(F+B) + 2c(p-1), m microbatches on every device") {
  Dice dice(20240622);
  for (int round = 0; round < 500; ++round) {
    const Case it = random_case(dice);
    CAPTURE(it.p, it.m, it.forward, it.backward, it.latency);
    const Played run = played(it, "gpipe");
    const std::int64_t makespan =
        (it.m + it.p - 1) * (it.forward + it.backward) + 2 * it.latency * (it.p - 1);
    REQUIRE(run.execution.makespan == seconds(makespan));
    REQUIRE(run.execution.period == seconds(makespan));
    for (std::int64_t i = 0; i < it.p; ++i) {
      const auto& gpu = run.metrics.processors[static_cast<std::size_t>(i)];
      // Device i starts i (F + c) late and ends i (B + c) early.
      REQUIRE(gpu.span == seconds(makespan - i * (it.forward + it.backward + 2 * it.latency)));
      REQUIRE(gpu.busy == seconds(it.m * (it.forward + it.backward)));
      REQUIRE(run.peak(MemoryId{static_cast<std::uint32_t>(i)}) == it.m);
    }
    if (it.spaced()) REQUIRE(run.plan.claims.makespan == seconds(makespan));
    test::require_claims_hold(run);
  }
}

TEST_CASE("1f1b: its makespan with and without latency, min(m, p-i) microbatches on device i") {
  // (m+p-1)(F+B) + 2c [(p-1) + (m-1) - (floor((m-2)/p) + 1)] for m >= 2; p(F+B) + 2c(p-1) for one.
  Dice dice(20240623);
  for (int round = 0; round < 500; ++round) {
    const Case it = random_case(dice);
    CAPTURE(it.p, it.m, it.forward, it.backward, it.latency);
    const Played run = played(it, "1f1b");
    const std::int64_t messages = it.m == 1 ? it.p - 1 : it.p - 1 + it.m - 2 - (it.m - 2) / it.p;
    const std::int64_t makespan =
        (it.m + it.p - 1) * (it.forward + it.backward) + 2 * it.latency * messages;
    REQUIRE(run.execution.makespan == seconds(makespan));
    for (std::int64_t i = 0; i < it.p; ++i)
      REQUIRE(run.peak(MemoryId{static_cast<std::uint32_t>(i)}) == std::min(it.m, it.p - i));
    if (it.latency == 0)
      for (std::int64_t i = 0; i < it.p; ++i)
        REQUIRE(run.metrics.processors[static_cast<std::size_t>(i)].span ==
                seconds(makespan - i * (it.forward + it.backward)));
    if (it.spaced()) REQUIRE(run.plan.claims.makespan == seconds(makespan));
    test::require_claims_hold(run);
  }
}

TEST_CASE("a pipeline sends over links what the next stage reads, and holds it for its backward") {
  // Two devices, a_1 2 B, saved 3 B, gradients as outputs, 1 B/s. F1 [0,1), copy [1,3), F2 [3,4):
  // hbm1 holds a_1 2 + saved_2 3, B2 [4,5) adds delta_2 0 and delta_1 2: 7 B. Copy [5,7), B1 [7,8).
  const Workload workload = test::workload_of(
      "workload: w\nchain:\n  - {name: s1, forward: 1 s, backward: 1 s, output: 2 B, saved: 3 B}\n"
      "  - {name: s2, forward: 1 s, backward: 1 s, saved: 3 B}\n");
  const Platform platform = test::platform_of(
      "platform: p\nmemories:\n  hbm0: {capacity: unlimited}\n  hbm1: {capacity: unlimited}\n"
      "processors:\n  gpu0: {memory: hbm0}\n  gpu1: {memory: hbm1}\n"
      "links:\n  l: {between: [hbm0, hbm1], bandwidth: 1 B/s}\n");
  const Played run = test::play_policy("pipeline/1f1b", workload, platform);
  CHECK(run.execution.makespan == seconds(8));
  CHECK(run.peak(MemoryId{1}) == 7);
  CHECK(run.peak(MemoryId{0}) == 5);  // saved_1 and the arriving delta_1
  CHECK(run.metrics.links[0].bytes == std::array{Bytes{2}, Bytes{2}});
}

TEST_CASE("a message of a gradient waits until every reader of the value has added to it") {
  // a is read by c and d on gpu1; d's backward begins a.gradient at 4, c's completes it at 10 and
  // only then is it sent.
  //   o [0,1)  a [1,2)  c [2,3)  d [3,4)  d.b [4,5)  c.b [5,10)  a.gradient [10,11)  o.b [11,12)
  const Workload workload = test::workload_of(R"(
workload: g
inputs: {x: 1 B}
graph:
  - {name: o, inputs: [x], outputs: {a: 1 B}, forward: 1 s, backward: 1 s}
  - {name: c, inputs: [a], outputs: {b: 1 B}, forward: 1 s, backward: 5 s}
  - {name: d, inputs: [a, b], outputs: {e: 1 B}, forward: 1 s, backward: 1 s}
)");
  const Platform platform = test::platform_of(
      "platform: p\nmemories:\n  hbm0: {capacity: unlimited}\n  hbm1: {capacity: unlimited}\n"
      "processors:\n  gpu0: {memory: hbm0}\n  gpu1: {memory: hbm1}\n"
      "links:\n  l: {between: [hbm0, hbm1], bandwidth: 1 B/s}\n");
  const Played run = test::play_policy("pipeline/gpipe", workload, platform);
  CHECK(run.execution.makespan == seconds(12));
}

TEST_CASE("devices may be a part of the platform, in any order") {
  const Workload workload = test::workload_of(equal_stages(2, 1, 1));
  const Played run = test::play_policy("{name: pipeline/gpipe, devices: [gpu2, gpu1]}", workload,
                                       test::platform_of(row_of(3, 0)));
  CHECK(run.execution.makespan == seconds(4));
  CHECK_FALSE(run.execution.processors[0].first_start);
  CHECK(*run.execution.processors[2].first_start == Time{});
  CHECK(*run.execution.processors[1].first_start == seconds(1));
}

TEST_CASE("a partition may be balanced or given") {
  // Times 2 each, five stages on two devices: balanced 3 + 2, so gpu0 is busy 3 x 2; given 1 + 4.
  const Workload workload = test::workload_of(equal_stages(5, 1, 1));
  const Platform platform = test::platform_of(row_of(2, 0));
  const auto busy = [&](const char* keys) {
    return test::play_policy(fmt::format("{{name: pipeline/gpipe{}}}", keys), workload, platform)
        .metrics.processors[0]
        .busy;
  };
  CHECK(busy("") == seconds(6));
  CHECK(busy(", partition: balanced") == seconds(6));
  CHECK(busy(", partition: [1]") == seconds(2));
}

TEST_CASE("an optimizer operator runs once for every memory, on the device of its stage") {
  WorkloadOptions options;
  options.optimizer = Optimizer::sgd;
  const Workload workload = test::workload_of(
      "workload: w\ninput: [4]\nlayers:\n  - linear: 8\n  - linear: 2\nloss: sum\n", options);
  const Platform platform = test::platform_of(
      "platform: p\nmemories:\n  ram: {capacity: unlimited}\nprocessors:\n"
      "  c0: {memory: ram, compute: {fp32: 1 GFLOP/s}}\n"
      "  c1: {memory: ram, compute: {fp32: 1 GFLOP/s}}\n");
  const Played run = test::play_policy("pipeline/gpipe", workload, platform);
  std::vector<std::string> updates;
  for (const Step& step : run.plan.steps)
    if (workload[step.op].phase == Phase::optimizer)
      updates.push_back(workload[step.op].name + " on " +
                        platform[run.plan[step.lane].processor].name);
  CHECK(updates == std::vector<std::string>{"linear_1.update on c0", "linear_2.update on c1"});
}

TEST_CASE("what a pipeline cannot do, it says") {
  const std::string two = row_of(2, 0), five = equal_stages(5, 1, 1);
  const auto error = [&](const std::string& keys, const std::string& platform) {
    return error_of("{name: pipeline/1f1b" + keys + "}", five, platform);
  };
  CHECK(error(", virtual_stages: 2", two) ==
        "policy:1:8: error: `pipeline/1f1b` holds one stage a device; virtual_stages is 2");
  CHECK(error(", devices: [gpu0, gpuu1]", two) ==
        "policy:1:39: error: platform `row` has no processor `gpuu1`; did you mean `gpu1`?");
  CHECK(error(", devices: [gpu0, gpu0]", two) ==
        "policy:1:39: error: device `gpu0` is named twice");
  CHECK(error(", partition: [1, 2]", two) ==
        "policy:1:34: error: 2 cuts make 3 slots; expected 2 (devices x virtual_stages)");
  CHECK(error(", partition: [5]", two) ==
        "policy:1:34: error: cut 5 is not between 0 and 5; cuts increase and leave no slot empty");
  CHECK(error("", row_of(6, 0)) ==
        "policy:1:8: error: 6 devices x 1 virtual stages make 6 slots, but `equal` can be cut into "
        "5 stages at most");
  CHECK(error(", devices: [gpu0, gpu1]",
              "platform: apart\nmemories:\n  hbm0: {capacity: unlimited}\n"
              "  hbm1: {capacity: unlimited}\nprocessors:\n  gpu0: {memory: hbm0}\n"
              "  gpu1: {memory: hbm1}\n") ==
        "policy:1:8: error: no link joins `hbm0` and `hbm1`, which hold neighbouring stages");
}

}  // namespace plimsoll
