// Networks as one of several ranks runs them that divide each layer among them.
#include "base/dense_id.hpp"
#include "workload/chain/chain_view.hpp"
#include "workload/workload_text.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>

using namespace plimsoll;
using Catch::Matchers::Contains;

namespace {

constexpr std::int64_t kSequence = 48, kHidden = 96, kHeads = 24, kBatch = 3;

/// Megatron's layer (V. Korthikanti et al., arXiv 2205.05198, figure 2), `layers` times.
std::string megatron(int layers) {
  return fmt::format(
      "workload: net\nwith: {{sequence: {}, hidden: {}, heads: {}}}\ninput: [sequence, hidden]\n"
      "loss: sum\nblocks:\n  block:\n    layers:\n      - layer_norm\n      - attention: {{heads: "
      "heads}}\n      - dropout\n      - add: {{skip: input, name: middle}}\n      - layer_norm\n"
      "      - linear: 4 * in\n      - gelu\n      - linear: in / 4\n      - dropout\n      - add: "
      "{{skip: middle}}\nlayers:\n  - block: {{repeat: {}}}\n",
      kSequence, kHidden, kHeads, layers);
}

std::optional<TensorAxis> tensor_axis(std::int64_t ranks, bool sequence = false) {
  if (ranks == 1) return std::nullopt;
  TensorAxis axis{{"scenario.yaml", 4, 20}, ranks, std::nullopt};
  if (sequence) axis.sequence = Location{"scenario.yaml", 4, 35};
  return axis;
}

WorkloadOptions on_ranks(std::int64_t ranks, bool sequence = false) {
  WorkloadOptions options;
  options.tensor = tensor_axis(ranks, sequence);
  options.batch = kBatch;
  options.dtype = DType::fp16;
  return options;
}

/// What a layer adds, so that its own input counts and the network's ends do not.
std::int64_t kept_by_a_layer(std::int64_t ranks, bool sequence) {
  const auto kept = [&](int layers) {
    return build_text(megatron(layers), on_ranks(ranks, sequence)).saved_bytes.count();
  };
  return kept(3) - kept(2);
}

std::vector<std::string> collectives(const Workload& workload, Phase phase) {
  std::vector<std::string> found;
  for (const Operator& op : workload.operators) {
    if (op.collective.kind == CollectiveKind::none || op.phase != phase) continue;
    CHECK(op.collective.axis == MeshAxis::tensor);
    found.push_back(op.collective.kind == CollectiveKind::all_reduce   ? "all_reduce"
                    : op.collective.kind == CollectiveKind::all_gather ? "all_gather"
                                                                       : "reduce_scatter");
  }
  std::ranges::sort(found);
  return found;
}

std::int64_t elements_of_parameters(const Workload& workload, std::int64_t element) {
  return workload.parameter_bytes.count() / element;
}

/// FLOPs of products and attention.
double work_of_products(const Workload& workload) {
  double sum = 0;
  for (const Operator& op : workload.operators)
    if (op.operator_class == OperatorClass::matmul || op.operator_class == OperatorClass::attention)
      sum += static_cast<double>(op.flops.count());
  return sum;
}

Workload shipped_network(const char* name, std::int64_t ranks, bool sequence = false) {
  WorkloadOptions options = on_ranks(ranks, sequence);
  options.batch = 1;
  return build(read_workload(read_document(shipped(name))), options);
}

}  // namespace

// V. Korthikanti et al., table 2, in 16 bits: s b h (34 + 5 a s / h) of one rank; with tensor
// parallelism s b h (10 + 24 / t + 5 a s / (h t)); with sequence parallelism all of it by t. The table
// leaves out what is of a lower order: the statistics of two norms, 16 s b, whole like their inputs,
// and the number by which scores are scaled, 8.
TEST_CASE("what a rank keeps of a transformer's layer equals the published table") {
  constexpr std::int64_t s = kSequence, b = kBatch, h = kHidden, a = kHeads;
  for (const std::int64_t t : {1, 2, 3, 4, 6, 8, 12, 24}) {
    CAPTURE(t);
    CHECK(kept_by_a_layer(t, false) ==
          s * b * h * 10 + s * b * h * 24 / t + 5 * a * s * s * b / t + 16 * s * b + 8);
    CHECK(kept_by_a_layer(t, t > 1) == (s * b * h * 34 + 5 * a * s * s * b + 16 * s * b) / t + 8);
  }
}

