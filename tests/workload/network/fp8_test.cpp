// Dense layers in fp8. The bytes are worked out by hand from what Transformer Engine 2 allocates: values
// and scales in tensor/float8_tensor.py, tensor/float8_blockwise_tensor.py and tensor/mxfp8_tensor.py,
// what layers save in module/linear.py, state in module/base.py and quantization.py.
#include "support/played.hpp"
#include "workload/cost/cost_model.hpp"
#include "workload/network/kept_tensors.hpp"
#include "workload/sharding/sharded_step.hpp"
#include "workload/workload_text.hpp"

#include <array>

#include <catch2/catch.hpp>

using namespace plimsoll;
using Catch::Matchers::Contains;

namespace {

constexpr std::array kRecipes = {Fp8Recipe::delayed, Fp8Recipe::current, Fp8Recipe::block,
                                 Fp8Recipe::mxfp8};

WorkloadOptions in_fp8(const Fp8& fp8, Optimizer optimizer = Optimizer::none) {
  return {.batch = 2,
          .dtype = DType::bf16,
          .optimizer = optimizer,
          .fp8 = Located<Fp8>{fp8, {"s.yaml", 3, 9}}};
}

WorkloadOptions in_bf16() {
  return {.batch = 2, .dtype = DType::bf16};
}

/// A language model of `blocks` blocks with grouped queries and a fused gated MLP.
std::string model_in_fp8(
    int blocks, const std::string& mlp = "gated_mlp: {features: 512, out: 128, fused: true}") {
  return "workload: net\nframework: pytorch-2\ninput: {shape: [64], type: indices}\nblocks:\n"
         "  block:\n    layers:\n      - rms_norm\n"
         "      - grouped_attention: {heads: 4, kv_heads: 2, size: 32, out: 128}\n"
         "      - add: {skip: input, name: middle}\n      - rms_norm\n      - " +
         mlp +
         "\n      - add: {skip: middle}\n"
         "layers:\n  - embedding: {entries: 96, features: 128}\n  - block: {repeat: " +
         std::to_string(blocks) + "}\n  - rms_norm\n  - linear: {features: 96, bias: false}\n";
}

constexpr std::int64_t kRows8 = 2 * 64, kWidth8 = 128, kKeys8 = 2 * 32, kInner8 = 512;
/// Inputs of products that a block keeps: of query, key and value; projection; gate and up; down.
constexpr std::array kInputs8 = {kWidth8, kWidth8, kWidth8, kInner8};
constexpr std::int64_t kWeights8 =
    2 * kWidth8 * kWidth8 + 2 * kWidth8 * kKeys8 + 3 * kWidth8 * kInner8;

std::int64_t kept_by_block(const WorkloadOptions& options) {
  return (build_text(model_in_fp8(3), options).saved_bytes -
          build_text(model_in_fp8(2), options).saved_bytes)
      .count();
}

std::int64_t padded_to(std::int64_t size, std::int64_t to) {
  return (size + to - 1) / to * to;
}

/// Of an input of so many features by columns.
std::int64_t fp8_scales(Fp8Recipe recipe, std::int64_t features) {
  if (recipe == Fp8Recipe::block)
    return 4 * (padded_to(kRows8, 128) / 128) * padded_to(features, 4);
  if (recipe == Fp8Recipe::mxfp8) return padded_to(kRows8 / 32, 4) * padded_to(features, 128);
  return 4;
}

}  // namespace

TEST_CASE("a block in fp8 keeps inputs of products by columns, and all else as in 16 bits") {
  // Both norms' inputs and one number a position; query, keys and values; attention's output and one
  // number a head; gate and up: what is no input of a product.
  const std::int64_t plain = kRows8 * (2 * (2 * kWidth8 + 4) + 2 * (kWidth8 + 2 * kKeys8) +
                                       2 * kWidth8 + 4 * 4 + 2 * 2 * kInner8);
  // Both norms' outputs, and that of the gate; attention's is there already.
  CHECK(kept_by_block(in_bf16()) == plain + kRows8 * 2 * (2 * kWidth8 + kInner8));
  for (const Fp8Recipe recipe : kRecipes) {
    std::int64_t inputs = 0;
    for (const std::int64_t features : kInputs8)
      inputs += kRows8 * features + fp8_scales(recipe, features);
    CHECK(kept_by_block(in_fp8({.recipe = recipe})) == plain + inputs);
  }
}

