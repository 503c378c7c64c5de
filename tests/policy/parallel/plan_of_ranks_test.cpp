// One rank's plan for all ranks of a mesh: gradient buckets, and one rank played for all.
#include "plan/build/spread_plan.hpp"
#include "plan/core/mirror_problems.hpp"
#include "plan/file/plan_file.hpp"
#include "policy/parallel/mesh_options.hpp"
#include "policy/parallel/rank_runs.hpp"
#include "policy/parallel/trainers.hpp"
#include "support/mirrored.hpp"
#include "support/policies.hpp"
#include "workload/cost/cost_model.hpp"
#include "workload/sharding/sharded_step.hpp"

#include <bit>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

using namespace plimsoll;
using namespace plimsoll::test;

namespace {

const char* link_of_2_bytes_a_second() {
  return "bandwidth: 2 B/s, latency: 1 s";
}

}  // namespace

// L stages of F 2 s and B 3 s, each with P bytes of gradients in a bucket of its own. The backward
// k = 1..L ends at 2 L + 3 k; its bucket takes r = 2(n-1)(1 s + P/n / 2 B/s) once it and the bucket
// before have ended: e_k = max(2 L + 3 k, e_(k-1)) + r. The last one is always exposed.
TEST_CASE("buckets overlap with the backward") {
  constexpr std::int64_t kStages = 5;
  for (const std::int64_t n : {2, 3, 4})
    for (const std::int64_t parts : {0, 2, 6}) {
      const std::int64_t bytes = parts * n + n * 2;  // n x an even number
      const std::int64_t round = 1 + bytes / n / 2;
      const std::int64_t r = 2 * (n - 1) * round;
      std::int64_t end = 0;
      for (std::int64_t k = 1; k <= kStages; ++k) end = std::max(2 * kStages + 3 * k, end) + r;
      const std::string platform =
          cluster(n, n == 2 ? "chain" : "ring", link_of_2_bytes_a_second());
      const std::string chain = chain_of(std::vector<Stage>(kStages, {.parameters = bytes}));
      for (const char* how : {"once", "all"}) {
        const Ranks ranks{fmt::format("{{data: {}, play: {}}}", n, how), "{name: none, on: gpu0}",
                          Bytes{bytes}};
        const Played it = played_ranks(ranks, chain, platform);
        CAPTURE(n, bytes, how);
        CHECK(it.execution.makespan == seconds(end));
        // Of buckets of two gradients each the odd one comes last, alone.
        Ranks pairs = ranks;
        pairs.bucket = Bytes{bytes + 1};
        const std::int64_t r2 = 2 * (n - 1) * (1 + bytes / n);
        std::int64_t by_two = std::max<std::int64_t>(2 * kStages + 3 * 2, 0) + r2;
        by_two = std::max(2 * kStages + 3 * 4, by_two) + r2;
        by_two = std::max(2 * kStages + 3 * 5, by_two) + r;
        CHECK(played_ranks(pairs, chain, platform).execution.makespan == seconds(by_two));
      }
    }
}

// 5 stages: 25 s of passes, then all 5 x 12 B in one, 2(n-1)(1 s + 60/n / 2 s): what a pipeline of
// one stage does with as many replicas.
TEST_CASE("without overlap the whole all-reduce follows the backward") {
  for (const std::int64_t n : {2, 3, 5}) {
    const std::string platform = cluster(n, n == 2 ? "chain" : "ring", link_of_2_bytes_a_second());
    const std::string chain = chain_of(std::vector<Stage>(5));
    Ranks ranks{fmt::format("{{data: {}}}", n)};
    ranks.bucket = Bytes{12};
    ranks.overlap = false;
    const Time whole = played_ranks(ranks, chain, platform).execution.makespan;
    CHECK(whole == seconds(25 + 2 * (n - 1) * (1 + 60 / n / 2)));
    const Workload workload = workload_of(chain);
    const Platform machine = platform_of(platform);
    const Played today = play_policy(
        fmt::format("{{name: pipeline/gpipe, microbatches: {0}, data_parallel: {0}}}", n), workload,
        machine);
    CHECK(whole == today.execution.makespan);
  }
}

