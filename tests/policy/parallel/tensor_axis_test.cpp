// Ranks that divide each layer among them, played: makespans and memory in closed form, and one rank
// for all.
#include "plan/build/spread_plan.hpp"
#include "policy/parallel/mesh_options.hpp"
#include "policy/parallel/trainers.hpp"
#include "support/mirrored.hpp"
#include "support/policies.hpp"
#include "workload/cost/cost_model.hpp"
#include "workload/sharding/sharded_step.hpp"

#include <memory>
#include <random>

using namespace plimsoll;
using namespace plimsoll::test;

namespace {

/// A mesh of tensor x data x pipeline, of a network on it.
struct Mesh {
  std::int64_t tensor = 1, data = 1, pipeline = 1;
  bool sequence = false;
  std::int64_t stage = 0;  ///< of sharding
  const char* play = "once";
  std::string policy = "none";  ///< a name, with parameters before its last brace, or without
};

MeshOptions options_of(const Mesh& mesh) {
  Diagnostics diagnostics;
  const std::string text =
      fmt::format("{{tensor: {}, data: {}, pipeline: {}, sequence: {}, play: {}}}", mesh.tensor,
                  mesh.data, mesh.pipeline, mesh.sequence && mesh.tensor > 1, mesh.play);
  const auto options = parallel_format().read(parse_document(text, "parallel"), diagnostics);
  diagnostics.throw_if_errors();
  return *options;
}

WorkloadOptions trained(const Mesh& mesh, std::int64_t batch = 2) {
  WorkloadOptions options;
  options.dtype = DType::bf16;
  options.batch = batch;
  if (mesh.tensor > 1) options.tensor = {{"scenario.yaml", 1, 1}, mesh.tensor, std::nullopt};
  if (mesh.tensor > 1 && mesh.sequence) options.tensor->sequence = Location{"scenario.yaml", 1, 9};
  return options;
}

Spreading spreading_of(const Mesh& mesh, const Platform& platform, const MeshOptions& options) {
  Spreading spreading = mesh_of(platform, options);
  spreading.first_bucket = kFirstBucket;
  spreading.bucket = kBucket;
  if (mesh.stage == 1) spreading.of_gradients = CollectiveKind::reduce_scatter;
  if (mesh.stage > 1) spreading.of_gradients = CollectiveKind::none;
  spreading.gathers_parameters = mesh.stage == 1 || mesh.stage == 2;
  return spreading;
}

Played played(const Mesh& mesh, const Workload& step, const Platform& platform) {
  static std::vector<std::unique_ptr<std::pair<Workload, Platform>>> kept;  // Played refers to them
  const auto& [workload, machine] =
      *kept.emplace_back(std::make_unique<std::pair<Workload, Platform>>(
          mesh.stage == 0 ? step : sharded_step(step, {mesh.stage, mesh.data, 1, true}), platform));
  const MeshOptions options = options_of(mesh);
  const Spreading spreading = spreading_of(mesh, machine, options);
  std::string devices;
  for (const auto& likes : spreading.likes)
    devices += (devices.empty() ? "" : ", ") + machine[likes.front()].name;
  const bool is_pipeline = mesh.policy.find("pipeline/") != std::string::npos;
  const std::string policy = with_parameters(
      mesh.policy, is_pipeline ? ", devices: [" + devices + "]" : ", on: " + devices);
  const Topology topology(machine);
  const ChainView view = chain_view(workload);
  const Problem problem{workload, view, machine, topology, judge_by_execution};
  const Plan of_one = std::get<Plan>(bound_policy(policy).plan(problem));
  Played it = play(plan_of_ranks(of_one, problem, options, spreading), workload, machine);
  require_claims_hold(it);
  return it;
}

/// Megatron's layers; `ends`: between a vocabulary's embedding and its loss.
std::string megatron(int layers, std::int64_t sequence, std::int64_t hidden, std::int64_t heads,
                     bool ends = false) {
  return fmt::format(
      "workload: net\nwith: {{heads: {1}}}\ninput: {0}\n{2}blocks:\n  block:\n    layers:\n      - "
      "layer_norm\n      - attention: {{heads: heads}}\n      - dropout\n      - add: {{skip: "
      "input, "
      "name: middle}}\n      - layer_norm\n      - linear: 4 * in\n      - gelu\n      - linear: "
      "in / "
      "4\n      - dropout\n      - add: {{skip: middle}}\nlayers:\n{3}  - block: {{repeat: "
      "{4}}}\n{5}",
      ends ? fmt::format("{{shape: [{}], type: indices}}", sequence)
           : fmt::format("[{}, {}]", sequence, hidden),
      heads, ends ? "" : "loss: sum\n",
      ends ? fmt::format(
                 "  - embedding: {{entries: 96, features: {}}}\n  - position_embedding: {}\n",
                 hidden, sequence)
           : "",
      layers, ends ? "  - layer_norm\n  - linear: {features: 96, bias: false}\n" : "");
}

std::string llama(int layers, std::int64_t sequence, std::int64_t kv_heads) {
  return fmt::format(
      "workload: net\nframework: pytorch-2\ninput: {{shape: [{0}], type: indices}}\nblocks:\n  "
      "block:\n    layers:\n      - rms_norm\n      - grouped_attention: {{heads: 12, kv_heads: "
      "{1}, "
      "size: 4, out: 48, norm: true}}\n      - add: {{skip: input, name: middle}}\n      - "
      "rms_norm\n"
      "      - mixture: {{experts: 4, top_k: 2, features: 24, out: 48, name: routed}}\n      - "
      "gated_mlp: {{from: middle, features: 36, out: 48}}\n      - add: {{skip: "
      "routed}}\nlayers:\n  "
      "- embedding: {{entries: 96, features: 48}}\n  - block: {{repeat: {2}}}\n  - rms_norm\n  - "
      "linear: {{features: 96, bias: false}}\n",
      sequence, kv_heads, layers);
}

}  // namespace

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
  const char* const kNone = "none";
  const char* const kSelective =
      "{name: remat/blocks, blocks: [{from: \"*/attention_scores_1\", to: "
      "\"*/attention_context_1\"}]}";
  const char* const kFull = "{name: remat/blocks, blocks: [\"block_*\"]}";
  for (const std::int64_t t : {1, 2, 4, 8})
    for (const bool sequence : {false, true})
      for (const char* policy : {kNone, kSelective, kFull}) {
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
        if (policy == kNone) expected += 5 * a * s * s * b / t + 8;
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
    const int layers = static_cast<int>(from(1, 3));
    const char* const policies[] = {"none", "{name: remat/blocks, blocks: [\"block_*\"]}",
                                    "remat/sqrt"};
    mesh.policy = policies[from(0, 2)];
    if (mesh.stage < 2 && layers > 1 && from(0, 3) == 0) {
      mesh.pipeline = 2;
      const char* const pipelines[] = {"{name: pipeline/1f1b, microbatches: 3}",
                                       "{name: pipeline/gpipe, microbatches: 2, recompute: full}",
                                       "{name: pipeline/zb-h1, microbatches: 3}"};
      mesh.policy = pipelines[from(0, 2)];
    }
    WorkloadOptions options = trained(mesh, from(1, 3));
    options.optimizer = Optimizer::adam;
    options.master_weights = true;
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
    CAPTURE(turn, mesh.tensor, mesh.data, mesh.pipeline, mesh.sequence, mesh.stage, mesh.policy,
            is_llama, layers, cluster);
    mesh.play = "all";
    const Played all = played(mesh, step, platform);
    REQUIRE(all.execution.status == RunStatus::ok);
    mesh.play = "once";
    try {
      require_same_figures(played(mesh, step, platform), all);
      ++exact;
    } catch (const InputError& error) {
      CHECK(std::string(error.what()).find("cannot be played for all") != std::string::npos);
      ++refused;
    }
  }
  CAPTURE(refused);
  CHECK(exact > 60);
}
