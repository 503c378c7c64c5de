// Ranks that divide the experts of mixtures among them, played: what they hold, makespans in closed
// form, and one rank for all.
#include "execution/rank_metrics.hpp"
#include "policy/parallel/mesh_runs.hpp"
#include "workload/cost/cost_model.hpp"
#include "workload/workload_text.hpp"

#include <random>

using namespace plimsoll;
using namespace plimsoll::test;
using Catch::Matchers::Contains;

namespace {

constexpr std::int64_t kExperts = 12;

/// A dense layer of h x h, then mixtures alone: each router sends every position to two experts.
std::string mixtures(int layers, std::int64_t sequence, std::int64_t hidden) {
  return fmt::format(
      "workload: net\nframework: pytorch-2\ninput: [{}, {}]\nloss: sum\nblocks:\n  block:\n    "
      "layers:\n      - mixture: {{experts: {}, top_k: 2, features: 24, out: {}}}\nlayers:\n  - "
      "linear: {{features: {}, bias: false}}\n  - block: {{repeat: {}}}\n",
      sequence, hidden, kExperts, hidden, hidden, layers);
}

Workload shipped_network(const char* name, std::int64_t ranks) {
  WorkloadOptions options;
  options.dtype = DType::bf16;
  options.batch = 1;
  if (ranks > 1) options.expert = {ranks, {"scenario.yaml", 1, 1}};
  return build(read_workload(read_document(shipped(name))), options);
}

std::int64_t resident(const Workload& workload, TensorClass of, bool experts) {
  std::int64_t bytes = 0;
  for (const Tensor& tensor : workload.tensors)
    if (tensor.tensor_class == of && tensor.is_of_experts == experts &&
        (tensor.lifetime == Lifetime::resident || tensor.lifetime == Lifetime::accumulated))
      bytes += tensor.bytes.count();
  return bytes;
}

}  // namespace

// Every mixture hands its rows out and takes the results back, and so with their gradients: four
// all-to-alls of the two rows of each position, 2 s b h numbers of 2 bytes, that nothing overlaps
// with: (e-1)(a + 4 s b h / (e B)) each. What all ranks hold, h^2 + 12 h a layer, is then added up:
// 2(e-1)(a + bytes / (e B)). No other rank has the same experts.
TEST_CASE("exposed all-to-alls of experts: closed form") {
  constexpr std::int64_t s = 16, b = 2, h = 48;
  for (const std::int64_t e : {2, 3, 4, 6})
    for (const int layers : {1, 3})
      for (const char* play : {"once", "all"}) {
        const Mesh mesh{.expert = e, .play = play};
        const Platform platform =
            platform_of(trainers(e, e == 2 ? "chain" : "mesh", "bandwidth: 1 GB/s, latency: 1 us"));
        const Workload step = workload_of(mixtures(layers, s, h), trained(mesh, b));
        Time expected;
        for (const Time time : durations(step, platform, ProcessorId{0})) expected += time;
        expected += half_ring(e, 4 * s * b * h) * std::int64_t{4 * layers};
        expected += half_ring(e, 2 * (h * h + kExperts * h * layers)) * 2;
        CAPTURE(e, layers, play);
        const Played it = played(mesh, step, platform);
        CHECK(it.execution.makespan == expected);
        const Topology topology(platform);
        Metrics metrics = it.metrics;
        const Program program = lower(it.plan, step, platform, topology);
        StepSums sums = step_sums(program, it.execution);
        sums.collectives = collective_sums(program, it.execution);
        measure_ranks(program, sums, e, metrics);
        REQUIRE(metrics.collectives.size() == 2);
        CHECK(metrics.collectives[0].name == "experts");
        CHECK(metrics.collectives[0].bytes.count() ==
              (e - 1) * ((4 * s * b * h + e - 1) / e) * 4 * layers);
        CHECK(metrics.collectives[0].exposed ==
              half_ring(e, 4 * s * b * h) * std::int64_t{4 * layers});
      }
}