TEST_CASE("copies of weights made anew are kept in both layouts") {
  const std::array<std::array<std::int64_t, 2>, 7> weights = {{{kWidth8, kWidth8},
                                                               {kKeys8, kWidth8},
                                                               {kKeys8, kWidth8},
                                                               {kWidth8, kWidth8},
                                                               {kInner8, kWidth8},
                                                               {kInner8, kWidth8},
                                                               {kWidth8, kInner8}}};
  const auto blocks = [](std::int64_t size, std::int64_t of) { return padded_to(size, of) / of; };
  for (const Fp8Recipe recipe : kRecipes) {
    std::int64_t bytes = 0;
    for (const auto& [rows, columns] : weights) {
      bytes += 2 * rows * columns;
      if (recipe == Fp8Recipe::block)
        bytes += 4 * (blocks(rows, 128) * padded_to(blocks(columns, 128), 4) +
                      blocks(columns, 128) * padded_to(blocks(rows, 128), 4));
      else if (recipe == Fp8Recipe::mxfp8)
        bytes += padded_to(rows, 128) * padded_to(columns / 32, 4) +
                 padded_to(rows / 32, 4) * padded_to(columns, 128);
      else
        bytes += 4;
    }
    CHECK(kept_by_block(in_fp8({.recipe = recipe, .caches_weights = false})) ==
          kept_by_block(in_fp8({.recipe = recipe})) + bytes);
  }
}

TEST_CASE("what is listed as kept adds up to what is kept") {
  for (const Fp8Recipe recipe : kRecipes)
    for (const bool cached : {true, false}) {
      const WorkloadOptions options = in_fp8({.recipe = recipe, .caches_weights = cached});
      const auto layers =
          std::get<LayersSpec>(read_workload(parse_document(model_in_fp8(2), "t.yaml")));
      Bytes sum;
      for (const KeptTensor& kept : kept_tensors(expand(layers, options)))
        if (!kept.is_shared && !kept.is_input) sum += kept.storage_bytes;
      CHECK(sum == build(layers, options).saved_bytes);
    }
}

TEST_CASE("scales and largest values stay, five of each product") {
  const auto state = [](const Fp8& fp8) {
    std::int64_t sum = 0;
    for (const Tensor& tensor : build_text(model_in_fp8(2), in_fp8(fp8)).tensors)
      if (tensor.name.ends_with(".fp8_state")) sum += tensor.bytes.count();
    return sum;
  };
  CHECK(state({}) == 2 * 7 * 5 * 4 * (1 + 1024));
  CHECK(state({.history = 16}) == 2 * 7 * 5 * 4 * (1 + 16));
  CHECK(state({.recipe = Fp8Recipe::current}) == 2 * 7 * 5 * 4 * 2);
  CHECK(state({.recipe = Fp8Recipe::mxfp8}) == 0);
}

TEST_CASE("products compute in fp8, but those that make logits or choose experts do not") {
  const Workload net = build_text(
      model_in_fp8(1, "mixture: {experts: 32, top_k: 2, features: 64, out: 128, fused: true}"),
      in_fp8({}));
  std::string others;
  for (const Operator& op : net.operators) {
    if (op.operator_class != OperatorClass::matmul) continue;
    if (op.dtype != DType::fp8) others += op.name + " ";
  }
  CHECK(others ==
        "block_1/mixture_1/linear_1.forward linear_1.forward linear_1.backward "
        "block_1/mixture_1/linear_1.backward ");
  CHECK(find_operator(net, "block_1/mixture_1/up.forward").dtype == DType::fp8);
  // Query, key and value read one copy, as do the first two products of experts.
  CHECK(names(net, find_operator(net, "block_1/grouped_attention_1/value.forward").reads) ==
        "block_1/grouped_attention_1/query.quantize block_1/grouped_attention_1/value.weight.fp8 "
        "block_1/grouped_attention_1/value.fp8_state block_1/grouped_attention_1/value.weight");
  CHECK(main_dtype(net) == DType::fp8);
}

