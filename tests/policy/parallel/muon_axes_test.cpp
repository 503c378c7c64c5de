// Muon of matrices and moments of which each rank has a part.
#include "execution/rank_metrics.hpp"
#include "policy/parallel/mesh_runs.hpp"
#include "workload/cost/cost_model.hpp"

#include <algorithm>
#include <random>

using namespace plimsoll;
using namespace plimsoll::test;

namespace {

constexpr std::int64_t kPositions = 16, kBatch = 2, kWidth = 48;

WorkloadOptions muon_on(const Mesh& mesh) {
  WorkloadOptions options = trained(mesh, kBatch);
  options.optimizer = Optimizer::muon;
  options.momentum_is_apart = mesh.tensor > 1 || mesh.stage > 0;
  return options;
}

/// Of the hidden matrices of so many of Megatron's layers: of attention, and of the MLP, whose last one
/// is the network's.
std::vector<std::int64_t> hidden_matrices(int layers) {
  std::vector<std::int64_t> elements;
  for (int i = 0; i < layers; ++i)
    for (const std::int64_t squares : {3, 1, 4, 4}) elements.push_back(squares * kWidth * kWidth);
  elements.pop_back();
  return elements;
}

Time sum_of_durations(const Workload& step, const Platform& platform) {
  Time sum;
  for (const Time time : durations(step, platform, ProcessorId{0})) sum += time;
  return sum;
}

/// Between neighbours each of which has a link of its own: no two rounds share one.
Platform ring_of(std::int64_t n) {
  return platform_of(trainers(n, n == 2 ? "chain" : "ring", "bandwidth: 1 GB/s, latency: 1 us"));
}

std::int64_t bytes_held(const Workload& step, TensorClass of_class) {
  std::int64_t bytes = 0;
  for (const Tensor& tensor : step.tensors)
    if (tensor.tensor_class == of_class && tensor.lifetime != Lifetime::step)
      bytes += tensor.bytes.count();
  return bytes;
}

Flops work_of(const Workload& step, std::string_view suffix) {
  Flops flops;
  for (const Operator& op : step.operators)
    if (op.name.ends_with(suffix)) flops += op.flops;
  return flops;
}

}  // namespace

// The momentum and what then makes its direction orthogonal move what both together do, and hold as much:
// the direction is the first of what the latter works with.
TEST_CASE("Muon's momentum apart from the orthogonalization") {
  WorkloadOptions options = muon_on({});
  const Workload together = workload_of(megatron(2, kPositions, kWidth, 8), options);
  options.momentum_is_apart = true;
  const Workload apart = workload_of(megatron(2, kPositions, kWidth, 8), options);
  std::size_t found = 0;
  const auto find = [&](const Workload& step, const std::string& name) -> const Operator& {
    return *std::ranges::find(step.operators, name, &Operator::name);
  };
  for (const Operator& whole : together.operators) {
    if (!whole.name.ends_with(".orthogonalize")) continue;
    const std::string layer = whole.name.substr(0, whole.name.rfind('.'));
    CAPTURE(layer);
    const Operator& momentum = find(apart, layer + ".momentum");
    const Operator& rest = find(apart, whole.name);
    CHECK(momentum.traffic + rest.traffic == whole.traffic);
    CHECK(momentum.launches + rest.launches == whole.launches);
    CHECK(rest.flops == whole.flops);
    CHECK(rest.workspace + apart[apart.list(momentum.kept)[0]].bytes == whole.workspace);
    CHECK(find(apart, layer + ".update").flops == find(together, layer + ".update").flops);
    ++found;
  }
  CHECK(found == hidden_matrices(2).size());
  CHECK(bytes_held(apart, TensorClass::optimizer_state) ==
        bytes_held(together, TensorClass::optimizer_state));
}