// 12 h^2 by t, with biases 7 h by t of what is divided by columns; whole are the biases of what is
// divided by rows, 2 h, and the two norms, 4 h.
TEST_CASE("what a rank holds of a layer's parameters") {
  constexpr std::int64_t h = kHidden;
  for (const std::int64_t t : {1, 2, 4, 8})
    for (const bool sequence : {false, true}) {
      const Workload part = build_text(megatron(1), on_ranks(t, sequence && t > 1));
      CHECK(elements_of_parameters(part, 2) == (12 * h * h + 7 * h) / t + 6 * h);
      CHECK(part.parameters == 12 * h * h + 13 * h);
      CHECK(work_of_products(part) * static_cast<double>(t) ==
            work_of_products(build_text(megatron(1), on_ranks(1))));
    }
}

// Two all-reduces in the forward and two in the backward of a layer; with sequence parallelism each
// is a reduce-scatter and an all-gather, and in the backward the two inputs are gathered again.
TEST_CASE("what ranks exchange in a layer") {
  using Names = std::vector<std::string>;
  const Workload whole = build_text(megatron(1), on_ranks(4));
  CHECK(collectives(whole, Phase::forward) == Names(2, "all_reduce"));
  CHECK(collectives(whole, Phase::backward) == Names(2, "all_reduce"));
  const Workload sharded = build_text(megatron(1), on_ranks(4, true));
  CHECK(collectives(sharded, Phase::forward) ==
        Names{"all_gather", "all_gather", "reduce_scatter", "reduce_scatter"});
  CHECK(collectives(sharded, Phase::backward) == Names{"all_gather", "all_gather", "all_gather",
                                                       "all_gather", "reduce_scatter",
                                                       "reduce_scatter"});
  for (const Operator& op : whole.operators)
    if (op.collective.kind != CollectiveKind::none) {
      REQUIRE(op.updates.end - op.updates.begin == 1);
      CHECK(whole[whole.list(op.updates)[0]].bytes.count() == 2 * kSequence * kBatch * kHidden);
    }
  // Norms see a part of the positions: gradients of their weights are parts of sums.
  const auto partial = [](const Workload& it) {
    return std::ranges::count_if(it.tensors, &Tensor::is_partial);
  };
  CHECK(partial(whole) == 0);
  CHECK(partial(sharded) == 4);
}

namespace {

/// Adapters beside all linear layers.
WorkloadOptions adapted(std::int64_t ranks, bool sequence, std::int64_t rank) {
  WorkloadOptions options = on_ranks(ranks, sequence);
  const Location where{"scenario.yaml", 2, 9};
  options.lora = LowRank{{rank, where}, {{"*", where}}};
  options.optimizer = Optimizer::adam;
  return options;
}

}  // namespace

// Of a layer divided by columns each rank has all of A, r h elements, and B of its features, r 3 h / t
// and r 4 h / t; of one divided by rows A of its features, r h / t and r 4 h / t, and all of B, r h.
// Nothing else has a gradient or moments. Frozen layers keep nothing; adapters keep their inputs, as
// the layers did that were trained, and A's outputs: those that are whole, or the rank's positions.
// In PyTorch 1.13 each keeps its number, too.
TEST_CASE("adapters beside divided layers") {
  constexpr std::int64_t s = kSequence, b = kBatch, h = kHidden, a = kHeads, r = 5;
  for (const std::int64_t t : {1, 2, 4, 8})
    for (const bool sequence : {false, true}) {
      if (sequence && t == 1) continue;
      CAPTURE(t, sequence);
      const auto options = adapted(t, sequence, r);
      const Workload part = build_text(megatron(1), options);
      const std::int64_t adapters = 4 * r * h + 12 * r * h / t;
      CHECK(elements_of_parameters(part, 2) == (12 * h * h + 7 * h) / t + 6 * h + adapters);
      CHECK(part.parameters == 12 * h * h + 13 * h + 16 * r * h);
      CHECK(part.frozen_macs == build_text(megatron(1), adapted(1, false, r)).frozen_macs / t);
      std::int64_t gradients = 0, state = 0, partial = 0;
      for (const Tensor& tensor : part.tensors) {
        if (tensor.lifetime == Lifetime::accumulated) gradients += tensor.bytes.count();
        if (tensor.tensor_class == TensorClass::optimizer_state) state += tensor.bytes.count();
        if (tensor.is_partial) partial += tensor.bytes.count();
      }
      CHECK(gradients == 2 * adapters);
      CHECK(state == 8 * adapters);
      CHECK(partial == (sequence ? 2 * 4 * r * h : 0));
      const auto kept = [&](int layers) {
        return build_text(megatron(layers), options).saved_bytes.count();
      };
      const std::int64_t positions = sequence ? t : 1;
      CHECK(kept(3) - kept(2) == s * b * (10 * h + 16 + 8 * r) / positions +
                                     (s * b * h * 24 + 5 * a * s * s * b) / t + 8 + 4 * 8);
    }
}