// Updates of 2 s wait for the bucket of their own gradient only. Two stages: backwards end at 7 and
// 10 s, each bucket takes 2 (1 + 12/2/2) = 8 s on two ranks: they end at 15 and 23 s. Updates come
// in the order of the stages, the first one's bucket last: 23 + 2 + 2 s.
TEST_CASE("an update waits for its bucket") {
  const std::string chain = chain_of(std::vector<Stage>(2, {.step = 2}));
  Ranks ranks{"{data: 2}"};
  ranks.bucket = Bytes{12};
  const Played it = played_ranks(ranks, chain, cluster(2, "chain", link_of_2_bytes_a_second()));
  CHECK(it.execution.makespan == seconds(27));
  CHECK(replicas_of(it.plan) == 2);
}

TEST_CASE("one rank stands for all: random meshes") {
  std::mt19937 random(7);
  const auto from = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  int exact = 0, refused = 0;
  for (int turn = 0; turn < 300; ++turn) {
    const std::int64_t n = from(3, 6);
    std::vector<Stage> stages;
    for (std::int64_t s = from(1, 5); s > 0; --s)
      stages.push_back({from(1, 3), from(1, 5), from(1, 8), from(1, 30), from(0, 1) * from(1, 3)});
    const char* const topologies[] = {"switch", "mesh", "ring", "chain"};
    const std::string platform =
        cluster(n, topologies[from(0, 3)],
                fmt::format("bandwidth: {} B/s, latency: {} s{}", from(1, 9), from(0, 2),
                            from(0, 5) == 0 ? ", duplex: half" : ""));
    const bool tree = n == 4 && from(0, 1) == 0;
    const char* const policies[] = {"{name: none, on: gpu0}", "{name: remat/sqrt, on: gpu0}",
                                    "{name: remat/sqrt, segments: 1, on: gpu0}"};
    Ranks ranks{fmt::format("{{data: {}, collectives: {}, play: all}}", n, tree ? "tree" : "ring"),
                policies[from(0, 2)], Bytes{from(1, 60)}, from(0, 4) > 0};
    CAPTURE(turn, ranks.parallel, ranks.policy, ranks.bucket.count(), platform, chain_of(stages));
    const Played all = played_ranks(ranks, chain_of(stages), platform);
    REQUIRE(all.execution.status == RunStatus::ok);
    ranks.parallel.replace(ranks.parallel.find("play: all"), 9, "play: once");
    const std::string why = refusal(ranks, chain_of(stages), platform);
    if (why != "(accepted)") {
      CHECK(why.find("one rank cannot be played for all") != std::string::npos);
      ++refused;
      continue;
    }
    test::require_same_figures(played_ranks(ranks, chain_of(stages), platform), all);
    ++exact;
  }
  CHECK(exact > 120);
  CHECK(refused > 20);
}

// Stages of a pipeline, each on `data` ranks: 2 stages, 2 microbatches a rank, every device a ring
// of its own. Without overlap that is what replicas of the pipeline do.
TEST_CASE("every stage of a pipeline on several ranks") {
  for (const char* name : {"pipeline/gpipe", "pipeline/1f1b", "pipeline/zb-h1"})
    for (const std::int64_t n : {2, 3}) {
      const std::string platform = cluster(2 * n, "mesh", "bandwidth: 4 B/s, latency: 1 s");
      std::string chain = "workload: chain\ninput: 4 B\noptimizer: sgd\nchain:\n";
      for (int s = 0; s < 2; ++s)
        chain += fmt::format(
            "  - {{name: s{}, forward: 2 s, backward_input: 2 s, backward_weight: 1 s, output: 4 "
            "B, "
            "saved: 8 B, parameters: 12 B}}\n",
            s);
      WorkloadOptions split;
      const std::string policy =
          fmt::format("{{name: {}, microbatches: 2, devices: [gpu0, gpu{}]}}", name, n);
      split.split_backward = bound_policy(policy).splits_backward;
      const Workload workload = workload_of(chain, split);
      const Platform machine = platform_of(platform);
      const Topology topology(machine);
      const ChainView view = chain_view(workload);
      const Problem problem{workload, view, machine, topology, judge_by_execution};
      const Plan of_one = std::get<Plan>(bound_policy(policy).plan(problem));
      const Played replicas = play_policy(
          fmt::format("{{name: {}, microbatches: {}, data_parallel: {}}}", name, 2 * n, n),
          workload, machine);
      for (const char* how : {"once", "all"}) {
        const MeshOptions options =
            mesh(fmt::format("{{data: {}, pipeline: 2, play: {}}}", n, how));
        Spreading spreading = mesh_of(machine, options);
        spreading.overlap = false;
        spreading.first_bucket = spreading.bucket = Bytes::unlimited();
        const Played it =
            play(plan_of_ranks(of_one, problem, options, spreading), workload, machine);
        CAPTURE(name, n, how);
        CHECK(it.execution.makespan == replicas.execution.makespan);
        for (std::uint32_t m = 0; m < 2 * n; ++m)
          CHECK(it.peak(MemoryId{m}) == replicas.peak(MemoryId{m}));
      }
    }
}

