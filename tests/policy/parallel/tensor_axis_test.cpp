// Ranks that divide each layer among them, played: makespans and memory in closed form, and one rank
// for all.
#include "policy/parallel/mesh_runs.hpp"
#include "workload/cost/cost_model.hpp"

#include <random>

using namespace plimsoll;
using namespace plimsoll::test;

// Nothing is computed while ranks add up: what follows reads the sum. A layer's two all-reduces in
// the forward and two in the backward are of 2 s b h bytes each, 2(n-1)(a + 2 s b h / (n B)); with
// divided positions each is its two halves, and two more gather in the backward what was not kept.
// The norms' gradients, 4 h of 2 bytes a layer, are then added up in one.
TEST_CASE("exposed collectives of divided layers: closed form") {
  constexpr std::int64_t s = 16, b = 2, h = 48;
  for (const std::int64_t t : {2, 4, 8})
    for (const int layers : {1, 3})
      for (const bool sequence : {false, true})
        for (const char* play : {"once", "all"}) {
          const Mesh mesh{.tensor = t, .sequence = sequence, .play = play};
          const Platform platform = platform_of(
              trainers(t, t == 2 ? "chain" : "ring", "bandwidth: 1 GB/s, latency: 1 us"));
          const Workload step = workload_of(megatron(layers, s, h, 8), trained(mesh));
          Time expected;
          for (const Time time : durations(step, platform, ProcessorId{0})) expected += time;
          const std::int64_t halves = sequence ? 10 : 8;
          expected += half_ring(t, 2 * s * b * h) * (halves * layers);
          if (sequence) expected += half_ring(t, 2 * 4 * h * layers) * 2;
          CAPTURE(t, layers, sequence, play);
          CHECK(played(mesh, step, platform).execution.makespan == expected);
        }
}

namespace {

/// What the backward of a layer divided by columns takes, of which the halves take so long.
struct ColumnHalves {
  Time input, weight;
};

std::vector<ColumnHalves> halves_of(const Workload& step, const std::vector<Time>& times) {
  std::vector<ColumnHalves> found;
  for (std::uint32_t op = 0; op < step.operators.size(); ++op) {
    if (step.operators[op].name.ends_with(".backward_input")) found.push_back({times[op], {}});
    if (step.operators[op].name.ends_with(".backward_weight")) found.back().weight = times[op];
  }
  return found;
}

}  // namespace

// The gradient of the input of a layer divided by columns, r on its way, is added up while that of its
// weight is made, w; with divided positions the input is gathered, g, while the gradient of the input
// is made, d, and then that is scattered: d + max(r, w), or max(g, d) + max(r, w), in the place of
// all four. Such are the first layer of attention and that of the MLP; the others are as without.
TEST_CASE("collectives beside gradients of weights: closed form") {
  constexpr std::int64_t s = 16, b = 2, h = 48;
  bool is_longer = false, is_shorter = false;
  for (const std::int64_t t : {2, 4, 8})
    for (const int layers : {1, 3})
      for (const bool sequence : {false, true})
        for (const int latency : {1, 20})
          for (const char* play : {"once", "all"}) {
            const Mesh mesh{.tensor = t, .sequence = sequence, .overlap = true, .play = play};
            const std::string link = fmt::format("bandwidth: 1 GB/s, latency: {} us", latency);
            const Platform platform = platform_of(trainers(t, t == 2 ? "chain" : "ring", link));
            const Workload step = workload_of(megatron(layers, s, h, 8), trained(mesh));
            const auto times = durations(step, platform, ProcessorId{0});
            const Time more = Time{1'000'000} * ((latency - 1) * (t - 1));
            const Time half = half_ring(t, 2 * s * b * h) + more;
            Time expected = half * (4 * layers);  // of the forward
            expected += half * (2 * layers) * (sequence ? 1 : 0);
            for (const Time time : times) expected += time;
            const auto halves = halves_of(step, times);
            REQUIRE(halves.size() == 2 * static_cast<std::size_t>(layers));
            for (const auto& [input, weight] : halves) {
              const Time sum = sequence ? half : half * 2;
              (weight < sum ? is_longer : is_shorter) = true;
              expected += std::max(sum, weight) - weight;
              if (sequence) expected += std::max(half, input) - input;
            }
            if (sequence) expected += (half_ring(t, 2 * 4 * h * layers) + more) * 2;
            CAPTURE(t, layers, sequence, latency, play);
            CHECK(played(mesh, step, platform).execution.makespan == expected);
          }
  CHECK(is_longer);
  CHECK(is_shorter);
}

namespace {

/// What a rank holds for backwards when the last forward before them has ended.
std::int64_t kept_after_forwards(const Played& it, const Workload& workload) {
  const Plan& plan = it.plan;
  const auto is_backward = [&](const Step& step) {
    return step.kind == StepKind::compute && workload[step.op].phase != Phase::forward;
  };
  const auto first = static_cast<std::uint32_t>(std::ranges::find_if(plan.steps, is_backward) -
                                                plan.steps.begin());
  std::vector<bool> is_made(plan.buffers.size()), is_left(plan.buffers.size(), true);
  for (std::uint32_t s = 0; s < first; ++s)
    for (const BufferId id : plan.list(plan.steps[s].writes)) is_made[index(id)] = true;
  for (const Release& release : plan.releases) {
    is_left[index(release.buffer)] = false;
    for (const StepId on : plan.after(release))
      if (index(on) >= first) is_left[index(release.buffer)] = true;
  }
  std::int64_t bytes = 0;
  for (std::uint32_t id = 0; id < plan.buffers.size(); ++id)
    if (is_made[id] && is_left[id]) bytes += workload[plan.buffers[id].tensor].bytes.count();
  return bytes;
}

}  // namespace