// Behind a layer divided by columns the last one is divided by rows, though the loss could see parts of its
// features, too: so B is whole beside it.
TEST_CASE("adapters of a last layer that is divided by rows") {
  constexpr std::int64_t v = 32, h = 8, f = 16, r = 5, t = 2;
  WorkloadOptions options = adapted(t, false, r);
  options.lora->of = {{"linear_2", {"scenario.yaml", 2, 9}}};
  const Workload part = build_text(
      "workload: net\ninput: {shape: [4], type: indices}\nlayers:\n"
      "  - embedding: {entries: 32, features: 8}\n  - linear: {features: 16, bias: false}\n"
      "  - linear: {features: 32, bias: false}\n",
      options);
  CHECK(part.parameters == v * h + h * f + f * v + r * (f + v));
  CHECK(elements_of_parameters(part, 2) == (v * h + h * f + f * v + r * f) / t + r * v);
  // Sums of the entries, of the last layer, and of A.
  CHECK(collectives(part, Phase::forward) == std::vector<std::string>(3, "all_reduce"));
}

// Both sums that a frozen layer divided by rows and its A make, in the forward; in the backward those
// of the inputs of a frozen layer divided by columns and of its B.
TEST_CASE("what ranks exchange for adapters") {
  using Names = std::vector<std::string>;
  const auto added = [](bool sequence, Phase phase) {
    Names more = collectives(build_text(megatron(3), adapted(4, sequence, 5)), phase);
    for (const std::string& name :
         collectives(build_text(megatron(2), adapted(4, sequence, 5)), phase))
      more.erase(std::ranges::find(more, name));
    return more;
  };
  CHECK(added(false, Phase::forward) == Names(4, "all_reduce"));
  CHECK(added(false, Phase::backward) == Names(4, "all_reduce"));
  const auto halves = [](std::size_t gathers) {
    Names names(gathers, "all_gather");
    names.insert(names.end(), 4, "reduce_scatter");
    return names;
  };
  CHECK(added(true, Phase::forward) == halves(4));
  // Frozen layers need no input in the backward; B of a layer divided by columns gathers its own.
  CHECK(added(true, Phase::backward) == halves(6));
}

// All work of products is divided, but that of a router, which each rank does where positions are
// whole; with the embeddings, norms aside, all parameters are.
TEST_CASE("shipped transformers on ranks that divide their layers") {
  for (const char* name : {"megatron-22b", "llama3-8b", "qwen3-8b", "mistral-7b", "mixtral-8x7b",
                           "deepseek-v3", "llama3-70b"}) {
    const Workload whole = shipped_network(name, 1);
    for (const bool sequence : {false, true}) {
      CAPTURE(name, sequence);
      const Workload part = shipped_network(name, 8, sequence);
      CHECK(part.parameters == whole.parameters);
      CHECK(part.macs == whole.macs / 8);
      CHECK(elements_of_parameters(part, 2) < whole.parameters / 7);
      CHECK(elements_of_parameters(part, 2) >= whole.parameters / 8);
      CHECK(part.saved_bytes < whole.saved_bytes);
      if (sequence) CHECK(work_of_products(part) * 8 == work_of_products(whole));
    }
  }
}

// Llama 3 8B: norms are (2 x 32 + 1) 4096; all else is divided.
TEST_CASE("a rank's part of Llama 3 8B") {
  constexpr std::int64_t kNorms = 65 * 4096, kAll = 8'030'261'248;
  for (const std::int64_t t : {2, 4, 8})
    CHECK(elements_of_parameters(shipped_network("llama3-8b", t), 2) ==
          (kAll - kNorms) / t + kNorms);
}

