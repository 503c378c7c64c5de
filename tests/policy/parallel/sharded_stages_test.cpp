// State that ranks hold in parts while they run several microbatches: of a pipeline, or one after the
// other.
#include "plan/build/gathers_ahead.hpp"
#include "plan/build/repeated_plan.hpp"
#include "plan/build/spread_plan.hpp"
#include "policy/parallel/mesh_options.hpp"
#include "support/mirrored.hpp"
#include "support/policies.hpp"
#include "workload/cost/cost_model.hpp"
#include "workload/cost/gradient_accumulation.hpp"
#include "workload/sharding/sharded_step.hpp"

#include <memory>
#include <random>
#include <vector>

using namespace plimsoll;
using namespace plimsoll::test;

namespace {

/// Blocks of one linear layer of `width` x `width` each, without biases: one stage of the chain each.
std::string linear_blocks(int blocks, std::int64_t width) {
  return fmt::format(
      "workload: net\ninput: {{shape: [{0}]}}\nblocks:\n  one:\n    layers:\n      - linear: "
      "{{features: {0}, bias: false}}\nlayers:\n  - one: {{repeat: {1}}}\n",
      width, blocks);
}

std::string mesh_machine(std::int64_t n, const std::string& topology, const std::string& link) {
  return fmt::format(
      "platform: c\nmemories: {{hbm: {{capacity: unlimited, bandwidth: 1 GB/s}}}}\nprocessors: "
      "{{gpu: {{memory: hbm, compute: {{fp32: 1 GFLOP/s, bf16: 2 GFLOP/s}}, power: {{idle: 10 W, "
      "active: 30 W}}}}}}\ncluster: {{count: {}, topology: {}, link: {{name: l, {}}}}}\n",
      n, topology, link);
}

struct Stages {
  std::int64_t stage = 2;  ///< of ZeRO
  std::int64_t data = 2, pipeline = 1;
  std::int64_t prefetch = 0;
  std::string policy = "none";  ///< its name, and parameters but for the processors
  std::int64_t accumulate = 1;  ///< of a policy for one processor
  Bytes bucket = Bytes::unlimited();
  const char* play = "automatic";
  bool overlap = true;
};

Workload sharded_of(const Stages& it, const std::string& network, WorkloadOptions options) {
  const bool by_stage = it.pipeline > 1 && it.stage > 1;
  Workload workload = workload_of(network, options);
  if (it.stage > 0)
    workload = sharded_step(workload,
                            {it.stage, it.data, by_stage ? 0 : it.prefetch, it.overlap, by_stage});
  if (it.accumulate > 1) {
    add_gradients(workload, MadeGradients::as_values);
    keep_gradients(workload);
  }
  return workload;
}

MeshOptions axes_of(const Stages& it) {
  Diagnostics diagnostics;
  const std::string text =
      fmt::format("{{data: {}, pipeline: {}, play: {}}}", it.data, it.pipeline, it.play);
  return *parallel_format().read(parse_document(text, "parallel"), diagnostics);
}

BoundPolicy policy_of(const Stages& it) {
  if (it.pipeline == 1) return bound_policy(fmt::format("{{name: {}, on: gpu0}}", it.policy));
  std::string devices;
  for (std::int64_t d = 0; d < it.pipeline; ++d)
    devices += fmt::format("{}gpu{}", d > 0 ? ", " : "", d * it.data);
  return bound_policy(fmt::format("{{name: {}, devices: [{}]}}", it.policy, devices));
}

Played played_stages(const Stages& it, const std::string& network, const std::string& platform,
                     WorkloadOptions options = {}) {
  static std::vector<std::unique_ptr<std::pair<Workload, Platform>>> kept;  // Played refers to them
  const BoundPolicy policy = policy_of(it);
  options.split_backward = policy.splits_backward;
  auto& [workload, machine] = *kept.emplace_back(std::make_unique<std::pair<Workload, Platform>>(
      sharded_of(it, network, options), platform_of(platform)));
  const MeshOptions axes = axes_of(it);
  Spreading spreading = mesh_of(machine, axes);
  spreading.first_bucket = spreading.bucket = it.bucket;
  spreading.overlap = it.overlap;
  if (it.stage == 1) spreading.of_gradients = CollectiveKind::reduce_scatter;
  if (it.stage > 1) spreading.of_gradients = CollectiveKind::none;
  spreading.gathers_parameters = it.stage == 1 || it.stage == 2;
  const Topology topology(machine);
  const ChainView view = chain_view(workload);
  const Problem problem{workload, view, machine, topology, judge_by_execution};
  Plan of_one = std::get<Plan>(policy.plan(problem));
  if (it.accumulate > 1) {
    take_turns(workload);
    of_one = repeated(of_one, workload, static_cast<std::uint32_t>(it.accumulate));
  }
  if (it.pipeline > 1) of_one = with_gathers_ahead(std::move(of_one), workload, it.prefetch);
  Played played = play(plan_of_ranks(of_one, problem, axes, spreading), workload, machine);
  require_claims_hold(played);
  return played;
}

WorkloadOptions bf16_with_adam() {
  WorkloadOptions options;
  options.dtype = DType::bf16;
  options.master_weights = true;
  options.optimizer = Optimizer::adam;
  options.fuses_optimizer = Location{"test", 1, 1};
  options.batch = 8;
  return options;
}

/// n-1 rounds of 1/n of the bytes each, on links of 1 GB/s (1000 ps a byte) and 1 us.
Time half_a_ring(std::int64_t n, std::int64_t bytes) {
  return Time{1'000'000 + bytes / n * 1000} * (n - 1);
}

const char* microseconds_and_gigabytes() {
  return "bandwidth: 1 GB/s, latency: 1 us";
}

}  // namespace