TEST_CASE("a product reads rows, its backward the columns") {
  const std::string dense =
      network("[64]", "  - linear: 32\n  - relu\n  - linear: {features: 48, name: last}\n");
  WorkloadOptions options = in_fp8({.caches_weights = false}, Optimizer::sgd);
  options.batch = 8;
  const Workload net = build_text(dense, options);
  const auto moves = [&](const char* op, const std::string& reads, const std::string& kept,
                         std::int64_t traffic) {
    CAPTURE(op);
    CHECK(names(net, find_operator(net, op).reads) == reads);
    CHECK(names(net, find_operator(net, op).kept) == kept);
    CHECK(find_operator(net, op).traffic.count() == traffic);
  };
  // 8 rows of 32 values; a scale of 4 bytes with each layout.
  moves("last.forward_quantize", "linear_1", "last.quantize last.quantize.columns",
        2 * 256 + 2 * (256 + 4));
  moves("last.forward_quantize_weight", "last.weight", "last.weight.fp8", 2 * 1536 + 2 * 1536 + 4);
  moves("last.forward", "last.quantize last.weight.fp8 last.bias last.fp8_state", "last",
        260 + 1540 + 2 * 48 + 2 * 384);
  moves("last.backward_quantize", "", "last.gradient last.gradient.fp8 last.gradient.fp8.columns",
        2 * 384 + 2 * (384 + 4));
  moves("last.backward",
        "last.gradient.fp8 last.gradient.fp8.columns last.quantize.columns last.weight.fp8",
        "linear_1.gradient last.weight.gradient last.bias.gradient",
        2 * 388 + 260 + 1536 + 2 * 256 + 2 * 1536 + 2 * 48);
  // The network's input has no gradient: rows of its weight, columns of the gradient.
  CHECK(names(net, find_operator(net, "linear_1.backward").reads) ==
        "linear_1.gradient.fp8.columns linear_1.quantize.columns");
  CHECK(find_operator(net, "linear_1.forward_quantize_weight").traffic ==
        Bytes{2 * 64 * 32 + 64 * 32 + 4});
  options.fp8->value.recipe = Fp8Recipe::current;
  const Operator& twice = find_operator(build_text(dense, options), "last.forward_quantize");
  CHECK(twice.traffic == Bytes{2 * 2 * 256 + 2 * (256 + 4)});
  CHECK(twice.launches == 3);
  options.split_backward = true;
  const Workload halves = build_text(dense, options);
  CHECK(names(halves, find_operator(halves, "last.backward_input").reads) ==
        "last.gradient.fp8 last.weight.fp8");
  CHECK(names(halves, find_operator(halves, "last.backward_weight").reads) ==
        "last.gradient.fp8.columns last.quantize.columns");
}

TEST_CASE("what is frozen has no columns") {
  WorkloadOptions options = in_fp8({.caches_weights = false});
  options.trained_from = Located<std::string>{"last", {}};
  options.batch = 8;
  const Workload net = build_text(
      network("[1, 64]", "  - linear: 32\n  - relu\n  - linear: {features: 48, name: last}\n"),
      options);
  CHECK(names(net, find_operator(net, "linear_1.forward_quantize").kept) == "linear_1.quantize");
  CHECK(names(net, find_operator(net, "last.backward").reads) ==
        "last.gradient.fp8.columns last.quantize.columns");
}