TEST_CASE("what does not divide names what would") {
  const auto error = [](const std::string& text, std::int64_t ranks, bool sequence = false) {
    return error_of(text, on_ranks(ranks, sequence));
  };
  CHECK_THAT(error(megatron(2), 5),
             Contains("scenario.yaml:4:20: error: `tensor: 5` does not divide the ") &&
                 Contains("the 24 heads of `attention_scores` (attention_scores_1)") &&
                 Contains("; expected one of 1, 2, 3, 4, 6, 8, 12, 24, which divide all that ranks "
                          "divide"));
  CHECK_THAT(error(megatron(1), 32, true),
             Contains("the 48 positions that `sequence: true` shards"));
  const std::string grouped =
      "workload: net\nwith: {heads: 32, kv_heads: 8}\ninput: [16, 256]\nloss: sum\nlayers:\n  - "
      "rms_norm\n  - grouped_attention: {heads: heads, kv_heads: kv_heads, size: 8, out: 256, "
      "fused: 1}\n  - gated_mlp: {features: 360, out: 256}\n";
  CHECK_THAT(error(grouped, 16), Contains("the 8 kv_heads of `dot_product_attention`") &&
                                     Contains("the 360 features of `linear` (up)"));
  // Of 256 and 64 features, 32 and 8 heads and 360 features of the MLP, 8 is the greatest common divisor.
  CHECK_THAT(error(grouped, 6),
             Contains("the 32 heads of `dot_product_attention` (dot_product_attention_1)") &&
                 Contains("; expected one of 1, 2, 4, 8, which divide all that ranks divide"));
  const std::string words =
      "workload: net\ninput: {shape: [16], type: indices}\nlayers:\n  - embedding: {entries: "
      "50257, "
      "features: 64}\n  - linear: 128\n  - gelu\n  - linear: 64\n";
  CHECK_THAT(error(words, 3),
             Contains("; expected one of 1, 2, 4, 8, 16, 32, 64, 128, with tables filled up to a "
                      "multiple of it"));
  CHECK_THAT(error(words, 4), Contains("does not divide the 50257 entries of `embedding`") &&
                                  Contains("a table filled up to 50260 entries"));
  CHECK_THAT(error("workload: net\ninput: [3, 32, 32]\nlayers:\n  - conv2d: {channels: 8, kernel: "
                   "3}\n  - global_avg_pool\n  - linear: 10\n",
                   4),
             Contains("does not divide the 10 features"));
  CHECK_THAT(error("workload: net\ninput: [3, 32, 32]\nloss: sum\nlayers:\n  - conv2d: {channels: "
                   "8, kernel: 3}\n",
                   4),
             Contains("the network has none"));
}

TEST_CASE("a vocabulary that ranks divide") {
  const std::string text =
      "workload: net\ninput: {shape: [16], type: indices}\nlayers:\n  - embedding: {entries: 64, "
      "features: 32, name: tokens}\n  - linear: 128\n  - gelu\n  - linear: 32\n  - linear: "
      "{features: 64, bias: false, tied: tokens}\n";
  for (const Loss loss : {Loss::cross_entropy, Loss::fused_cross_entropy}) {
    WorkloadOptions options = on_ranks(4);
    options.loss = loss;
    const Workload part = build_text(text, options);
    // The embedding, the second linear layer, three numbers of each row.
    CHECK(collectives(part, Phase::forward) == std::vector<std::string>(5, "all_reduce"));
    // What the first and the last linear layer read.
    CHECK(collectives(part, Phase::backward) == std::vector<std::string>(2, "all_reduce"));
    const Operator& last = find_operator(part, "linear_3.forward");
    CHECK(part[part.list(last.kept)[0]].bytes.count() == 2 * kBatch * 16 * 64 / 4);
    options.tensor.reset();
    const Workload whole = build_text(text, options);
    // Of each row a rank keeps a fourth of the logits, and its labels.
    const std::int64_t logits = 2 * kBatch * 16 * 64;
    const std::int64_t between = 2 * 2 * kBatch * 16 * 128;  // before and after the GELU
    CHECK(whole.saved_bytes.count() - part.saved_bytes.count() == (logits + between) * 3 / 4);
  }
}

// `middle` is read by a norm, and later by the MLP, which is divided by columns. In the backward the
// ranks add up the gradient that the MLP makes; then that of the norm's is added to it. So it is, too,
// where the backwards of a stage of the chain run together, and `middle` is between two stages.
TEST_CASE("a gradient is added up before others are added to it") {
  const Workload part = build_text(
      "workload: net\ninput: [8, 16]\nloss: sum\nlayers:\n  - linear: 16\n  - add: {skip: input, "
      "name: middle}\n  - layer_norm: {name: normed}\n  - linear: {from: middle, features: 32}\n"
      "  - gelu\n  - linear: 16\n  - add: {skip: normed}\n",
      on_ranks(2));
  const ChainView view = chain_view(part);
  std::vector<std::size_t> place(part.operators.size());
  std::size_t next = 0;
  for (std::size_t stage = view.stages.size(); stage-- > 0;)
    for (const OperatorId id : view.backward(stage)) place[index(id)] = next++;
  int readers = 0;
  for (std::uint32_t op = part.forwards; op < part.optimizer_begin; ++op)
    for (const TensorId summed : part.list(part.operators[op].updates))
      for (std::uint32_t later = op + 1; later < part.optimizer_begin; ++later) {
        if (std::ranges::count(part.list(part.operators[later].reads), summed) == 0) continue;
        CHECK(place[op] < place[later]);
        ++readers;
      }
  CHECK(readers > 0);
}