// Each of 3 blocks of w x w weights gathers 2 w^2 bytes before its forward and before its backward, and
// scatters 4 w^2 bytes. Nothing is gathered ahead, and a gather goes after the scatter before it, on the
// same links: all of one microbatch follows each other, and all microbatches do, with one update.
TEST_CASE("fully sharded microbatches, without prefetch: everything follows everything") {
  for (const std::int64_t n : {2, 4})
    for (const std::int64_t microbatches : {2, 5}) {
      constexpr int kUnits = 3;
      const std::int64_t weight = 64 * 64;
      const Stages it{.stage = 3, .data = n, .accumulate = microbatches};
      const std::string machine =
          mesh_machine(n, n == 2 ? "chain" : "ring", microseconds_and_gigabytes());
      const Workload step = sharded_of(it, linear_blocks(kUnits, 64), bf16_with_adam());
      Time microbatch, update;
      const auto times = durations(step, platform_of(machine), ProcessorId{0});
      for (std::size_t op = 0; op < times.size(); ++op)
        (step.operators[op].phase == Phase::optimizer ? update : microbatch) += times[op];
      microbatch += half_a_ring(n, 2 * weight) * std::int64_t{2 * kUnits};
      microbatch += half_a_ring(n, 4 * weight) * std::int64_t{kUnits};
      const Played played = played_stages(it, linear_blocks(kUnits, 64), machine, bf16_with_adam());
      CAPTURE(n, microbatches);
      CHECK(played.execution.makespan == microbatch * microbatches + update);
    }
}

// Stage 2 moves nothing but 4 w^2 bytes of each block and microbatch, one after the other; the
// processor waits for one behind another. The last one ends last.
TEST_CASE("gradients of microbatches are scattered beside what computes") {
  for (const char* link : {"bandwidth: 1 GB/s, latency: 1 us", "bandwidth: 20 MB/s, latency: 9 us"})
    for (const std::int64_t microbatches : {2, 4}) {
      constexpr std::int64_t kBytes = 4 * 64 * 64;
      WorkloadOptions options;
      options.batch = 8;
      const Stages it{.stage = 2, .data = 2, .accumulate = microbatches};
      const std::string machine = mesh_machine(2, "chain", link);
      const Platform platform = platform_of(machine);
      const Workload step = sharded_of(it, linear_blocks(3, 64), options);
      const auto times = durations(step, platform, ProcessorId{0});
      const Link& way = platform.links.front();
      const Time round = way.latency + transfer_time(Bytes{kBytes / 2}, way.bandwidth[0]);
      Time computed, moved;
      for (std::int64_t m = 0; m < microbatches; ++m)
        for (std::size_t op = 0; op < times.size(); ++op) {
          computed += times[op];
          if (step.operators[op].collective.kind == CollectiveKind::reduce_scatter)
            moved = std::max(moved, computed) + round;
        }
      CAPTURE(link, microbatches);
      CHECK(played_stages(it, linear_blocks(3, 64), machine, options).execution.makespan == moved);
    }
}