namespace {

/// Blocks of one linear layer each of `width` x `width`, without biases: one unit each.
std::string network_of(int blocks, std::int64_t width) {
  return fmt::format(
      "workload: net\ninput: {{shape: [{0}]}}\nblocks:\n  one:\n    layers:\n      - linear: "
      "{{features: {0}, bias: false}}\nlayers:\n  - one: {{repeat: {1}}}\n",
      width, blocks);
}

struct Sharded {
  std::int64_t stage = 0;
  std::int64_t ranks = 1;
  std::int64_t prefetch = 1;
  bool overlap = true;
  Bytes bucket = kBucket;
  const char* play = "automatic";
  const char* policy = "{name: none, on: gpu0}";
};

Played played_shards(const Sharded& it, const Workload& whole, const Platform& platform) {
  static std::vector<std::unique_ptr<std::pair<Workload, Platform>>> kept;  // Played refers to them
  const auto& [workload, machine] =
      *kept.emplace_back(std::make_unique<std::pair<Workload, Platform>>(
          it.stage == 0 ? whole
                        : sharded_step(whole, {it.stage, it.ranks, it.prefetch, it.overlap}),
          platform));
  const MeshOptions options = mesh(fmt::format("{{data: {}, play: {}}}", it.ranks, it.play));
  Spreading spreading = mesh_of(machine, options);
  spreading.first_bucket = spreading.bucket = it.bucket;
  spreading.overlap = it.overlap;
  if (it.stage == 1) spreading.of_gradients = CollectiveKind::reduce_scatter;
  if (it.stage > 1) spreading.of_gradients = CollectiveKind::none;
  spreading.gathers_parameters = it.stage == 1 || it.stage == 2;
  const Topology topology(machine);
  const ChainView view = chain_view(workload);
  const Problem problem{workload, view, machine, topology, judge_by_execution};
  const Plan of_one = std::get<Plan>(bound_policy(it.policy).plan(problem));
  Played played = play(plan_of_ranks(of_one, problem, options, spreading), workload, machine);
  require_claims_hold(played);
  return played;
}

WorkloadOptions trained_with_adam() {
  WorkloadOptions options;
  options.dtype = DType::bf16;
  options.master_weights = true;
  options.optimizer = Optimizer::adam;
  options.fuses_optimizer = Location{"test", 1, 1};
  options.batch = 8;
  return options;
}

Time compute_time(const Workload& workload, const Platform& platform) {
  Time sum;
  for (const Time time : durations(workload, platform, ProcessorId{0})) sum += time;
  return sum;
}

}  // namespace

// Without prefetch the processor waits for every gather, and the next gather for the scatter before
// it: nothing overlaps but the last scatters with nothing. With u units of w x w weights, 2 w^2 bytes
// of parameters and 4 w^2 of gradients each, a step takes all that it computes, 2 u gathers and u
// scatters. The first weight has a gradient and its unit a backward gather only where its backward
// reads the weight: the input of the network has no gradient, so that of unit 1 reads none.
TEST_CASE("fully sharded, without prefetch: everything follows everything") {
  for (const std::int64_t n : {2, 4})
    for (const int units : {1, 3}) {
      const std::int64_t weight = 64 * 64;
      const Platform platform =
          platform_of(trainers(n, n == 2 ? "chain" : "ring", "bandwidth: 1 GB/s, latency: 1 us"));
      const Workload whole = workload_of(network_of(units, 64), trained_with_adam());
      const Workload sharded = sharded_step(whole, {3, n, 0});
      Time expected = compute_time(sharded, platform);
      std::int64_t gathers = 0;
      for (const Operator& op : sharded.operators)
        gathers += op.collective.kind == CollectiveKind::all_gather;
      expected += half_ring(n, 2 * weight) * gathers;
      expected += half_ring(n, 4 * weight) * std::int64_t{units};
      const Played it = played_shards({.stage = 3, .ranks = n, .prefetch = 0}, whole, platform);
      CAPTURE(n, units, gathers);
      CHECK(it.execution.makespan == expected);
    }
}