// What the encoder leaves of a T5 of four blocks is read by key and value of each block of the decoder: each block
// gathers it once for both, in the forward and again in the backward, and scatters the sum of both gradients.
TEST_CASE("each block gathers what blocks share where positions are divided") {
  WorkloadOptions options = on_ranks(2, true);
  options.with = {{{"blocks", {}}, 4}};
  const Workload part = build(read_workload(read_document(shipped("t5-large"))), options);
  const auto exchanges = [&](CollectiveKind kind, const std::string& tensor, bool made) {
    return std::ranges::count_if(part.operators, [&](const Operator& op) {
      const auto its = part.list(made ? op.kept : op.reads);
      return op.collective.kind == kind && op.collective.axis == MeshAxis::tensor &&
             std::ranges::any_of(its, [&](TensorId id) { return part[id].name == tensor; });
    });
  };
  CHECK(exchanges(CollectiveKind::all_gather, "encoded", false) == 4 + 4);
  for (int b = 1; b <= 4; ++b)
    CHECK(exchanges(CollectiveKind::reduce_scatter,
                    fmt::format("decoder_block_{}/attend_2/linear_2.gradient", b), true) == 1);
}

// Both halves of a backward do the work of the whole, and the ranks exchange no less.
TEST_CASE("collectives beside gradients of weights") {
  for (const bool sequence : {false, true}) {
    WorkloadOptions options = on_ranks(4, sequence);
    const Workload whole = build_text(megatron(2), options);
    options.tensor->overlaps = true;
    const Workload halved = build_text(megatron(2), options);
    CHECK(work_of_products(halved) == work_of_products(whole));
    CHECK(collectives(halved, Phase::backward) == collectives(whole, Phase::backward));
    CHECK(halved.saved_bytes == whole.saved_bytes);
    CHECK(halved.operators.size() == whole.operators.size() + 4);
    // The gradient of the weight is made behind the exchange of that of the input.
    const auto place = [&](std::string_view name) {
      return &find_operator(halved, std::string(name)) - halved.operators.data();
    };
    const char* const exchange =
        sequence ? "block_1/linear_1.backward_all_gather" : "block_1/linear_1.backward_all_reduce";
    if (sequence) CHECK(place(exchange) < place("block_1/linear_1.backward_input"));
    CHECK(place("block_1/linear_1.backward_input") < place("block_1/linear_1.backward_weight"));
    if (!sequence) {
      CHECK(place("block_1/linear_1.backward_input") < place(exchange));
      CHECK(place(exchange) < place("block_1/linear_1.backward_weight"));
    }
  }
}

// Each rank casts its positions of a norm's output, and all gather what is in 16 bits: 2 s b h bytes,
// and so does the backward scatter. All that a layer keeps is divided, but for the number by which scores
// are scaled, 8; what is divided by rows is scattered in 16 bits, too.
TEST_CASE("divided positions under autocast") {
  constexpr std::int64_t whole = 2 * kSequence * kBatch * kHidden;
  const auto options = [](std::int64_t ranks) {
    WorkloadOptions it = on_ranks(ranks, ranks > 1);
    it.dtype = DType::fp32;
    it.autocast = DType::bf16;
    return it;
  };
  const auto kept = [&](std::int64_t ranks) {
    const auto of = [&](int layers) {
      return build_text(megatron(layers), options(ranks)).saved_bytes.count();
    };
    return of(3) - of(2) - 8;
  };
  for (const std::int64_t t : {2, 4, 8}) {
    CAPTURE(t);
    CHECK(kept(t) * t == kept(1));
    const Workload part = build_text(megatron(2), options(t));
    int gathered = 0, scattered = 0;
    for (const Operator& op : part.operators) {
      if (op.collective.kind == CollectiveKind::all_gather) {
        CHECK(part[part.list(op.kept)[0]].bytes.count() == whole);
        ++gathered;
      }
      if (op.collective.kind == CollectiveKind::reduce_scatter) {
        CHECK(part[part.list(op.reads)[0]].bytes.count() == whole);
        ++scattered;
      }
    }
    CHECK(gathered == 2 * (2 + 2 + 2));
    CHECK(scattered == 2 * (2 + 2));
  }
}