// J. Liu and others, arXiv 2502.16982, algorithm 1. A moment of 4 bytes of each of M elements of hidden
// matrices and two of all others, of P; n ranks divide them from stage 1 on, gradients of 2 bytes from
// stage 2 on, and parameters from stage 3 on. Each makes all matrices orthogonal.
TEST_CASE("bytes and work of Muon on ranks that divide state") {
  constexpr std::int64_t h = kWidth;
  constexpr int layers = 2;
  constexpr std::int64_t parameters = layers * (12 * h * h + 13 * h);
  std::int64_t hidden = 0;
  for (const std::int64_t elements : hidden_matrices(layers)) hidden += elements;
  const Workload whole = workload_of(megatron(layers, kPositions, kWidth, 8), muon_on({}));
  for (const std::int64_t n : {2, 4})
    for (const std::int64_t stage : {1, 2, 3}) {
      const Mesh mesh{.data = n, .stage = stage};
      const Workload step =
          step_of_rank(mesh, workload_of(megatron(layers, kPositions, kWidth, 8), muon_on(mesh)));
      CAPTURE(n, stage);
      CHECK(bytes_held(step, TensorClass::optimizer_state) ==
            4 * (hidden + 2 * (parameters - hidden)) / n);
      CHECK(bytes_held(step, TensorClass::gradient) == 2 * parameters / (stage > 1 ? n : 1));
      CHECK(bytes_held(step, TensorClass::parameter) == 2 * parameters / (stage > 2 ? n : 1));
      CHECK(work_of(step, ".orthogonalize") == work_of(whole, ".orthogonalize"));
      std::int64_t gathered = 0, sent = 0;
      for (const Operator& op : step.operators)
        if (op.name.ends_with(".momentum.gather")) {
          CHECK(op.collective == Collective{CollectiveKind::all_gather, MeshAxis::data, false});
          sent += step[step.list(op.reads)[0]].bytes.count();
          gathered += step[step.list(op.kept)[0]].bytes.count();
        }
      CHECK(gathered == 2 * hidden);
      CHECK(sent == 2 * hidden / n);
    }
}

// Ranks of a tensor axis have a part of each matrix of a moment, gather 2 bytes an element and make all of
// it orthogonal. Nothing else is done while they gather.
TEST_CASE("Muon on a tensor axis: closed form") {
  constexpr std::int64_t h = kWidth;
  for (const std::int64_t t : {2, 4})
    for (const int layers : {1, 2})
      for (const char* play : {"once", "all"}) {
        const Mesh mesh{.tensor = t, .play = play};
        const Workload step = workload_of(megatron(layers, kPositions, kWidth, 8), muon_on(mesh));
        const Workload whole = workload_of(megatron(layers, kPositions, kWidth, 8), muon_on({}));
        const Platform platform = ring_of(t);
        Time expected = sum_of_durations(step, platform);
        expected += half_ring(t, 2 * kPositions * kBatch * kWidth) * (8 * layers);
        for (const std::int64_t elements : hidden_matrices(layers))
          expected += half_ring(t, 2 * elements);
        CAPTURE(t, layers, play);
        CHECK(played(mesh, step, platform).execution.makespan == expected);
        CHECK(work_of(step, ".orthogonalize") == work_of(whole, ".orthogonalize"));
        // Biases of what rows divide, and norms, are whole.
        std::int64_t hidden = 0;
        for (const std::int64_t elements : hidden_matrices(layers)) hidden += elements;
        const std::int64_t others = 4 * h * h / t + 7 * h * layers / t + 6 * h * layers;
        CHECK(bytes_held(step, TensorClass::optimizer_state) == 4 * hidden / t + 8 * others);
      }
}

// Of stage 1 all gradients are one bucket, reduced behind the backward; directions are gathered one after
// the other, each before its orthogonalization; all parameters are one bucket behind the updates.
TEST_CASE("Muon on a data axis: closed form") {
  constexpr std::int64_t h = kWidth;
  for (const std::int64_t n : {2, 4})
    for (const int layers : {1, 2})
      for (const char* play : {"once", "all"}) {
        const Mesh mesh{.data = n, .stage = 1, .play = play};
        const Workload step = workload_of(megatron(layers, kPositions, kWidth, 8), muon_on(mesh));
        const Platform platform = ring_of(n);
        Time expected = sum_of_durations(step_of_rank(mesh, step), platform);
        const std::int64_t parameters = layers * (12 * h * h + 13 * h);
        expected += half_ring(n, 2 * parameters) * 2;
        for (const std::int64_t elements : hidden_matrices(layers))
          expected += half_ring(n, 2 * elements);
        CAPTURE(n, layers, play);
        const Played it = played(mesh, step, platform);
        CHECK(it.execution.makespan == expected);
        // A rank sends all parts but one of what it gathers, and computes nothing meanwhile.
        const Workload of_rank = step_of_rank(mesh, step);
        const Topology topology(platform);
        Metrics metrics = it.metrics;
        const Program program = lower(it.plan, of_rank, platform, topology);
        StepSums sums = step_sums(program, it.execution);
        sums.collectives = collective_sums(program, it.execution);
        measure_ranks(program, sums, n, metrics);
        const auto found =
            std::ranges::find(metrics.collectives, "directions", &CollectiveMetrics::name);
        REQUIRE(found != metrics.collectives.end());
        std::int64_t sent = 0;
        for (const std::int64_t elements : hidden_matrices(layers))
          sent += 2 * elements / n * (n - 1);
        CHECK(found->bytes.count() == sent);
        CHECK(found->exposed == found->busy);
      }
}