TEST_CASE("cached copies are made once a step, of whole parameters on every rank") {
  const Workload net = build_text(model_in_fp8(2), in_fp8({}, Optimizer::adamw));
  const char* name = "block_1/gated_mlp_1/down.quantize";
  const Operator& made = find_operator(net, name);
  const std::int64_t weight = kWidth8 * kInner8;
  CHECK(made.phase == Phase::optimizer);
  CHECK(names(net, made.updates) == "block_1/gated_mlp_1/down.weight.fp8");
  CHECK(made.traffic == Bytes{2 * weight + 2 * weight + 4});
  std::int64_t copies = 0;
  for (const Tensor& tensor : net.tensors)
    if (tensor.name.ends_with(".weight.fp8")) copies += tensor.bytes.count();
  CHECK(copies == 2 * (2 * kWeights8 + 7 * 4));
  // They are no parameters of the network.
  CHECK(net.parameter_bytes == build_text(model_in_fp8(2), in_bf16()).parameter_bytes);
  const Workload sharded = sharded_step(net, {.stage = 1, .ranks = 4});
  CHECK(find_operator(sharded, name).traffic == made.traffic);
  CHECK(find_operator(sharded, "block_1/gated_mlp_1/down.update").traffic <
        find_operator(net, "block_1/gated_mlp_1/down.update").traffic);
}

TEST_CASE("ranks gather positions in fp8, and each keeps its own") {
  WorkloadOptions options = in_fp8({});
  const std::int64_t alone = kept_by_block(options) - 4 * 4;
  for (const Fp8Recipe recipe : kRecipes) {
    options.fp8->value.recipe = recipe;
    options.tensor = TensorAxis{{}, 2, Location{}};
    const Workload net = build_text(model_in_fp8(2), options);
    const Operator& gather =
        find_operator(net, "block_1/grouped_attention_1/query.forward_all_gather");
    const Bytes part = net[net.list(gather.reads).front()].bytes;
    CHECK(net[net.list(gather.kept).front()].bytes.count() >= kRows8 * kWidth8);
    CHECK(part < Bytes{kRows8 * kWidth8});
    // The transpose of what is gathered again, where blocks have no scales of their own.
    bool transposes = false;
    for (const Operator& op : net.operators)
      transposes = transposes || op.name.ends_with(".backward_transpose");
    CHECK(transposes == (recipe == Fp8Recipe::delayed || recipe == Fp8Recipe::current));
    if (recipe == Fp8Recipe::delayed) CHECK(kept_by_block(options) == alone / 2 + 4 * 4);
  }
}

TEST_CASE("fp8 that makes no sense is refused") {
  const std::string dense = network("[64]", "  - linear: 32\n  - linear: 48\n");
  WorkloadOptions options = in_fp8({});
  CHECK_THAT(error_of(dense, options),
             Contains("`linear`: products in fp8 read rows in multiples of 8 and features in "
                      "multiples of 16, found 2 rows of 64 features"));
  options.batch = 8;
  CHECK(error_of(dense, options).empty());
  CHECK_THAT(error_of(network("[64]", "  - linear: 40\n"), options),
             Contains("found 8 rows of 40 features"));
  options.fp8->value.recipe = Fp8Recipe::mxfp8;
  CHECK_THAT(error_of(dense, options), Contains("rows in multiples of 32"));
  options.dtype.reset();
  CHECK_THAT(error_of(dense, options),
             Contains("s.yaml:3:9") && Contains("`dtype` is fp32; expected bf16 or fp16"));
  options.autocast = DType::bf16;
  CHECK_THAT(error_of(dense, options), Contains("`fp8` does not go with `autocast`"));
  CHECK_THAT(error_of(network("[3, 8, 8]", "  - conv2d: {channels: 8, kernel: 3}\n"), in_fp8({})),
             Contains("s.yaml:3:9") && Contains("no layer computes in fp8"));
  CHECK_THAT(error_of("workload: g\ngraph: [{name: a, time: 1 s}]\n", in_fp8({})),
             Contains("only a network of layers takes `fp8`"));
  const Platform old = test::platform_of(
      "platform: b\nmemories: {hbm: {capacity: 1 GiB, bandwidth: 1 TB/s}}\nprocessors: {gpu: "
      "{memory: hbm, compute: {bf16: 1 TFLOP/s, fp32: 1 TFLOP/s}}}\n");
  CHECK_THROWS_WITH(durations(build_text(model_in_fp8(1), in_fp8({})), old, ProcessorId{0}),
                    Contains("states no peak rate for fp8, which operator "
                             "`block_1/grouped_attention_1/query.forward` needs; it states fp32, "
                             "bf16, and a network without `fp8`"));
}