TEST_CASE("without overlap a microbatch waits for what the one before has scattered") {
  constexpr std::int64_t kBytes = 4 * 64 * 64, kUnits = 3, kMicrobatches = 4;
  WorkloadOptions options;
  options.batch = 8;
  const Stages it{.stage = 2, .data = 2, .accumulate = kMicrobatches, .overlap = false};
  const std::string machine = mesh_machine(2, "chain", microseconds_and_gigabytes());
  const Workload step = sharded_of(it, linear_blocks(kUnits, 64), options);
  Time computed;
  for (const Time time : durations(step, platform_of(machine), ProcessorId{0})) computed += time;
  CHECK(played_stages(it, linear_blocks(kUnits, 64), machine, options).execution.makespan ==
        (computed + half_a_ring(2, kBytes) * kUnits) * kMicrobatches);
}

// While one unit is scattered, the gradients of the next are made; those after wait.
TEST_CASE("gradients of two units are whole at most, however slow links are") {
  constexpr std::int64_t kUnit = 4 * 64 * 64;
  for (const int units : {3, 9})
    for (const std::int64_t stage : {2, 3}) {
      WorkloadOptions options;
      options.batch = 8;
      const Stages it{.stage = stage, .data = 2, .accumulate = 3};
      const auto peak_on = [&](const char* link) {
        const std::string machine = mesh_machine(2, "chain", link);
        return played_stages(it, linear_blocks(units, 64), machine, options).peak(MemoryId{0});
      };
      CAPTURE(units, stage);
      const std::int64_t slow = peak_on("bandwidth: 20 MB/s, latency: 9 us");
      const std::int64_t at_once = peak_on("bandwidth: unlimited");
      CHECK(slow >= at_once);
      CHECK(slow <= at_once + kUnit);
    }
}

// Two stages of one block on n ranks each, one microbatch: the second stage gathers while the first
// computes, waits for its input, then gathers again for its backward; the first gathers again while the
// second computes. The first stage's scatter ends last.
TEST_CASE("a fully sharded pipeline: closed form") {
  for (const std::int64_t n : {2, 3}) {
    const std::int64_t weight = 64 * 64;
    const Stages it{
        .stage = 3, .data = n, .pipeline = 2, .policy = "pipeline/1f1b, microbatches: 1"};
    WorkloadOptions options;
    options.dtype = DType::bf16;
    options.batch = 8;
    const std::string machine = mesh_machine(2 * n, "mesh", microseconds_and_gigabytes());
    const Workload step = sharded_of(it, linear_blocks(2, 64), options);
    const auto times = durations(step, platform_of(machine), ProcessorId{0});
    Time forward[2], backward[2];
    for (std::size_t op = 0; op < times.size(); ++op) {
      const Operator& its = step.operators[op];
      const std::string& of = its.forward == kNoOperator ? its.name : step[its.forward].name;
      const bool second = !of.starts_with("one_1/") && !of.starts_with("stage_1.");
      (its.phase == Phase::forward ? forward : backward)[second ? 1 : 0] += times[op];
    }
    const Time gather = half_a_ring(n, (2 * weight + n - 1) / n * n);
    const Time scatter = half_a_ring(n, (2 * weight + n - 1) / n * n);
    const Time message{1'000'000 + 8 * 64 * 2 * 1000};
    CAPTURE(n);
    CHECK(played_stages(it, linear_blocks(2, 64), machine, options).execution.makespan ==
          gather + forward[0] + message + forward[1] + gather + backward[1] + message +
              backward[0] + scatter);
  }
}

