// Pipelines through networks in which one value is carried: what an encoder makes, to all of a decoder.
#include "execution/held_stages.hpp"
#include "support/dice.hpp"
#include "support/library.hpp"
#include "support/policies.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::Named;
using test::Played;
using test::seconds;

/// An encoder e1, e2 makes v of 100 B; a decoder that begins with d0 has four layers that read it. Cut
/// behind e2 and d2, each of three devices takes 2 s for a forward and 4 s for a backward.
Workload small_encoder_decoder() {
  return test::workload_of(
      "workload: small\ninputs: {x: 0 B, t: 0 B}\ngraph:\n"
      "  - {name: e1, inputs: [x], outputs: {a: 1 B}, forward: 1 s, backward: 2 s}\n"
      "  - {name: e2, inputs: [a], outputs: {v: 100 B}, forward: 1 s, backward: 2 s}\n"
      "  - {name: d0, inputs: [t], outputs: {s0: 1 B}, forward: 0 s, backward: 0 s}\n"
      "  - {name: d1, inputs: [s0, v], outputs: {s1: 10 B}, forward: 1 s, backward: 2 s}\n"
      "  - {name: d2, inputs: [s1, v], outputs: {s2: 1000 B}, forward: 1 s, backward: 2 s}\n"
      "  - {name: d3, inputs: [s2, v], outputs: {s3: 1 B}, forward: 1 s, backward: 2 s}\n"
      "  - {name: d4, inputs: [s3, v], outputs: {s4: 1 B}, forward: 1 s, backward: 2 s}\n");
}

/// Devices in a row, each with a memory of its own.
Platform row_of_devices(int devices, const std::string& link) {
  std::string memories, processors, links;
  for (int d = 0; d < devices; ++d) {
    memories += fmt::format("  hbm{}: {{capacity: unlimited}}\n", d);
    processors += fmt::format("  gpu{0}: {{memory: hbm{0}}}\n", d);
    if (d > 0) links += fmt::format("  l{1}: {{between: [hbm{0}, hbm{1}], {2}}}\n", d - 1, d, link);
  }
  return test::platform_of("platform: row\nmemories:\n" + memories + "processors:\n" + processors +
                           "links:\n" + links);
}

const char* const kFree = "latency: 0 s";

/// What each copy between two memories moves of a microbatch: "v s2".
std::map<std::pair<int, int>, std::string> messages_of(const Played& run, const Workload& workload,
                                                       std::uint32_t microbatch) {
  std::map<std::pair<int, int>, std::string> all;
  for (const Step& step : run.plan.steps) {
    if (step.kind != StepKind::copy || step.microbatch != microbatch) continue;
    const Lane& lane = run.plan[step.lane];
    std::string& text = all[{static_cast<int>(lane.from), static_cast<int>(lane.to)}];
    const TensorId moved = run.plan[run.plan.list(step.writes).front()].tensor;
    text += (text.empty() ? "" : " ") + workload[moved].name;
  }
  return all;
}

/// The operators whose additions are in what `reader` of a microbatch reads of `gradient`.
std::set<std::string> added_up(const Plan& plan, const Workload& workload, TensorId gradient,
                               OperatorId reader, std::uint32_t microbatch) {
  std::map<BufferId, std::set<std::string>> in;
  for (const Step& step : plan.steps) {
    if (step.microbatch != microbatch) continue;
    std::optional<BufferId> read, written;
    for (const BufferId id : plan.list(step.reads))
      if (plan[id].tensor == gradient) read = id;
    for (const BufferId id : plan.list(step.writes))
      if (plan[id].tensor == gradient) written = id;
    if (step.kind == StepKind::copy && written) in[*written] = in[*read];
    if (step.kind != StepKind::compute) continue;
    if (step.op == reader) return read ? in[*read] : std::set<std::string>();
    const auto made = workload.list(workload[step.op].kept);
    if (std::ranges::find(made, gradient) != made.end())
      in[written ? *written : *read].insert(workload[step.op].name);
  }
  return {};
}

}  // namespace

// (m + p - 1)(F + B) of equal stages, and 2 c (p - 1) where messages come late, whatever is carried.
TEST_CASE("an encoder-decoder of equal stages takes the time of a chain of them") {
  const Workload workload = small_encoder_decoder();
  const Platform free = row_of_devices(3, kFree);
  for (const char* name : {"1f1b", "gpipe"}) {
    const Played run = test::play_policy(
        fmt::format("{{name: pipeline/{}, microbatches: 4, partition: [2, 5]}}", name), workload,
        free);
    test::require_claims_hold(run);
    CHECK(run.execution.makespan == seconds((4 + 3 - 1) * (2 + 4)));
  }
  // Over fair links messages wait for the latency side by side.
  const Played late =
      test::play_policy("{name: pipeline/gpipe, microbatches: 4, partition: [2, 5]}", workload,
                        row_of_devices(3, "latency: 1 s, sharing: fair"));
  CHECK(late.execution.makespan == seconds(36 + 2 * 1 * (3 - 1)));
}