// Blocks of two layers of w x w, of which the first runs again. At the peak, in the backward of the
// first block, a rank holds of each other block a fourth of its parameters and of their gradients, 2 x
// 2 w^2 / 4 bytes each: nothing is whole from the forward to the backward.
TEST_CASE("fully sharded blocks that run again are gathered again") {
  constexpr std::int64_t w = 64, b = 8;
  const Platform platform = platform_of(trainers(4, "ring", "bandwidth: 1 GB/s, latency: 1 us"));
  WorkloadOptions options;
  options.dtype = DType::bf16;
  options.batch = b;
  const auto peak = [&](int blocks) {
    const std::string text = fmt::format(
        "workload: net\ninput: {{shape: [{0}]}}\nloss: sum\nblocks:\n  one:\n    layers:\n      - "
        "linear: {{features: {0}, bias: false}}\n      - gelu\n      - linear: {{features: {0}, "
        "bias: false}}\nlayers:\n  - one: {{repeat: {1}}}\n",
        w, blocks);
    const Workload whole = workload_of(text, options);
    return played_shards({.stage = 3, .ranks = 4, .policy = "{name: remat/blocks, on: gpu0}"},
                         whole, platform)
        .peak(MemoryId{0});
  };
  CHECK(peak(8) - peak(7) == 2 * (2 * 2 * w * w / 4));
}

// Reduce-scatter, update of the part, gather: as long as an all-reduce of bytes between 2 and 4 a
// parameter, and the update of a part. One bucket each.
TEST_CASE("sharded optimizer state: closed form") {
  for (const std::int64_t n : {2, 4}) {
    const std::int64_t weight = 64 * 64;
    const Platform platform =
        platform_of(trainers(n, n == 2 ? "chain" : "ring", "bandwidth: 1 GB/s, latency: 1 us"));
    const Workload whole = workload_of(network_of(3, 64), trained_with_adam());
    const Time computing = compute_time(sharded_step(whole, {1, n}), platform);
    const Played it = played_shards({.stage = 1, .ranks = n, .overlap = false}, whole, platform);
    CHECK(it.execution.makespan ==
          computing + half_ring(n, 3 * 4 * weight) + half_ring(n, 3 * 2 * weight));
    // The next step waits for the parameters.
    CHECK(it.execution.period == it.execution.makespan);
  }
}

// Megatron-LM's distributed optimizer (README of NVIDIA/Megatron-LM, "Distributed Optimizer", in bf16 with gradients
// in fp32): 18 bytes a parameter become 6 + 12/n. At the peak, after the backward, a block more takes that.
TEST_CASE("stage 1 takes what Megatron-LM's distributed optimizer takes") {
  constexpr std::int64_t weight = 64 * 64;
  const auto of_a_block = [](std::int64_t stage, std::int64_t n) {
    const Platform platform =
        platform_of(trainers(n, "switch", "bandwidth: 1 GB/s, latency: 1 us"));
    const auto peak = [&](int blocks) {
      const Workload whole = workload_of(network_of(blocks, 64), trained_with_adam());
      return played_shards({.stage = stage, .ranks = n}, whole, platform).peak(MemoryId{0});
    };
    return peak(9) - peak(8);
  };
  for (const std::int64_t n : {2, 4, 8}) {
    CAPTURE(n);
    CHECK(of_a_block(0, n) == 18 * weight);
    CHECK(of_a_block(1, n) == 6 * weight + 12 * weight / n);
  }
}

// What a rank holds before the first step and after the last is what its part of the state takes.
TEST_CASE("each stage needs less memory") {
  const Platform platform = platform_of(trainers(4, "switch", "bandwidth: 1 GB/s, latency: 1 us"));
  const Workload whole = workload_of(network_of(12, 64), trained_with_adam());
  std::int64_t before = 0;
  for (const std::int64_t stage : {0, 1, 2, 3}) {
    const std::int64_t peak =
        played_shards({.stage = stage, .ranks = 4}, whole, platform).peak(MemoryId{0});
    if (stage > 0) CHECK(peak < before);
    before = peak;
  }
}

