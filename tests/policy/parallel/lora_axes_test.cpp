// Low-rank adapters on ranks that divide layers, positions, experts and state, played.
#include "policy/parallel/mesh_runs.hpp"
#include "workload/cost/cost_model.hpp"

#include <random>

using namespace plimsoll;
using namespace plimsoll::test;

namespace {

WorkloadOptions adapted(const Mesh& mesh, std::int64_t rank, std::int64_t batch = 2) {
  WorkloadOptions options = trained(mesh, batch);
  const Location where{"scenario.yaml", 2, 1};
  options.lora = LowRank{{rank, where}, {{"*", where}}};
  return options;
}

/// Of A's products beside layers divided by rows, which are the second ones of their blocks, what fits
/// into the time that the layer's sum takes.
Time hidden(const Workload& step, const std::vector<Time>& times, Time sum) {
  Time hidden;
  for (std::uint32_t op = 0; op < step.operators.size(); ++op)
    if (step.operators[op].name.ends_with("linear_2/lora_a.forward"))
      hidden += std::min(times[op], sum);
  return hidden;
}

}  // namespace

// Of each layer divided by rows ranks add up what the frozen layer makes, 2 s b h bytes, and what A
// does, 2 s b r; of each divided by columns the gradients of its input and of B's, but the first
// layer's input has none. A of a layer divided by rows runs while the frozen layer's sum is on its
// way; nothing else does anything meanwhile. With divided positions each sum is
// two halves, and B's input is gathered again; then the ranks add up the gradients of what they have
// whole, of which there are 4 r h a layer.
TEST_CASE("adapters on a tensor axis: closed form") {
  constexpr std::int64_t s = 16, b = 2, h = 48, r = 4;
  for (const std::int64_t t : {2, 4, 8})
    for (const int layers : {1, 3})
      for (const bool sequence : {false, true})
        for (const char* play : {"once", "all"}) {
          const Mesh mesh{.tensor = t, .sequence = sequence, .play = play};
          const Platform platform = platform_of(
              trainers(t, t == 2 ? "chain" : "ring", "bandwidth: 1 GB/s, latency: 1 us"));
          const Workload step = workload_of(megatron(layers, s, h, 8), adapted(mesh, r));
          const auto times = durations(step, platform, ProcessorId{0});
          Time expected;
          for (const Time time : times) expected += time;
          const Time of_features = half_ring(t, 2 * s * b * h);
          const Time of_rank = half_ring(t, 2 * s * b * r);
          const std::int64_t first = sequence ? 1 : 2;
          const Time meanwhile = hidden(step, times, sequence ? of_features : of_features * 2);
          REQUIRE(meanwhile > Time{});
          expected -= meanwhile;
          expected += of_features * (8 * layers - first) + of_rank * (8 * layers);
          if (sequence)
            expected += of_rank * (2 * layers) + half_ring(t, 2 * 4 * r * h * layers) * 2;
          CAPTURE(t, layers, sequence, play);
          CHECK(played(mesh, step, platform).execution.makespan == expected);
        }
}

// With P parameters of 2 bytes, of which f are adapters', with a gradient of 2 bytes and two moments of
// 4: 2 P + 10 f bytes; n ranks divide moments, gradients and parameters from stages 1, 2 and 3 on.
TEST_CASE("bytes of a rank where adapters are trained") {
  constexpr std::int64_t h = 48, r = 4, layers = 2;
  constexpr std::int64_t adapters = layers * 16 * r * h;
  constexpr std::int64_t all = layers * (12 * h * h + 13 * h) + adapters;
  for (const std::int64_t n : {2, 4})
    for (const std::int64_t stage : {0, 1, 2, 3}) {
      const Mesh mesh{.data = n, .stage = stage};
      WorkloadOptions options = adapted(mesh, r);
      options.optimizer = Optimizer::adam;
      const Workload step = step_of_rank(mesh, workload_of(megatron(layers, 16, h, 8), options));
      std::int64_t held = 0;
      for (const Tensor& tensor : step.tensors)
        if (tensor.lifetime == Lifetime::resident || tensor.lifetime == Lifetime::accumulated)
          held += tensor.bytes.count();
      const auto part = [&](std::int64_t from) { return stage >= from ? n : 1; };
      CAPTURE(n, stage);
      CHECK(held == 2 * all / part(3) + 2 * adapters / part(2) + 8 * adapters / part(1));
    }
}

TEST_CASE("one rank stands for all: random meshes with adapters") {
  std::mt19937 random(28);
  const auto from = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  int exact = 0, refused = 0;
  for (int turn = 0; turn < 120; ++turn) {
    Mesh mesh{.tensor = from(1, 3), .data = from(1, 2)};
    const bool is_llama = from(0, 1) == 1;
    if (is_llama) (from(0, 1) == 1 ? mesh.context : mesh.expert) = 2;
    mesh.sequence = mesh.tensor > 1 && from(0, 1) == 1;
    if (mesh.data > 1) mesh.stage = from(0, 3);
    if (mesh.ranks() == 1) mesh.tensor = 2;
    mesh.overlap = from(0, 1) == 1;
    const int layers = static_cast<int>(from(1, 3));
    const char* const policies[] = {"none", "{name: remat/blocks, blocks: [\"block_*\"]}",
                                    "remat/sqrt"};
    mesh.policy = policies[from(0, 2)];
    if (layers > 1 && from(0, 3) == 0) {
      mesh.pipeline = 2;
      const char* const pipelines[] = {"{name: pipeline/1f1b, microbatches: 3}",
                                       "{name: pipeline/zb-h1, microbatches: 3}"};
      mesh.policy = pipelines[from(0, 1)];
    }
    WorkloadOptions options = adapted(mesh, from(1, 2), from(1, 3));
    options.optimizer = Optimizer::adam;
    options.master_weights = true;
    options.split_backward = bound_policy(mesh.policy).splits_backward;
    const Workload step =
        workload_of(is_llama ? llama(layers, 24, 12) : megatron(layers, 24, 48, 12, true), options);
    const char* const topologies[] = {"switch", "mesh", "ring"};
    const std::string cluster =
        trainers(mesh.ranks(), mesh.ranks() == 2 ? "chain" : topologies[from(0, 2)],
                 fmt::format("bandwidth: {} MB/s, latency: {} us", from(50, 2000), from(0, 20)));
    const Platform platform = platform_of(cluster);
    CAPTURE(turn, mesh.tensor, mesh.context, mesh.expert, mesh.data, mesh.pipeline, mesh.sequence,
            mesh.overlap, mesh.stage, mesh.policy, is_llama, layers, cluster);
    ++(one_stands_for_all(mesh, step, platform) ? exact : refused);
  }
  CAPTURE(refused);
  CHECK(exact > 60);
}
