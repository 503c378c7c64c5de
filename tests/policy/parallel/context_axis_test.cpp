// Ranks that divide the positions of every sample among them, played: what they keep and compute,
// makespans in closed form, and one rank for all.
#include "policy/parallel/mesh_runs.hpp"
#include "workload/cost/cost_model.hpp"
#include "workload/workload_text.hpp"

#include <random>

using namespace plimsoll;
using namespace plimsoll::test;
using Catch::Matchers::Contains;

namespace {

/// Attention between dense layers of h features, of 4 heads of the query and 2 of key and value.
std::string attention(std::int64_t sequence, std::int64_t hidden, bool causal) {
  return fmt::format(
      "workload: net\nframework: pytorch-2\ninput: [{0}, {1}]\nloss: sum\nlayers:\n  - linear: "
      "{{features: {1}, bias: false}}\n  - grouped_attention: {{heads: 4, kv_heads: 2, size: 8, "
      "out: {1}, causal: {2}}}\n",
      sequence, hidden, causal);
}

Workload on_context_ranks(const char* name, std::int64_t ranks) {
  WorkloadOptions options;
  options.dtype = DType::bf16;
  options.batch = 1;
  if (ranks > 1) options.context = {ranks, {"scenario.yaml", 1, 1}};
  return build(read_workload(read_document(shipped(name))), options);
}

double flops_of(const Workload& workload, OperatorClass of) {
  double sum = 0;
  for (const Operator& op : workload.operators)
    if (op.operator_class == of) sum += static_cast<double>(op.flops.count());
  return sum;
}

/// One rank's step where links take `pass` for each block: its stream is in order, and a block's
/// attention waits for the block. Blocks and gradients go on links of their own direction, one after
/// the other.
Time in_closed_form(const Workload& step, const std::vector<Time>& durations, Time pass) {
  Time now, on_free, back_free;
  std::vector<Time> there(step.tensors.size());
  for (std::size_t i = 0; i < step.operators.size(); ++i) {
    const Operator& op = step.operators[i];
    for (const TensorId id : step.list(op.reads)) now = std::max(now, there[index(id)]);
    now += durations[i];
    if (op.collective.kind == CollectiveKind::none) continue;
    Time& free = op.collective.kind == CollectiveKind::pass_on ? on_free : back_free;
    free = std::max(free, now) + pass;
    for (const TensorId id : step.list(op.kept)) there[index(id)] = free;
  }
  return std::max({now, on_free, back_free});
}

}  // namespace

// Of s positions a rank has s/n, and keeps 1/n of what one rank keeps of all; a causal rank looks at as
// many pairs as every other, s (s + 1) / 2 n of each head.
TEST_CASE("a rank of a context axis keeps and computes its part") {
  for (const char* name : {"llama3-8b", "qwen3-8b", "mixtral-8x7b", "deepseek-v3"}) {
    const Workload whole = on_context_ranks(name, 1);
    for (const std::int64_t c : {2, 4, 16}) {
      const Workload part = on_context_ranks(name, c);
      CAPTURE(name, c);
      CHECK(part.parameters == whole.parameters);
      CHECK(part.parameter_bytes == whole.parameter_bytes);
      CHECK(part.tokens == whole.tokens);
      CHECK(part.macs == whole.macs / c);
      // The weight of the loss, a number of 2 bytes, is there on each. One rank keeps DeepSeek's values within
      // what they are a slice of.
      const std::int64_t part_of_kept = (whole.saved_bytes.count() - 2) / c + 2;
      if (std::string(name) == "deepseek-v3")
        CHECK(part.saved_bytes.count() < part_of_kept);
      else
        CHECK(part.saved_bytes.count() == part_of_kept);
      for (const OperatorClass of : {OperatorClass::attention, OperatorClass::matmul})
        CHECK(flops_of(part, of) * static_cast<double>(c) == flops_of(whole, of));
    }
  }
}