// V. Korthikanti et al., arXiv 2205.05198, table 2, of one layer: nothing runs again; the core of
// attention does, which leaves s b h (10 + 24 / t), or 34 s b h / t where positions are divided; all of
// it does, from its input, 2 s b h. Beside what the table has: statistics of two norms, 16 s b, and the
// number by which scores are scaled, 8, where these are kept.
TEST_CASE("six ways to keep a transformer's layer, in plans") {
  constexpr std::int64_t s = 16, b = 2, h = 48, a = 8;
  const char* const kKeepAll = "none";
  const char* const kSelective =
      "{name: remat/blocks, blocks: [{from: \"*/attention_scores_1\", to: "
      "\"*/attention_context_1\"}]}";
  const char* const kFull = "{name: remat/blocks, blocks: [\"block_*\"]}";
  for (const std::int64_t t : {1, 2, 4, 8})
    for (const bool sequence : {false, true})
      for (const char* policy : {kKeepAll, kSelective, kFull}) {
        const Mesh mesh{.tensor = t, .sequence = sequence, .policy = policy};
        const Platform platform = platform_of(trainers(t,
                                                       t == 1   ? "switch"
                                                       : t == 2 ? "chain"
                                                                : "ring",
                                                       "bandwidth: 1 GB/s, latency: 1 us"));
        const auto kept = [&](int layers) {
          const Workload step = workload_of(megatron(layers, s, h, a), trained(mesh));
          return kept_after_forwards(played(mesh, step, platform), step);
        };
        const std::int64_t whole = sequence ? 10 * s * b * h / t : 10 * s * b * h;
        const std::int64_t statistics = sequence ? 16 * s * b / t : 16 * s * b;
        std::int64_t expected = whole + 24 * s * b * h / t + statistics;
        if (policy == kKeepAll) expected += 5 * a * s * s * b / t + 8;
        if (policy == kFull) expected = 2 * s * b * h / (sequence ? t : 1);
        CAPTURE(t, sequence, policy);
        CHECK(kept(3) - kept(2) == expected);
      }
}

TEST_CASE("one rank stands for all: random meshes that divide layers") {
  std::mt19937 random(27);
  const auto from = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  int exact = 0, refused = 0;
  for (int turn = 0; turn < 120; ++turn) {
    const std::int64_t sizes[] = {2, 3, 4};
    Mesh mesh{.tensor = sizes[from(0, 2)], .data = from(1, 3), .sequence = from(0, 1) == 1};
    if (mesh.data > 1) mesh.stage = from(0, 3);
    mesh.overlap = from(0, 1) == 1;
    const int layers = static_cast<int>(from(1, 3));
    const char* const policies[] = {"none", "{name: remat/blocks, blocks: [\"block_*\"]}",
                                    "remat/sqrt"};
    mesh.policy = policies[from(0, 2)];
    if (layers > 1 && from(0, 3) == 0) {
      mesh.pipeline = 2;
      const char* const pipelines[] = {"{name: pipeline/1f1b, microbatches: 3}",
                                       "{name: pipeline/gpipe, microbatches: 2, recompute: full}",
                                       "{name: pipeline/zb-h1, microbatches: 3}"};
      mesh.policy = pipelines[from(0, 2)];
    }
    WorkloadOptions options = trained(mesh, from(1, 3));
    options.optimizer = Optimizer::adam;
    options.master_weights = from(0, 3) > 0;
    if (!options.master_weights) {
      options.dtype = DType::fp32;
      options.autocast = DType::bf16;
    }
    options.split_backward = bound_policy(mesh.policy).splits_backward;
    const bool is_llama = from(0, 1) == 1;
    const Workload step =
        workload_of(is_llama ? llama(layers, 24, 12) : megatron(layers, 24, 48, 12, true), options);
    const std::int64_t ranks = mesh.tensor * mesh.data * mesh.pipeline;
    const char* const topologies[] = {"switch", "mesh", "ring"};
    const std::string cluster =
        trainers(ranks, ranks == 2 ? "chain" : topologies[from(0, 2)],
                 fmt::format("bandwidth: {} MB/s, latency: {} us", from(50, 2000), from(0, 20)));
    const Platform platform = platform_of(cluster);
    CAPTURE(turn, mesh.tensor, mesh.data, mesh.pipeline, mesh.sequence, mesh.overlap, mesh.stage,
            options.master_weights, mesh.policy, is_llama, layers, cluster);
    ++(one_stands_for_all(mesh, step, platform) ? exact : refused);
  }
  CAPTURE(refused);
  CHECK(exact > 60);
}