// At 1 s a message of 100 B and 10 s one of 1000 B: v leaves the first device at 2 s; d1 and d2 run
// until 5 s, then s2 leaves until 15 s and v, which is handed on, behind it until 16 s. d3 and d4 run
// until 18 s, their backwards until 22 s; the gradient of s2 leaves until 32 s, and the sum so far of
// that of v until 33 s. d2 and d1 have added to the sum at 37 s; it is there at 38 s, and the encoder's
// backwards end at 42 s.
TEST_CASE("messages of both values follow each other on the link") {
  const Workload workload = small_encoder_decoder();
  const Played run = test::play_policy("{name: pipeline/1f1b, microbatches: 1, partition: [2, 5]}",
                                       workload, row_of_devices(3, "bandwidth: 100 B/s"));
  test::require_claims_hold(run);
  CHECK(run.execution.makespan == seconds(42));
}

TEST_CASE("each device of a decoder hands both values on, and the gradients of both") {
  const Workload workload = small_encoder_decoder();
  const Named named(workload, row_of_devices(3, kFree));
  for (const char* name : {"1f1b", "gpipe"}) {
    const Played run = test::play_policy(
        fmt::format("{{name: pipeline/{}, microbatches: 3, partition: [2, 5]}}", name), workload,
        row_of_devices(3, kFree));
    for (std::uint32_t k = 0; k < 3; ++k) {
      auto messages = messages_of(run, workload, k);
      CHECK(messages[{0, 1}] == "v");
      CHECK(messages[{1, 2}] == "s2 v");
      CHECK(messages[{2, 1}] == "s2.gradient v.gradient");
      CHECK(messages[{1, 0}] == "v.gradient");
      CHECK(messages.size() == 4);
      CHECK(added_up(run.plan, workload, named.tensor("v.gradient"), named.op("e2.backward"), k) ==
            std::set<std::string>{"d1.backward", "d2.backward", "d3.backward", "d4.backward"});
    }
  }
}

// With two chunks a device and three devices, slots are e1 | e2 | d0, d1 | d2 | d3 | d4 on devices 0 1 2 0
// 1 2. Device 1 has v from its own chunk, and device 2 from its first, so that v is sent twice; the sum
// of its gradient goes through all of them, and comes to devices that have had an earlier one.
TEST_CASE("devices of several chunks have a carried value once, and every sum of its gradient") {
  const Workload workload = small_encoder_decoder();
  const Platform platform = test::platform_of(
      "platform: ring\nmemories: {a: {capacity: unlimited}, b: {capacity: unlimited}, c: "
      "{capacity: "
      "unlimited}}\nprocessors: {g0: {memory: a}, g1: {memory: b}, g2: {memory: c}}\nlinks:\n"
      "  ab: {between: [a, b]}\n  bc: {between: [b, c]}\n  ca: {between: [c, a]}\n");
  const Named named(workload, platform);
  for (const char* more : {"", ", recompute: full", ", recompute: [1, 3]"}) {
    INFO(more);
    const Played run = test::play_policy(
        fmt::format("{{name: pipeline/interleaved-1f1b, microbatches: 3, virtual_stages: 2, "
                    "partition: [1, 2, 4, 5, 6]{}}}",
                    more),
        workload, platform);
    test::require_claims_hold(run);
    for (std::uint32_t k = 0; k < 3; ++k) {
      auto messages = messages_of(run, workload, k);
      CHECK(messages[{0, 1}] == "a s2");
      CHECK(messages[{1, 2}] == "v s3");
      CHECK(messages[{2, 0}] == "s1 v");
      CHECK(messages[{2, 1}] == "s3.gradient v.gradient v.gradient");
      CHECK(messages[{1, 0}] == "s2.gradient v.gradient a.gradient");
      CHECK(messages[{0, 2}] == "s1.gradient v.gradient");
      CHECK(added_up(run.plan, workload, named.tensor("v.gradient"), named.op("e2.backward"), k) ==
            std::set<std::string>{"d1.backward", "d2.backward", "d3.backward", "d4.backward"});
    }
  }
}