TEST_CASE("one rank stands for all: random sharded networks") {
  std::mt19937 random(11);
  const auto from = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  for (int turn = 0; turn < 120; ++turn) {
    const std::int64_t n = from(3, 5);
    const char* const topologies[] = {"switch", "ring", "mesh"};
    const Platform platform = platform_of(
        trainers(n, topologies[from(0, 2)],
                 fmt::format("bandwidth: {} MB/s, latency: {} us", from(50, 2000), from(0, 20))));
    WorkloadOptions options = trained_with_adam();
    options.batch = from(1, 64);
    const Workload whole =
        workload_of(network_of(static_cast<int>(from(1, 4)), from(5, 40)), options);
    Sharded it{.stage = from(0, 3), .ranks = n, .prefetch = from(0, 3), .overlap = from(0, 3) > 0};
    it.bucket = Bytes{from(1, 20'000)};
    it.play = "once";
    CAPTURE(turn, n, it.stage, it.prefetch, it.overlap, it.bucket.count());
    const Played once = played_shards(it, whole, platform);
    it.play = "all";
    test::require_same_figures(once, played_shards(it, whole, platform));
  }
}

// Two machines of four, whose ranks share the way between the two: rounds wait for each other there.
// Nothing overlaps with the all-reduce, and updates follow it, so each rank stands still for as long as
// the all-reduce is on its way.
TEST_CASE("collectives that wait for links are exposed for as long as ranks stand still") {
  const std::string platform =
      "platform: c\nmemories: {hbm: {capacity: unlimited}}\nprocessors: {gpu: {memory: hbm, power: "
      "{idle: 10 W, active: 30 W}}}\ncluster: {count: 4, topology: switch, link: {name: l, "
      "bandwidth: "
      "8 B/s, latency: 1 s}, nodes: {count: 2, topology: switch, link: {name: n, bandwidth: 2 B/s, "
      "latency: 2 s}}}\n";
  const std::string chain = chain_of(std::vector<Stage>(2, {.parameters = 64, .step = 2}));
  for (const char* how : {"tree", "ring", "hierarchical, node: 4"}) {
    const Played it = played_ranks({fmt::format("{{data: 8, collectives: {}, play: all}}", how),
                                    "{name: none, on: gpu0}", Bytes::unlimited(), false},
                                   chain, platform);
    CAPTURE(how);
    const auto waits = static_cast<std::size_t>(StallCause::transfer);
    REQUIRE(it.collectives.size() == 8);
    for (const CollectiveSum& sum : it.collectives) {
      CHECK(sum.exposed == it.execution.processors[index(sum.memory)].stall[waits]);
      CHECK(sum.exposed > Time{});
    }
    CHECK(it.execution.gaps.empty());  // rounds are steps of their own
  }
}

// A block of one layer has a weight and a bias: both are gathered at once, and their gradients
// scattered.
TEST_CASE("what ranks move is named by what it is") {
  const Platform platform = platform_of(trainers(3, "ring", "bandwidth: 100 MB/s, latency: 1 us"));
  std::string network = network_of(2, 8);
  network.replace(network.find("bias: false"), 11, "bias: true");
  const Workload whole = workload_of(network, trained_with_adam());
  for (const std::int64_t stage : {1, 3})
    for (const char* play : {"once", "all"}) {
      const Played it = played_shards({.stage = stage, .ranks = 3, .play = play}, whole, platform);
      const Workload step = sharded_step(whole, {stage, 3, 1, true});
      std::set<std::string> names;
      for (std::uint32_t s = 0; s < it.plan.steps.size(); ++s) {
        if (it.plan.steps[s].kind != StepKind::reduce) continue;
        const std::string text = describe(it.plan, StepId{s}, step, platform);
        names.insert(
            text.substr(0, text.find(" from ")).substr(std::string("part 1 of 3 of ").size()));
      }
      CAPTURE(stage, play);
      CHECK(names == (stage == 1 ? std::set<std::string>{"4 gradients", "4 parameters"}
                                 : std::set<std::string>{"2 gradients", "2 parameters"}));
    }
}

// 12 devices, 2 x 3 x 2: from the innermost axis outwards each takes as many steps as those inside it
// have ranks together.
TEST_CASE("the order of axes on the machine") {
  const Platform platform = platform_of(cluster(12, "switch", "bandwidth: 2 B/s, latency: 1 s"));
  struct Laid {
    const char* order;
    std::int64_t tensor, data, pipeline;
  };
  for (const Laid& laid : {Laid{"", 1, 2, 6}, Laid{", order: [tensor, data, pipeline]", 1, 2, 6},
                           Laid{", order: [data, tensor, pipeline]", 3, 1, 6},
                           Laid{", order: [pipeline, data, tensor]", 6, 2, 1},
                           Laid{", order: [tensor, pipeline, data]", 1, 4, 2}}) {
    const Spreading spreading =
        mesh_of(platform, mesh(fmt::format("{{tensor: 2, data: 3, pipeline: 2{}}}", laid.order)));
    CAPTURE(laid.order);
    REQUIRE(spreading.likes.size() == 2);
    for (std::int64_t p = 0; p < 2; ++p)
      for (std::int64_t d = 0; d < 3; ++d)
        for (std::int64_t t = 0; t < 2; ++t) {
          const auto device = t * laid.tensor + d * laid.data + p * laid.pipeline;
          CHECK(platform[spreading.likes[static_cast<std::size_t>(p)]
                                        [static_cast<std::size_t>(2 * d + t)]]
                    .name == fmt::format("gpu{}", device));
        }
  }
  const auto refused = [](const char* text) {
    try {
      static_cast<void>(mesh(text));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(
      refused("{data: 4, order: [tensor]}").find("`order` leaves out `data`, an axis of 4 ranks") !=
      std::string::npos);
  CHECK(refused("{data: 4, order: [data, data]}").find("`order` has `data` twice") !=
        std::string::npos);
}

// One stage of 5 s, then B = 36 m B over m machines of 3 ranks: within a machine 4 rounds of
// 1 s + B/3 / 6 B/s, between them 2(m-1) rounds of 3 s + B/(3 m) / 2 B/s = 9 s.
TEST_CASE("hierarchical collectives: closed form") {
  for (const std::int64_t m : {2, 3, 4})
    for (const char* how : {"once", "all"}) {
      const std::string chain = chain_of({{.parameters = 36 * m}});
      const Ranks ranks{
          fmt::format("{{data: {}, collectives: hierarchical, node: 3, play: {}}}", 3 * m, how)};
      const Played it = played_ranks(ranks, chain, rails(m, 3));
      CAPTURE(m, how);
      CHECK(it.execution.makespan == seconds(5 + 4 * (1 + 12 * m / 6) + 2 * (m - 1) * (3 + 6)));
    }
}

TEST_CASE("one rank stands for all: random nodes") {
  std::mt19937 random(5);
  const auto from = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  for (int turn = 0; turn < 60; ++turn) {
    const std::int64_t machines = from(2, 4), node = from(3, 4);
    std::vector<Stage> stages;
    for (std::int64_t s = from(1, 4); s > 0; --s)
      stages.push_back({from(1, 3), from(1, 5), 4, from(1, 60), from(0, 2)});
    Ranks ranks{fmt::format("{{data: {}, collectives: hierarchical, node: {}, play: all}}",
                            machines * node, node)};
    ranks.bucket = Bytes{from(1, 100)};
    CAPTURE(turn, ranks.parallel, ranks.bucket.count(), chain_of(stages));
    const Played all = played_ranks(ranks, chain_of(stages), rails(machines, node));
    ranks.parallel.replace(ranks.parallel.find("play: all"), 9, "play: once");
    test::require_same_figures(played_ranks(ranks, chain_of(stages), rails(machines, node)), all);
  }
}

// A ring through several ranks of each machine leaves it at one of them, or by way of an adapter that they share.
TEST_CASE("some ranks stand for all: random machines") {
  std::mt19937 random(23);
  const auto from = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  int some = 0, refused = 0;
  for (int turn = 0; turn < 200; ++turn) {
    const std::int64_t machines = from(2, 4), node = 2 * from(1, 2);
    const std::int64_t other = from(0, 1) == 0 ? 1 : 2;
    std::vector<Stage> stages;
    for (std::int64_t s = from(1, 4); s > 0; --s)
      stages.push_back({from(1, 3), from(1, 5), 4, from(1, 60), from(0, 2)});
    const char* const axes[] = {"tensor", "context", "expert"};
    const bool tree = machines != 3 && from(0, 2) == 0;
    Ranks ranks{fmt::format("{{data: {}, {}: {}, collectives: {}, play: all}}",
                            machines * node / other, axes[from(0, 2)], other,
                            tree ? "tree" : "ring")};
    ranks.bucket = Bytes{from(1, 100)};
    ranks.overlap = from(0, 3) > 0;
    const std::string platform = switched(machines, node, from(0, 2) > 0);
    CAPTURE(turn, ranks.parallel, ranks.bucket.count(), chain_of(stages), platform);
    const Played all = played_ranks(ranks, chain_of(stages), platform);
    ranks.parallel.replace(ranks.parallel.find("play: all"), 9, "play: once");
    if (refusal(ranks, chain_of(stages), platform) != "(accepted)") {
      ++refused;
      continue;
    }
    const Played played = played_ranks(ranks, chain_of(stages), platform);
    test::require_same_figures(played, all);
    if (played.plan.replicas == 1) continue;
    ++some;
    const Workload workload = workload_of(chain_of(stages));
    const Platform machine = platform_of(platform);
    const std::string file = to_bytes(played.plan, PlanForm::json, workload, machine);
    const Plan read = parse_plan(file, PlanForm::json, "a.plan", workload, machine);
    CHECK(read.lanes == played.plan.lanes);
    CHECK(read.reductions == played.plan.reductions);
    CHECK(play(read, workload, machine).execution.makespan == all.execution.makespan);
  }
  CAPTURE(some, refused);
  CHECK(some > 100);
}

// Where member i begins with 2^i in each of n parts, all end with 2^n - 1 in each; after the first
// half every part is whole somewhere, each member has one.
TEST_CASE("collectives in levels: sums") {
  using Levels = std::vector<std::uint32_t>;
  const std::vector<std::pair<AllReduce, Levels>> cases = {
      {AllReduce::ring, {2, 2}},    {AllReduce::ring, {3, 2}}, {AllReduce::ring, {4, 3}},
      {AllReduce::ring, {2, 5}},    {AllReduce::ring, {5}},    {AllReduce::ring, {2, 3, 2}},
      {AllReduce::ring, {3, 2, 4}}, {AllReduce::tree, {4, 2}}, {AllReduce::tree, {2, 2, 4}}};
  for (const auto& [algorithm, levels] : cases) {
    std::uint32_t n = 1, rounds_of_half = 0;
    for (const std::uint32_t level : levels) {
      n *= level;
      rounds_of_half += algorithm == AllReduce::ring
                            ? level - 1
                            : static_cast<std::uint32_t>(std::countr_zero(level));
    }
    std::vector<std::vector<std::int64_t>> held;
    std::vector<std::vector<CollectiveSend>> sends;
    for (std::uint32_t i = 0; i < n; ++i) {
      held.emplace_back(n, std::int64_t{1} << i);
      sends.push_back(sends_in_levels(algorithm, levels, i));
    }
    const std::int64_t all = (std::int64_t{1} << n) - 1;
    const std::size_t rounds = sends.front().size();
    REQUIRE(rounds == 2 * rounds_of_half);
    for (std::size_t round = 0; round < rounds; ++round) {
      const auto before = held;
      for (std::uint32_t i = 0; i < n; ++i) {
        const CollectiveSend& send = sends[i][round];
        CHECK(sends[send.to][round].from == i);
        REQUIRE(send.part.of == n);
        for (std::uint32_t p = send.part.first; p < send.part.first + send.part.count; ++p)
          held[send.to][p] = (send.part.adds ? before[send.to][p] : 0) + before[i][p];
      }
      if (round + 1 != rounds / 2) continue;
      for (std::uint32_t p = 0; p < n; ++p)
        CHECK(std::ranges::count_if(held, [&](const auto& it) { return it[p] == all; }) == 1);
      for (std::uint32_t i = 0; i < n; ++i) {
        CHECK(std::ranges::count(held[i], all) == 1);
        std::vector<RankLevel> digits;
        for (std::uint32_t l = 0, stride = 1; l < levels.size(); stride *= levels[l++])
          digits.push_back({levels[l], stride});
        CHECK(held[i][part_left(i, digits, algorithm).number] == all);
      }
    }
    CHECK(held == std::vector<std::vector<std::int64_t>>(n, std::vector<std::int64_t>(n, all)));
  }
}

// Member i holds n parts, of which the j-th is for j; each part arrives once, in n-1 rounds.
TEST_CASE("all-to-all: every part arrives where it belongs") {
  for (const AllReduce algorithm : {AllReduce::ring, AllReduce::tree})
    for (const std::uint32_t n : {2U, 4U, 8U}) {
      std::vector<std::vector<int>> arrived(n, std::vector<int>(n, 0));
      for (std::uint32_t i = 0; i < n; ++i) {
        const auto sends = all_to_all_sends(algorithm, n, i);
        REQUIRE(sends.size() == n - 1);
        for (std::size_t round = 0; round < sends.size(); ++round) {
          const CollectiveSend& send = sends[round];
          CHECK(all_to_all_sends(algorithm, n, send.to)[round].from == i);
          CHECK(send.part == Reduction{send.to, 1, n, false});
          ++arrived[send.to][i];
        }
      }
      for (std::uint32_t to = 0; to < n; ++to)
        for (std::uint32_t from = 0; from < n; ++from)
          CHECK(arrived[to][from] == (to == from ? 0 : 1));
    }
}

TEST_CASE("a name of devices means its numbered copies") {
  const Platform platform = test::platform_of(
      "platform: p\nmemories: {hbm: {capacity: unlimited}, dram: {capacity: unlimited}}\n"
      "processors: {gpu: {memory: hbm}, cpu: {memory: dram}}\n"
      "cluster: {count: 3, shared: [dram], topology: mesh, link: {name: l, bandwidth: 1 B/s}}\n");
  MeshOptions parallel;
  const auto named = [&](const std::vector<std::string>& names) {
    parallel.devices.emplace();
    for (const std::string& name : names) parallel.devices->push_back({name, {}});
    std::string all;
    for (const ProcessorId device : mesh_devices(platform, parallel))
      all += platform[device].name + ' ';
    return all;
  };
  CHECK(named({"gpu"}) == "gpu0 gpu1 gpu2 ");
  CHECK(named({"gpu2", "cpu", "gpu0"}) == "gpu2 cpu gpu0 ");
  parallel = {};
  parallel.data = {3, {}};
  CHECK_THROWS_WITH(mesh_of(platform, parallel),
                    Catch::Matchers::Contains("`devices: [gpu]` names 3 of them"));
}

TEST_CASE("meshes that cannot be") {
  const std::string chain = chain_of(std::vector<Stage>(2));
  const std::string pair = cluster(2, "chain", link_of_2_bytes_a_second());
  const auto because = [&](const std::string& parallel, const std::string& platform) {
    return refusal({parallel}, chain, platform);
  };
  CHECK(because("{data: 4}", pair)
            .find("the mesh has 4 ranks (data 4 = 4), and platform `c` has 2 "
                  "processors") != std::string::npos);
  CHECK(because("{data: 1}", pair).find("`devices` may name those that are used") !=
        std::string::npos);
  CHECK(because("{data: 2, devices: [gpu0, gpu7]}", pair).find("no processor `gpu7`") !=
        std::string::npos);
  CHECK(because("{data: 2, devices: [gpu0, gpu0]}", pair).find("named twice") != std::string::npos);
  CHECK(because("{data: 2, devices: [gpu1, gpu]}", pair).find("`gpu1` is named twice") !=
        std::string::npos);
  CHECK(because("{}", pair)
            .find("the mesh has 1 rank (no axis is named), and platform `c` has 2 "
                  "processors") != std::string::npos);
  CHECK(because("{context: 3}", pair).find("the mesh has 3 ranks (context 3 = 3)") !=
        std::string::npos);
  const std::string three = cluster(3, "ring", link_of_2_bytes_a_second());
  CHECK(because("{data: 3, collectives: tree}", three).find("2, 4, 8, .. ranks; found 3") !=
        std::string::npos);
  CHECK(because("{data: 3, collectives: hierarchical, node: 2}", three)
            .find("nodes of 2 ranks do not divide a data axis of 3; expected one of 1, 3") !=
        std::string::npos);
  CHECK(because("{data: 3, collectives: hierarchical}", three).find("needs `node`") !=
        std::string::npos);
  CHECK(because("{data: 3, node: 3}", three).find("`node` belongs to") != std::string::npos);
  const std::string apart =
      "platform: c\nmemories: {a: {capacity: 1 GiB}, b: {capacity: 1 GiB}}\nprocessors: {gpu0: "
      "{memory: a}, gpu1: {memory: b}}\n";
  CHECK(because("{data: 2}", apart).find("none leads from `a` to `b`") != std::string::npos);
  const std::string shared =
      "platform: c\nmemories: {a: {capacity: 1 GiB}}\nprocessors: {gpu0: {memory: a}, gpu1: "
      "{memory: a}}\n";
  CHECK(because("{data: 2}", shared).find("share a memory") != std::string::npos);
}

TEST_CASE("axes and forms of collectives have the names that their keys have") {
  for (const NamedAxis& it : kNamedAxes) {
    CAPTURE(it.name);
    CHECK(mesh(fmt::format("{{{}: 2}}", it.name)).size(it.axis) == 2);
    CHECK(name_of(it.axis) == std::string(it.name));
    if (it.along) CHECK(name_of(*it.along) == std::string(it.name));
  }
  CHECK(name_of(MeshAxis::replica) == std::string("replica"));
  for (const NamedAlgorithm& it : kNamedAlgorithms) {
    CAPTURE(it.name);
    const bool has_nodes = it.algorithm == MeshOptions::Algorithm::hierarchical;
    const MeshOptions read =
        mesh(fmt::format("{{data: 4, collectives: {}{}}}", it.name, has_nodes ? ", node: 2" : ""));
    CHECK(read.collectives == it.algorithm);
    CHECK(name_of(it.algorithm) == std::string(it.name));
  }
}