// Each of n - 1 passes moves the key and the value of a rank, 2 x 16 numbers of 2 bytes for each of its
// positions, in one round. What all parameters' gradients take afterwards is an all-reduce.
TEST_CASE("blocks pass round while attention is computed: closed form") {
  constexpr std::int64_t s = 48, h = 32, b = 2;
  for (const std::int64_t c : {2, 3, 4})
    for (const bool causal : {false, true})
      for (const std::int64_t megabytes : {10, 50, 900})
        for (const char* play : {"once", "all"}) {
          const Mesh mesh{.context = c, .play = play};
          const Platform platform =
              platform_of(trainers(c, c == 2 ? "chain" : "ring",
                                   fmt::format("bandwidth: {} MB/s, latency: 1 us", megabytes)));
          const Workload step = workload_of(attention(s, h, causal), trained(mesh, b));
          const auto times = durations(step, platform, ProcessorId{0});
          const Link& link = platform.links.front();
          const auto moving = [&](std::int64_t bytes) {
            return link.latency + transfer_time(Bytes{bytes}, link.bandwidth[0]);
          };
          std::int64_t gradients = 0;
          for (const Tensor& tensor : step.tensors)
            if (tensor.lifetime == Lifetime::accumulated) gradients += tensor.bytes.count();
          const Time backwards =
              in_closed_form(step, {times.begin(), times.end()}, moving(2 * 16 * 2 * b * s / c));
          CAPTURE(c, causal, megabytes, play);
          CHECK(played(mesh, step, platform).execution.makespan.count() ==
                (backwards + moving((gradients + c - 1) / c) * (2 * (c - 1))).count());
        }
}

TEST_CASE("one rank stands for all: random meshes that divide positions") {
  std::mt19937 random(37);
  const auto from = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  int exact = 0, refused = 0;
  for (int turn = 0; turn < 60; ++turn) {
    Mesh mesh{.tensor = from(1, 2),
              .context = from(2, 3),
              .expert = from(1, 2),
              .data = from(1, 2),
              .sequence = from(0, 1) == 1,
              .stage = from(0, 3)};
    const int layers = static_cast<int>(from(1, 2));
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
                 fmt::format("bandwidth: {} MB/s, latency: {} us", from(20, 2000), from(0, 20)));
    const Platform platform = platform_of(cluster);
    CAPTURE(turn, mesh.tensor, mesh.context, mesh.expert, mesh.data, mesh.pipeline, mesh.sequence,
            mesh.stage, mesh.policy, layers, cluster);
    ++(one_stands_for_all(mesh, step, platform) ? exact : refused);
  }
  CAPTURE(refused);
  CHECK(exact > 40);
}

// Blocks go round a context axis whatever reduces gradients: from even ranks both send the same way, from odd
// ones they do not. On links of pairs, some then carry both and others one.
TEST_CASE("where blocks go round and gradients along a tree, one rank stands for all at a switch") {
  const Mesh mesh{.context = 4, .data = 2, .collectives = "tree"};
  const Workload step = workload_of(llama(2, 24, 12), trained(mesh));
  const auto at = [&](const std::string& topology) {
    return platform_of(trainers(8, topology, "bandwidth: 100 MB/s, latency: 1 us"));
  };
  CHECK(one_stands_for_all(mesh, step, at("switch")));
  CHECK_FALSE(one_stands_for_all(mesh, step, at("mesh")));
}

TEST_CASE("positions that ranks cannot divide") {
  const auto error = [](const std::string& text, std::int64_t ranks) {
    WorkloadOptions options;
    options.context = {ranks, {"scenario.yaml", 4, 20}};
    return error_of(text, options);
  };
  CHECK_THAT(
      error(attention(48, 32, true), 5),
      Contains("scenario.yaml:4:20: error: `context: 5` does not divide 48 positions into two "
               "chunks a rank, one from either end; expected one of 1, 2, 3, 4, 6, 8, 12, 24"));
  CHECK_THAT(error(attention(48, 32, true), 16), Contains("does not divide 48 positions"));
  CHECK_THAT(error(attention(48, 32, false), 5), Contains("does not divide 48 positions"));
  CHECK_THAT(error(megatron(1, 48, 32, 4), 2),
             Contains("`attention_scores` (attention_scores_1) works on those of all ranks") &&
                 Contains("`grouped_attention` has it with `framework: pytorch-2`"));
  CHECK_THAT(error("workload: net\ninput: [3, 32, 32]\nlayers:\n  - conv2d: {channels: 8, kernel: "
                   "3}\n  - global_avg_pool\n  - linear: 10\n",
                   2),
             Contains("`conv2d` (conv2d_1) works on those of all ranks"));
}