// 1F1B on three devices keeps 3, 2 and 1 microbatches; what comes from the device before is there as soon
// as that has made it.
TEST_CASE("peaks of an encoder-decoder's stages are those of what they keep and receive") {
  const Workload workload = small_encoder_decoder();
  const Played run = test::play_policy("{name: pipeline/1f1b, microbatches: 4, partition: [2, 5]}",
                                       workload, row_of_devices(3, kFree));
  test::require_claims_hold(run);
  // e1 and e2 keep 101 B; the sum of v's gradient comes, and a's is made.
  CHECK(run.peak(MemoryId{0}) == 3 * 101 + 100 + 1);
  // v, d0, d1 and d2 take 1111 B. When the first backward begins, at 10 s, v of the third microbatch has
  // come as well; of the gradients both of d2's have come, and that of s1 is made.
  CHECK(run.peak(MemoryId{1}) == 2 * (100 + 1 + 10 + 1000) + 100 + (1000 + 100 + 10));
  // v, s2 and d3 take 1101 B while d3's backward runs, with the sum of v's gradient and those of s3 and
  // s2; and v and s2 of the next microbatch have come.
  CHECK(run.peak(MemoryId{2}) == (100 + 1000 + 1) + (100 + 1 + 1000) + (100 + 1000));
}

// v is read by two chunks of each device: it stays while the rest of what they keep leaves.
TEST_CASE(
    "what several chunks of a device read of a carried value does not leave with one of them") {
  const Workload workload = small_encoder_decoder();
  const Platform platform = test::platform_of(
      "platform: ring\nmemories: {a: {capacity: unlimited}, b: {capacity: unlimited}, host: "
      "{capacity: "
      "unlimited}}\nprocessors: {g0: {memory: a}, g1: {memory: b}}\nlinks:\n"
      "  ab: {between: [a, b]}\n  ah: {between: [a, host]}\n  bh: {between: [b, host]}\n");
  for (const char* more : {"", ", recompute: full"}) {
    const Played run = test::play_policy(
        fmt::format(
            "{{name: pipeline/interleaved-1f1b, microbatches: 4, virtual_stages: 3, partition: "
            "[1, 2, 4, 5, 6], offload: all{}}}",
            more),
        workload, platform);
    test::require_claims_hold(run);
    REQUIRE(run.execution.status == RunStatus::ok);
    const TensorId v = Named(workload, platform).tensor("v");
    bool leaves = false;
    for (const Step& step : run.plan.steps) {
      if (step.kind != StepKind::copy || step.source == SourceRelease::keep) continue;
      leaves = true;
      CHECK(run.plan[run.plan.list(step.writes).front()].tensor != v);
    }
    CHECK(leaves);
  }
}

// Layers of the decoder read the encoder's output with the state, or a value that an operator before makes
// of it alone, or do not read it.
TEST_CASE("random encoder-decoders keep claims and bounds, and lose no gradient") {
  test::Dice dice(20261129);
  int carried = 0, bounded = 0;
  for (int round = 0; round < 60; ++round) {
    std::string text = "workload: w\ninputs: {x: 0 B, t: 0 B}\ngraph:\n";
    std::set<std::string> readers;
    const auto add = [&](const std::string& name, const std::string& inputs,
                         const std::string& made) {
      text += fmt::format(
          "  - {{name: {}, inputs: [{}], outputs: {{{}: {} B}}, forward: {} s, backward: {} s}}\n",
          name, inputs, made, dice(1, 9), dice(1, 5), dice(1, 5));
      if (inputs.find('v') != std::string::npos) readers.insert(name + ".backward");
    };
    add("e1", "x", "a");
    add("e2", "a", "v");
    add("d0", "t", "s0");
    const std::int64_t layers = dice(4, 8);
    for (std::int64_t i = 1; i <= layers; ++i) {
      const std::string from = fmt::format("s{}", i - 1), to = fmt::format("s{}", i);
      const std::int64_t kind = i < 4 ? dice(0, 1) : dice(0, 2);
      if (kind == 1) add(fmt::format("k{}", i), "v", fmt::format("k{}", i));
      add(fmt::format("d{}", i),
          kind == 0   ? from + ", v"
          : kind == 1 ? from + fmt::format(", k{}", i)
                      : from,
          to);
    }
    CAPTURE(text);
    const Workload workload = test::workload_of(text);
    for (const ChainStage& stage : pipeline_view(workload).stages)
      carried += static_cast<int>(stage.carried.size());
    const int devices = static_cast<int>(dice(2, 4));
    const std::int64_t microbatches = dice(1, 5);
    const char* const links[] = {"latency: 0 s", "latency: 1 s, bandwidth: 4 B/s",
                                 "bandwidth: 2 B/s", "latency: 1 s, sharing: fair"};
    const Platform platform = row_of_devices(devices, links[dice(0, 3)]);
    const Named named(workload, platform);
    for (const char* name : {"1f1b", "gpipe", "1f1b-v", "hanayo", "search", "1f1b-star"})
      for (const char* more : {"", ", recompute: full", ", recompute: [1]"}) {
        const bool wave = name == std::string("1f1b-v") || name == std::string("hanayo");
        if (wave && 2 * devices > std::ssize(pipeline_view(workload).stages)) continue;
        INFO(name << more);
        const Played run = test::play_policy(
            fmt::format("{{name: pipeline/{}, microbatches: {}{}{}}}", name, microbatches,
                        name == std::string("search") ? ", virtual_stages: 1, backward: whole" : "",
                        more),
            workload, platform);
        REQUIRE(run.execution.status == RunStatus::ok);
        test::require_claims_hold(run);
        bounded += run.plan.bounds.makespan ? 1 : 0;
        if (run.plan.bounds.makespan) CHECK(*run.plan.bounds.makespan <= run.execution.makespan);
        CHECK(added_up(run.plan, workload, named.tensor("v.gradient"), named.op("e2.backward"),
                       0) == readers);
      }
  }
  CHECK(carried > 200);
  CHECK(bounded > 100);
}