// What ranks exchange costs nothing between memories that take no time: the schedule is the same in all
// stages of ZeRO, of split backwards, recomputed stages and two directions, too.
TEST_CASE("sharded pipelines on links that take no time") {
  const std::string machine =
      "platform: c\nmemories: {hbm: {capacity: unlimited}}\nprocessors: {gpu: {memory: hbm, "
      "compute: "
      "{fp32: 1 GFLOP/s}, power: {idle: 10 W, active: 30 W}}}\ncluster: {count: 6, topology: "
      "switch, "
      "link: {name: l, bandwidth: unlimited}}\n";
  for (const char* policy :
       {"pipeline/gpipe, microbatches: 3", "pipeline/1f1b, microbatches: 4",
        "pipeline/interleaved-1f1b, microbatches: 4, virtual_stages: 2",
        "pipeline/zb-h1, microbatches: 3", "pipeline/zb-v, microbatches: 4",
        "pipeline/1f1b, microbatches: 3, recompute: full", "pipeline/chimera, microbatches: 4"}) {
    WorkloadOptions options;
    options.batch = 4;
    Stages it{.stage = 1, .data = 3, .pipeline = 2, .policy = policy};
    const std::string network = linear_blocks(8, 64);
    const Time whole = played_stages(it, network, machine, options).execution.makespan;
    for (const std::int64_t stage : {2, 3})
      for (const std::int64_t prefetch : {0, 1, 5}) {
        it.stage = stage;
        it.prefetch = prefetch;
        CAPTURE(policy, stage, prefetch);
        CHECK(played_stages(it, network, machine, options).execution.makespan == whole);
      }
  }
}

// 4 blocks on each device and gathers ahead: a device hides what it gathers behind what it computes,
// but for the first of each task.
TEST_CASE("what is gathered ahead is not waited for") {
  const std::string machine = mesh_machine(4, "mesh", microseconds_and_gigabytes());
  WorkloadOptions options;
  options.dtype = DType::bf16;
  options.batch = 512;
  Stages it{.stage = 3, .data = 2, .pipeline = 2, .policy = "pipeline/1f1b, microbatches: 4"};
  const std::string network = linear_blocks(8, 64);
  const Time late = played_stages(it, network, machine, options).execution.makespan;
  it.prefetch = 1;
  const Played ahead = played_stages(it, network, machine, options);
  CHECK(ahead.execution.makespan < late);
  it.stage = 2;
  const Time never = played_stages(it, network, machine, options).execution.makespan;
  // Before the first forward and, at a turn, before the first backward nothing can be hidden.
  CHECK(ahead.execution.makespan - never <= half_a_ring(2, 2 * 64 * 64) * std::int64_t{4});
}

TEST_CASE("one rank stands for all: random microbatches with sharded state") {
  std::mt19937 random(23);
  const auto from = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  int exact = 0;
  for (int turn = 0; turn < 60; ++turn) {
    const bool is_pipeline = from(0, 2) > 0;
    Stages it{.stage = from(2, 3),
              .data = from(3, 4),
              .pipeline = is_pipeline ? 2 : 1,
              .prefetch = from(0, 2)};
    const char* const policies[] = {"pipeline/gpipe", "pipeline/1f1b", "pipeline/zb-h1"};
    if (is_pipeline)
      it.policy = fmt::format("{}, microbatches: {}", policies[from(0, 2)], from(1, 4));
    else
      it.accumulate = from(2, 4);
    it.bucket = Bytes{from(1, 20'000)};
    it.play = "once";
    const std::string machine =
        mesh_machine(it.data * it.pipeline, from(0, 1) == 0 ? "switch" : "mesh",
                     fmt::format("bandwidth: {} MB/s, latency: {} us", from(20, 2000), from(0, 9)));
    WorkloadOptions options = bf16_with_adam();
    options.batch = from(1, 32);
    const std::string network = linear_blocks(static_cast<int>(from(2, 5)), from(5, 30));
    CAPTURE(turn, it.stage, it.data, it.prefetch, it.policy, it.accumulate, machine, network);
    const Played once = played_stages(it, network, machine, options);
    it.play = "all";
    test::require_same_figures(once, played_stages(it, network, machine, options));
    ++exact;
  }
  CHECK(exact == 60);
}