// Published sizes: of 46.7e9 parameters of Mixtral 8x7B 32 x 8 experts of 3 x 4096 x 14336, of 671e9 of
// DeepSeek-V3 58 x 256 of 3 x 7168 x 2048.
TEST_CASE("a rank's part of the experts of shipped networks") {
  const std::int64_t mixtral = std::int64_t{32} * 8 * 3 * 4096 * 14336;
  const std::int64_t deepseek = std::int64_t{58} * 256 * 3 * 7168 * 2048;
  for (const auto& [name, of_experts, most] :
       {std::tuple("mixtral-8x7b", mixtral, std::int64_t{8}),
        std::tuple("deepseek-v3", deepseek, std::int64_t{64})}) {
    const Workload whole = shipped_network(name, 1);
    for (std::int64_t e = 2; e <= most; e *= 4) {
      const Workload part = shipped_network(name, e);
      CAPTURE(name, e);
      CHECK(part.parameters == whole.parameters);
      CHECK(part.macs == whole.macs);
      CHECK(part.saved_bytes == whole.saved_bytes);
      CHECK(part.parameter_bytes.count() == 2 * (whole.parameters - of_experts + of_experts / e));
      CHECK(resident(part, TensorClass::parameter, true) == 2 * of_experts / e);
    }
  }
}

// Of P parameters of experts and D others, in 2, 4 and 12 bytes: the d ranks of the data axis divide
// the P / e of a rank, all e d ranks divide D.
TEST_CASE("sharded state of experts: closed form") {
  constexpr std::int64_t h = 48, e = 3, d = 4;
  constexpr std::int64_t kOfExperts = kExperts * 3 * h * 24, kDense = h * h + kExperts * h;
  for (const std::int64_t stage : {0, 1, 2, 3}) {
    const Mesh mesh{.expert = e, .data = d, .stage = stage};
    WorkloadOptions options = trained(mesh);
    options.optimizer = Optimizer::adam;
    options.master_weights = true;
    const Workload step = step_of_rank(mesh, workload_of(mixtures(1, 16, h), options));
    const auto divided = [&](std::int64_t from_stage, std::int64_t by) {
      return stage >= from_stage ? by : 1;
    };
    CAPTURE(stage);
    for (const auto& [of, bytes, from_stage] :
         {std::tuple(TensorClass::optimizer_state, 12, 1), std::tuple(TensorClass::gradient, 4, 2),
          std::tuple(TensorClass::parameter, 2, 3)}) {
      CHECK(resident(step, of, true) == bytes * kOfExperts / e / divided(from_stage, d));
      CHECK(resident(step, of, false) == bytes * kDense / divided(from_stage, e * d));
    }
  }
}

TEST_CASE("one rank stands for all: random meshes that divide experts") {
  std::mt19937 random(31);
  const auto from = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  int exact = 0, refused = 0;
  for (int turn = 0; turn < 60; ++turn) {
    Mesh mesh{.tensor = from(1, 2),
              .expert = from(0, 1) == 0 ? 2 : 4,
              .data = from(1, 3),
              .sequence = from(0, 1) == 1,
              .stage = from(0, 3)};
    const int layers = static_cast<int>(from(1, 3));
    choose_policy(mesh, layers, from);
    WorkloadOptions options = trained(mesh, from(1, 3));
    options.optimizer = Optimizer::adam;
    options.master_weights = true;
    options.split_backward = bound_policy(mesh.policy).splits_backward;
    const Workload step = workload_of(llama(layers, 24, 12), options);
    const std::string cluster =
        trainers(mesh.ranks(),
                 mesh.ranks() == 2 ? "chain"
                 : from(0, 1) == 0 ? "switch"
                                   : "mesh",
                 fmt::format("bandwidth: {} MB/s, latency: {} us", from(50, 2000), from(0, 20)));
    const Platform platform = platform_of(cluster);
    CAPTURE(turn, mesh.tensor, mesh.expert, mesh.data, mesh.pipeline, mesh.sequence, mesh.stage,
            mesh.policy, layers, cluster);
    ++(one_stands_for_all(mesh, step, platform) ? exact : refused);
  }
  CAPTURE(refused);
  CHECK(exact > 40);
}

TEST_CASE("experts that ranks cannot divide") {
  const auto error = [](const std::string& text, std::int64_t ranks) {
    WorkloadOptions options;
    options.expert = {ranks, {"scenario.yaml", 4, 20}};
    return error_of(text, options);
  };
  CHECK_THAT(error(mixtures(2, 16, 48), 5),
             Contains("scenario.yaml:4:20: error: `expert: 5` does not divide the 12 experts of "
                      "`dispatch`") &&
                 Contains("expected one of 1, 2, 3, 4, 6, 12"));
  CHECK_THAT(error(megatron(1, 16, 48, 8), 2),
             Contains("`expert` divides the experts of mixtures, and the network has none"));
  const std::string held =
      "workload: net\ninput: [16, 48]\nloss: sum\nlayers:\n  - mixture: {experts: 8, top_k: 2, "
      "features: 24, out: 48, held: 2}\n";
  CHECK_THAT(error(held, 4), Contains("`held: 2` of `dispatch` and `expert: 4` both say how many"));
}