// Where a decoder is cut, its state and the encoder's output cross, and back the gradients of both.
TEST_CASE("each cut of T5's decoder is crossed by both values and both gradients") {
  WorkloadOptions options;
  options.batch = 1;
  const Workload workload = test::large_network("t5-large", 4, options);
  const ChainView chain = pipeline_view(workload);
  const Platform platform = test::library_platform("dgx-1-v100");
  const Played run =
      test::play_policy("{name: pipeline/1f1b, microbatches: 2, devices: [gpu0, gpu1, gpu2, gpu3]}",
                        workload, platform);
  const std::vector<HeldStages> held = held_stages(run.plan, workload);
  REQUIRE(held.size() == 4);
  auto messages = messages_of(run, workload, 0);
  const auto memory = [&](std::size_t d) {
    return static_cast<int>(platform.processors[d].memory);
  };
  int carrying = 0;
  for (std::size_t d = 0; d < 3; ++d) {
    const ChainStage& last = chain.stages[held[d].end - 1];
    const std::string output = workload[last.output].name;
    const bool carries = !last.carried.empty();
    carrying += carries ? 1 : 0;
    CHECK(messages[{memory(d), memory(d + 1)}] == output + (carries ? " encoded" : ""));
    CHECK(messages[{memory(d + 1), memory(d)}] ==
          output + (carries ? ".gradient encoded.gradient" : ".gradient"));
  }
  CHECK(carrying >= 2);
}

// In every schedule and with everything that stages may do, a T5 of four blocks runs, and takes what the
// policy claims.
TEST_CASE("every pipeline runs an encoder-decoder as it claims") {
  const Platform platform = test::library_platform("dgx-1-v100");
  std::map<bool, Workload> networks;
  for (const bool split : {false, true}) {
    WorkloadOptions options;
    options.batch = 1;
    options.optimizer = Optimizer::adam;
    options.split_backward = split;
    networks.emplace(split, test::large_network("t5-large", 4, options));
  }
  for (const PolicyInfo& policy : policies()) {
    if (!policy.name.starts_with("pipeline/") || policy.name == "pipeline/csv") continue;
    for (const char* more : {"", ", recompute: full", ", recompute: selective"}) {
      INFO(policy.name << more);
      if (*more != 0 && !test::takes(policy, "recompute")) continue;
      const std::string text = fmt::format(
          "{{name: {}, microbatches: 8, devices: [gpu0, gpu1, gpu2, gpu3]{}{}}}", policy.name,
          policy.name == "pipeline/search" && *more == 0 ? ", orders: 50" : "", more);
      try {
        const Played run = test::play_policy(
            text, networks.at(test::bound_policy(text).splits_backward), platform);
        CHECK(run.execution.status == RunStatus::ok);
        test::require_claims_hold(run);
        if (run.plan.bounds.makespan) CHECK(*run.plan.bounds.makespan <= run.execution.makespan);
      } catch (const InputError&) {
        // Operators that run again alone are for schedules that leave stages where they are.
        CHECK(std::string(more) == ", recompute: selective");
      }
    }
  }
}

}  // namespace plimsoll