// Every operator of the optimizer runs for every update, on the device of its layer: of 4 microbatches
// with stashed weights 4 times, of 8 with two versions on 2 devices 4 times, too. What makes a direction
// orthogonal reads no gradient, but what an update before it made.
TEST_CASE("Muon's moments apart in pipelines that update on the way") {
  WorkloadOptions options = muon_on({});
  options.momentum_is_apart = true;
  const Workload step = workload_of(megatron(4, kPositions, kWidth, 8), options);
  for (const char* policy : {"{name: pipeline/pipedream, microbatches: 4}",
                             "{name: pipeline/pipedream-2bw, microbatches: 8}"}) {
    CAPTURE(policy);
    std::vector<int> runs(step.operators.size(), 0);
    for (const Step& it : planned(policy, step, ring_of(2)).steps)
      if (it.kind == StepKind::compute) ++runs[static_cast<std::size_t>(it.op)];
    CHECK(std::all_of(runs.begin() + step.optimizer_begin, runs.end(),
                      [](int times) { return times == 4; }));
    // Ranks reduce gradients once a step, and such a plan has no one moment for that.
    for (const Mesh& mesh : {Mesh{.tensor = 2, .pipeline = 2, .policy = policy},
                             Mesh{.data = 2, .pipeline = 2, .stage = 1, .policy = policy}})
      CHECK_THROWS_WITH(
          played(mesh, workload_of(megatron(4, kPositions, kWidth, 8), muon_on(mesh)), ring_of(4)),
          Catch::Matchers::Contains("goes on with its backwards after an update, and cannot be "
                                    "spread over ranks"));
  }
}

TEST_CASE("one rank stands for all: random meshes with Muon") {
  std::mt19937 random(29);
  const auto from = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  int exact = 0, refused = 0;
  for (int turn = 0; turn < 60; ++turn) {
    Mesh mesh{.tensor = from(1, 3), .data = from(1, 2)};
    const bool is_llama = from(0, 1) == 1;
    if (is_llama) (from(0, 1) == 1 ? mesh.context : mesh.expert) = 2;
    mesh.sequence = mesh.tensor > 1 && from(0, 1) == 1;
    if (mesh.data > 1) mesh.stage = from(0, 3);
    if (mesh.ranks() == 1) mesh.tensor = 2;
    const int layers = static_cast<int>(from(1, 3));
    if (layers > 1 && from(0, 2) == 0) {
      mesh.pipeline = 2;
      mesh.policy = "{name: pipeline/1f1b, microbatches: 3}";
    }
    WorkloadOptions options = muon_on(mesh);
    options.master_weights = from(0, 1) == 1;
    const Workload step =
        workload_of(is_llama ? llama(layers, 24, 12) : megatron(layers, 24, 48, 12, true), options);
    const char* const topologies[] = {"switch", "mesh", "ring"};
    const Platform platform = platform_of(
        trainers(mesh.ranks(), mesh.ranks() == 2 ? "chain" : topologies[from(0, 2)],
                 fmt::format("bandwidth: {} MB/s, latency: {} us", from(50, 2000), from(0, 20))));
    CAPTURE(turn, mesh.tensor, mesh.context, mesh.expert, mesh.data, mesh.pipeline, mesh.sequence,
            mesh.stage, is_llama, layers);
    ++(one_stands_for_all(mesh, step, platform) ? exact : refused);
  }
  CAPTURE(refused);
  CHECK(exact > 30);
}
