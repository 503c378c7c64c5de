#include "workload/network/kept_tensors.hpp"
#include "workload/onnx/onnx_file.hpp"
#include "workload/workload_text.hpp"

#include <fstream>
#include <iterator>
#include <random>

#include <catch2/catch.hpp>

using namespace plimsoll;
using Catch::Matchers::Contains;

namespace {

/// A graph that a test writes: values are named by the test, weights have no numbers.
class Graph {
 public:
  explicit Graph(Dims input, OnnxType type = OnnxType::fp32) {
    graph_.where = {"net.onnx", 0, 0};
    graph_.name = "net";
    graph_.opset = 13;
    OnnxInput x{"x", type, std::vector<OnnxDimension>{}};
    for (const std::int64_t dim : input) x.dims->push_back({dim, ""});
    graph_.inputs = {x};
    graph_.outputs = {"y"};
  }

  Graph& weight(const std::string& name, Dims dims) {
    OnnxTensor tensor;
    tensor.dims = std::move(dims);
    tensor.type = OnnxType::fp32;
    graph_.initializers.push_back({name, tensor});
    return *this;
  }
  Graph& number(const std::string& name, double value) {
    OnnxTensor tensor{{}, OnnxType::fp32, true, {}, {value}};
    graph_.initializers.push_back({name, tensor});
    return *this;
  }
  Graph& constant(const std::string& name, std::vector<double> numbers) {
    OnnxAttribute value;
    value.name = "value";
    value.tensor =
        OnnxTensor{{static_cast<std::int64_t>(numbers.size())}, OnnxType::fp32, true, {}, numbers};
    return node({name}, "Constant", {}, {value});
  }
  Graph& list(const std::string& name, std::vector<std::int64_t> numbers) {
    OnnxTensor tensor{
        {static_cast<std::int64_t>(numbers.size())}, OnnxType::integer, true, numbers, {}};
    graph_.initializers.push_back({name, tensor});
    return *this;
  }
  /// "z = Kind x w": outputs, kind, inputs.
  Graph& node(std::vector<std::string> outputs, const std::string& kind,
              std::vector<std::string> inputs, std::vector<OnnxAttribute> attributes = {}) {
    OnnxNode node;
    node.name = "/" + outputs.front();
    node.kind = kind;
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    node.attributes = std::move(attributes);
    graph_.nodes.push_back(node);
    return *this;
  }
  OnnxGraph& operator*() { return graph_; }

  [[nodiscard]] Workload build(WorkloadOptions options = {}) const {
    if (!options.loss) options.loss = Loss::none;
    const auto shared = std::make_shared<const OnnxGraph>(graph_);
    return plimsoll::build(OnnxSpec{graph_.where, graph_.name, shared, onnx_batch(graph_)},
                           options);
  }
  [[nodiscard]] std::string error(const WorkloadOptions& options = {}) const {
    try {
      static_cast<void>(build(options));
    } catch (const InputError& error) {
      return error.what();
    }
    return {};
  }
  [[nodiscard]] std::string kept(WorkloadOptions options = {}) const {
    options.loss = Loss::none;
    std::string text;
    for (const KeptTensor& kept : kept_tensors(expand(graph_, options)))
      text += std::string(kept.kind) + "." + kept.role + (kept.is_input ? "(input) " : " ");
    return text;
  }

 private:
  OnnxGraph graph_;
};

WorkloadOptions with_buffer(const std::string& name) {
  WorkloadOptions options;
  options.buffers = {Located<std::string>{name, {"s.yaml", 3, 1}}};
  return options;
}

OnnxAttribute integers(const std::string& name, std::vector<std::int64_t> numbers) {
  OnnxAttribute attribute;
  attribute.name = name;
  attribute.integers = std::move(numbers);
  return attribute;
}

OnnxAttribute integer(const std::string& name, std::int64_t number) {
  OnnxAttribute attribute;
  attribute.name = name;
  attribute.integer = number;
  return attribute;
}

std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

const std::string kOnnx = std::string(PLIMSOLL_SOURCE_DIR) + "/tests/oracles/onnx/";

}  // namespace

TEST_CASE("a dense layer is a product with a weight, with or without a sum") {
  Graph graph({2, 5});
  graph.weight("w", {3, 5}).weight("b", {3});
  graph.node({"t"}, "Transpose", {"w"}).node({"p"}, "MatMul", {"x", "t"});
  graph.node({"y"}, "Add", {"b", "p"});
  const Workload net = graph.build();
  CHECK(net.batch == 2);
  CHECK(net.parameters == 3 * 5 + 3);
  CHECK(net.macs == 2 * 3 * 5);
  CHECK(net.forwards == 1);
  // The same weight again is tied: no parameters of its own.
  Graph tied({2, 5});
  tied.weight("w", {5, 5}).node({"h"}, "MatMul", {"x", "w"}).node({"y"}, "MatMul", {"h", "w"});
  CHECK(tied.build().parameters == 25);
  CHECK(tied.build().macs == 2 * 2 * 25);
}

TEST_CASE("an activation works in place where nothing reads its input afterwards") {
  Graph alone({1, 4});
  alone.weight("w", {4, 4}).node({"h"}, "MatMul", {"x", "w"}).node({"y"}, "Relu", {"h"});
  const Workload one = alone.build();
  CHECK(one.list(find_operator(one, "y.forward").updates).size() == 1);
  Graph both({1, 4});
  both.weight("w", {4, 4}).node({"h"}, "MatMul", {"x", "w"}).node({"r"}, "Relu", {"h"});
  both.node({"y"}, "Add", {"r", "h"});
  const Workload two = both.build();
  CHECK(two.list(find_operator(two, "r.forward").updates).empty());
}

TEST_CASE("GELU, SiLU and layer norm are one operator each") {
  const auto gelu = [](bool half_first) {
    Graph graph({1, 4});
    graph.weight("w", {4, 4}).number("root", 1.41421356).number("one", 1).number("half", 0.5);
    graph.node({"h"}, "MatMul", {"x", "w"}).node({"d"}, "Div", {"h", "root"});
    graph.node({"e"}, "Erf", {"d"}).node({"s"}, "Add", {"e", "one"});
    if (half_first)
      graph.node({"a"}, "Mul", {"h", "half"}).node({"y"}, "Mul", {"a", "s"});
    else
      graph.node({"a"}, "Mul", {"h", "s"}).node({"y"}, "Mul", {"a", "half"});
    return graph.kept();
  };
  CHECK(gelu(false) == "linear.x(input) gelu.x ");
  CHECK(gelu(true) == "linear.x(input) gelu.x ");
  Graph silu({1, 4});
  silu.weight("w", {4, 4}).node({"h"}, "MatMul", {"x", "w"});
  silu.node({"s"}, "Sigmoid", {"h"}).node({"y"}, "Mul", {"h", "s"});
  CHECK(silu.kept() == "linear.x(input) silu.x ");
  // Read elsewhere, the gate is an operator of its own.
  Graph gated({1, 4});
  gated.weight("w", {4, 4}).node({"h"}, "MatMul", {"x", "w"});
  gated.node({"s"}, "Sigmoid", {"h"}).node({"m"}, "Mul", {"h", "s"}).node({"y"}, "Add", {"m", "s"});
  CHECK(gated.kept() == "linear.x(input) sigmoid.y multiply.x multiply.x ");
  // Hardswish, as it is exported before opset 14.
  Graph hard({1, 4});
  hard.weight("w", {4, 4}).node({"h"}, "MatMul", {"x", "w"}).node({"s"}, "HardSigmoid", {"h"});
  hard.node({"y"}, "Mul", {"h", "s"});
  CHECK(hard.kept() == "linear.x(input) hard_swish.x ");
  // With nothing to train there is nothing to keep.
  Graph fixed({1, 4});
  fixed.node({"s"}, "Sigmoid", {"x"}).node({"y"}, "Mul", {"x", "s"});
  CHECK(fixed.kept().empty());
}

TEST_CASE("Mish, GELU by tanh and one over a root are one operator each") {
  Graph mish({1, 4});
  mish.weight("w", {4, 4}).node({"h"}, "MatMul", {"x", "w"}).node({"p"}, "Softplus", {"h"});
  mish.node({"t"}, "Tanh", {"p"}).node({"y"}, "Mul", {"h", "t"});
  CHECK(mish.kept() == "linear.x(input) mish.x ");
  const auto gelu = [](double cubed) {
    Graph graph({1, 4});
    graph.weight("w", {4, 4}).number("c", cubed).number("r", 0.7978845608).number("one", 1);
    graph.number("half", 0.5).node({"h"}, "MatMul", {"x", "w"});
    graph.node({"h2"}, "Mul", {"h", "h"}).node({"h3"}, "Mul", {"h", "h2"});
    graph.node({"a"}, "Mul", {"c", "h3"}).node({"b"}, "Add", {"h", "a"});
    graph.node({"d"}, "Mul", {"r", "b"}).node({"t"}, "Tanh", {"d"});
    graph.node({"e"}, "Add", {"one", "t"}).node({"f"}, "Mul", {"h", "e"});
    graph.node({"y"}, "Mul", {"half", "f"});
    return graph.kept();
  };
  CHECK(gelu(0.044715) == "linear.x(input) gelu.x ");
  CHECK_THAT(gelu(0.1), !Contains("gelu") && Contains("tanh.y"));
  const auto inverse = [](const std::string& kind) {
    Graph graph({1, 4});
    graph.weight("w", {4, 4}).number("one", 1).node({"h"}, "MatMul", {"x", "w"});
    graph.node({"r"}, "Sqrt", {"h"});
    if (kind == "Div")
      graph.node({"y"}, kind, {"one", "r"});
    else
      graph.node({"y"}, kind, {"r"});
    return graph.kept();
  };
  CHECK(inverse("Div") == "linear.x(input) rsqrt.y ");
  CHECK(inverse("Reciprocal") == "linear.x(input) sqrt.y reciprocal.y ");
  CHECK(inverse("Exp") == "linear.x(input) sqrt.y exp.y ");
}

TEST_CASE("a number with a name of its own is learned in a file of PyTorch") {
  Graph graph({2, 4});
  graph.weight("w", {4, 4}).number("gain", 0.5).number("onnx::Mul_7", 2).number("12", 3);
  graph.node({"h"}, "MatMul", {"x", "w"}).node({"g"}, "Mul", {"h", "gain"});
  graph.node({"m"}, "Mul", {"g", "onnx::Mul_7"}).node({"y"}, "Add", {"m", "12"});
  CHECK(graph.build().parameters == 16);
  (*graph).is_of_pytorch = true;
  CHECK(graph.build().parameters == 17);
  CHECK(graph.kept() == "linear.x(input) gain.x scale.factor ");
  CHECK(graph.build(with_buffer("gain")).parameters == 16);
  // What PyTorch keeps of a quotient by it is not known.
  graph.node({"z"}, "Div", {"y", "gain"});
  CHECK_THAT(graph.error(), Contains("a learned number in a division is not supported"));
}

TEST_CASE("a dropout of nothing is none") {
  const auto dropped = [](double ratio) {
    Graph graph({2, 4});
    graph.weight("w", {4, 4}).number("ratio", ratio).number("trains", 1);
    graph.node({"h"}, "MatMul", {"x", "w"}).node({"y"}, "Dropout", {"h", "ratio", "trains"});
    return graph.kept();
  };
  CHECK(dropped(0.1) == "linear.x(input) dropout.mask ");
  CHECK(dropped(0) == "linear.x(input) ");
}

TEST_CASE("images are padded and resized, pixels and channels change places") {
  const auto changed = [](const std::string& kind, const std::vector<std::int64_t>& numbers,
                          std::vector<OnnxAttribute> attributes = {}) {
    Graph graph({2, 4, 6, 6});
    graph.weight("w", {4, 4, 1, 1}).weight("v", {4, 1, 1, 1}).list("numbers", numbers);
    graph.node({"c"}, "Conv", {"x", "w"});
    if (kind == "Resize")
      graph.node({"r"}, kind, {"c", "", "", "numbers"});
    else if (numbers.empty())
      graph.node({"r"}, kind, {"c"}, attributes);
    else
      graph.node({"r"}, kind, {"c", "numbers"});
    return graph.node({"y"}, "Relu", {"r"});
  };
  // What the ReLU keeps.
  const auto kept = [](const Graph& graph) { return graph.build().saved_bytes.count(); };
  CHECK(kept(changed("Pad", {0, 0, 1, 0, 0, 0, 2, 3})) == 2 * 4 * 9 * 9 * 4);
  CHECK(kept(changed("Resize", {2, 4, 12, 12})) == 2 * 4 * 12 * 12 * 4);
  CHECK(kept(changed("Resize", {2, 4, 3, 7})) == 2 * 4 * 3 * 7 * 4);
  CHECK(kept(changed("DepthToSpace", {}, {integer("blocksize", 2)})) == 2 * 4 * 36 * 4);
  CHECK_THAT(changed("Pad", {0, 0, -1, 0, 0, 0, 0, 0}).error(), Contains("top must be from 0"));
  CHECK_THAT(changed("Pad", {0, 1, 0, 0, 0, 0, 0, 0}).error(),
             Contains("only a padding of rows and columns is supported"));
  CHECK_THAT(changed("Resize", {2, 8, 6, 6}).error(),
             Contains("expected known sizes, or factors, of rows and columns alone"));
  CHECK_THAT(changed("DepthToSpace", {}, {integer("blocksize", 3)}).error(),
             Contains("blocks of 3 do not fit values [2, 4, 6, 6]"));
}

TEST_CASE("initializers that are called buffers are no parameters") {
  Graph graph({2, 4, 6});
  graph.weight("w", {6, 6}).weight("rotary.cos", {4, 6}).weight("mask", {4, 6});
  graph.node({"h"}, "MatMul", {"x", "w"}).node({"c"}, "Mul", {"h", "rotary.cos"});
  graph.node({"y"}, "Add", {"c", "mask"});
  CHECK(graph.build().parameters == 36 + 2 * 24);
  WorkloadOptions options;
  options.buffers = {{"*.cos", {"s.yaml", 3, 9}}, {"mask", {"s.yaml", 3, 16}}};
  const Workload net = graph.build(options);
  CHECK(net.parameters == 36);
  CHECK(net.saved_bytes.count() == 0);
  options.buffers.push_back({"maks", {"s.yaml", 3, 24}});
  CHECK_THAT(graph.error(options), Contains("s.yaml:3:24: error: the ONNX file has no initializer "
                                            "`maks`; did you mean `mask`?"));
}

TEST_CASE("a group norm is one operator, however its weight is unsqueezed") {
  const auto by_ones = [](double scale, bool unsqueezed) {
    Graph graph({2, 6, 4, 4});
    graph.weight("w", {6, 6, 1, 1}).list("groups", {2, 3, -1}).list("axes", {1, 2});
    graph.constant("scale", {scale, 1, 1}).constant("zeros", {0, 0, 0});
    graph.weight("gain", unsqueezed ? Dims{6} : Dims{6, 1, 1}).weight("bias", {6, 1, 1});
    graph.node({"c"}, "Conv", {"x", "w"}).node({"g"}, "Reshape", {"c", "groups"});
    graph.node({"n"}, "InstanceNormalization", {"g", "scale", "zeros"});
    graph.node({"size"}, "Shape", {"c"}).node({"r"}, "Reshape", {"n", "size"});
    if (unsqueezed) graph.node({"column"}, "Unsqueeze", {"gain", "axes"});
    graph.node({"m"}, "Mul", {"r", unsqueezed ? "column" : "gain"});
    graph.node({"y"}, "Add", {"m", "bias"});
    return graph;
  };
  const std::string one =
      "conv2d.x(input) group_norm.x group_norm.mean group_norm.inverse_deviation ";
  CHECK(by_ones(1, false).kept() == one);
  CHECK(by_ones(1, true).kept() == one);
  CHECK(by_ones(1, true).build().saved_bytes.count() == 2 * (6 * 16 + 2 * 3) * 4);
  // By other numbers it is what it says.
  CHECK_THAT(by_ones(2, false).kept(), Contains("instance_norm.x") && !Contains("group_norm"));
}

TEST_CASE("normalizations of ONNX over channels") {
  const auto normal = [](const std::string& kind, const Dims& weight, const Dims& input) {
    Graph graph(input);
    graph.weight("k", {6, 6, 1}).weight("w", weight).weight("b", weight);
    graph.node({"c"}, "Conv", {"x", "k"});
    graph.node({"y"}, kind, {"c", "w", "b"}, {integer("num_groups", 3)});
    return graph;
  };
  CHECK(normal("InstanceNormalization", {6}, {2, 6, 4}).build().saved_bytes.count() ==
        2 * (6 * 4 + 3 * 6) * 4);
  CHECK(normal("GroupNormalization", {6}, {2, 6, 4}).build().saved_bytes.count() ==
        2 * (6 * 4 + 2 * 3) * 4);
  CHECK_THAT(normal("GroupNormalization", {3}, {2, 6, 4}).error(),
             Contains("(GroupNormalization): a weight [3] does not fit values [2, 6, 4]"));
}

TEST_CASE("an LSTM goes over positions, in one direction or in both") {
  const auto over_words = [](std::int64_t directions, const std::string& direction) {
    OnnxAttribute way;
    way.name = "direction";
    way.text = direction;
    Graph graph({4, 7, 32});
    graph.weight("w", {directions, 192, 32}).weight("r", {directions, 192, 48});
    graph.weight("b", {directions, 384}).list("rows", {0, 0, -1});
    graph.node({"t"}, "Transpose", {"x"}, {integers("perm", {1, 0, 2})});
    graph.node({"all", "last", "cell"}, "LSTM", {"t", "w", "r", "b"},
               {integer("hidden_size", 48), way});
    graph.node({"joined"}, "Transpose", {"all"}, {integers("perm", {0, 2, 1, 3})});
    graph.node({"z"}, "Reshape", {"joined", "rows"});
    graph.node({"y"}, "Transpose", {"z"}, {integers("perm", {1, 0, 2})});
    return graph;
  };
  // A copy of what is not contiguous, and seven numbers a position and feature.
  constexpr std::int64_t each = 4 * 7 * (32 + 7 * 48) * 4;
  const Workload one = over_words(1, "forward").build();
  CHECK(one.saved_bytes.count() == each);
  CHECK(one.forwards == 2);
  CHECK(one.parameters == 192 * (32 + 48 + 2));
  // Each direction copies x; its outputs are joined, and lie as PyTorch has them.
  const Workload both = over_words(2, "bidirectional").build();
  CHECK(both.saved_bytes.count() == 2 * each);
  CHECK(both.forwards == 5);
  // The last state is a copy of its own: the other positions are not kept.
  Graph last = over_words(1, "reverse");
  (*last).outputs = {"v"};
  last.weight("h", {48, 5}).node({"v"}, "MatMul", {"last", "h"});
  CHECK(last.build().saved_bytes.count() == each + 4 * 48 * 4);
  const auto error = [&](auto change) {
    Graph graph = over_words(1, "forward");
    change(*graph);
    return graph.error();
  };
  CHECK_THAT(error([](OnnxGraph& graph) { graph.nodes[1].inputs[1] = "r"; }),
             Contains("(LSTM): a weight [1, 192, 48] does not fit values [7, 4, 32] and 48"));
  CHECK_THAT(error([](OnnxGraph& graph) {
               graph.nodes[1].inputs.insert(graph.nodes[1].inputs.end(), {"", "t"});
             }),
             Contains("a first state that the network makes is not supported"));
  CHECK_THAT(error([](OnnxGraph& graph) { graph.nodes[1].inputs[0] = "x"; }),
             Contains("found [4, 7, 32]") && !Contains("export the model at a batch of 2"));
  CHECK_THAT(error([](OnnxGraph& graph) {
               graph.inputs.front().dims->front().size = 1;
               graph.nodes[1].inputs[0] = "x";
             }),
             Contains("found [1, 7, 32]; where the batch is 1 it may be taken for another "
                      "dimension of 1: export the model at a batch of 2"));
  CHECK_THAT(error([](OnnxGraph& graph) { graph.outputs = {"cell"}; }),
             Contains("its last cell, which is read, is not supported"));
  CHECK_THAT(error([](OnnxGraph& graph) { graph.nodes[1].inputs[0] = "x"; }),
             Contains("of which the batch is the first dimension of the graph's input"));
}

TEST_CASE("shape arithmetic is folded, and a reshape of a transposed value is a copy") {
  Graph graph({2, 6, 4});
  graph.list("zero", {0}).list("two", {2}).list("rest", {-1});
  graph.node({"s"}, "Shape", {"x"}).node({"n"}, "Gather", {"s", "zero"});
  // 2 mod -3 is -1, and 2 times 2 more than that and 1 are 4.
  graph.list("three", {-3}).node({"r"}, "Mod", {"n", "three"}).node({"u"}, "Add", {"n", "r"});
  graph.list("one", {1}).node({"n2"}, "Add", {"u", "one"});
  graph.node({"m"}, "Mul", {"n2", "two"})
      .node({"c"}, "Concat", {"m", "rest"}, {integer("axis", 0)});
  graph.node({"v"}, "Reshape", {"x", "c"});  // [4, 12]: a view
  graph.node({"y"}, "Relu", {"v"});
  CHECK(graph.build().forwards == 1);
  Graph moved({2, 6, 4});
  moved.list("flat", {2, 24}).weight("w", {4, 4}).node({"h"}, "MatMul", {"x", "w"});
  moved.node({"t"}, "Transpose", {"h"}, {integers("perm", {0, 2, 1})});
  moved.node({"v"}, "Reshape", {"t", "flat"}).node({"y"}, "Relu", {"v"});
  CHECK(moved.build().forwards == 3);
  CHECK(moved.build({.batch = 5}).saved_bytes == Bytes{5 * 24 * 4});
}

namespace {

/// 2 samples of 3 positions: query, key and value of so many heads of 4 features, and their node.
Graph grouped(const std::string& kind, std::int64_t heads, std::int64_t kv_heads,
              std::vector<OnnxAttribute> attributes) {
  Graph net({2, 3, 16});
  net.weight("wq", {16, 4 * heads}).weight("wk", {16, 4 * kv_heads});
  net.weight("wv", {16, 4 * kv_heads}).weight("w", {4 * heads, 5});
  for (const std::string part : {"q", "k", "v"}) net.node({part}, "MatMul", {"x", "w" + part});
  const bool is_contributed = kind == "GroupQueryAttention";
  attributes.push_back(integer(is_contributed ? "num_heads" : "q_num_heads", heads));
  attributes.push_back(integer("kv_num_heads", kv_heads));
  net.node({"o"}, kind, {"q", "k", "v"}, std::move(attributes));
  if (is_contributed) (*net).nodes.back().domain = "com.microsoft";
  return net.node({"y"}, "MatMul", {"o", "w"});
}

}  // namespace

TEST_CASE("grouped queries, rotary positions and RMSNorm are operators of ONNX files") {
  // Query and result, key and value, and a number for each head and position.
  constexpr std::int64_t kept = 4 * 2 * (2 * 3 * 16 + 2 * 3 * 8 + 4 * 3);
  constexpr std::int64_t pair = 2 * 2 * 2 * 4 * 4;  // two products of 4 heads, of 2 samples
  const auto flops = [](const Graph& net) {
    return find_operator(net.build(), "o.forward").flops.count();
  };
  const Graph plain = grouped("Attention", 4, 2, {});
  CHECK(plain.build().saved_bytes.count() == kept);
  CHECK(flops(plain) == 9 * pair);
  CHECK(flops(grouped("Attention", 4, 2, {integer("is_causal", 1)})) == 6 * pair);
  const Graph contributed = grouped("GroupQueryAttention", 4, 2, {integer("local_window_size", 2)});
  CHECK(contributed.build().saved_bytes.count() == kept);
  CHECK(flops(contributed) == 5 * pair);
  // Both turned before: two operators more, which keep nothing.
  const Graph turned = grouped("GroupQueryAttention", 4, 2, {integer("do_rotary", 1)});
  CHECK(turned.build().saved_bytes.count() == kept);
  CHECK(turned.build().forwards == contributed.build().forwards + 2);
  CHECK_THAT(grouped("Attention", 4, 3, {}).error(),
             Contains("4 heads cannot share 3 heads") && Contains("1, 2 or 4"));
  Graph past = grouped("Attention", 4, 2, {});
  (*past).nodes[3].inputs = {"q", "k", "v", "", "k"};
  CHECK_THAT(past.error(), Contains("keys and values of earlier runs"));

  Graph norm({2, 3, 8});
  norm.weight("w", {8, 8}).weight("g", {8}).node({"h"}, "MatMul", {"x", "w"});
  norm.node({"n"}, "RMSNormalization", {"h", "g"});
  norm.node({"y"}, "RotaryEmbedding", {"n", "c", "s"}, {integer("num_heads", 2)});
  norm.weight("c", {3, 2}).weight("s", {3, 2});
  CHECK(norm.build().saved_bytes.count() == 4 * 2 * (3 * 8 + 3));
  CHECK(norm.build().parameters == 8 * 8 + 8);
  (*norm).nodes[2].attributes = {};
  CHECK_THAT(norm.error(), Contains("lacks `num_heads`"));
}

TEST_CASE("attention as PyTorch 2 exports it is one operator, laid out like its query") {
  // 2 samples, 3 positions, 2 heads of 4 features; query and value are turned, the key is as one.
  const auto graph = [](const std::string& mask) {
    Graph net({2, 3, 8});
    net.list("apart", {2, 3, 2, 4}).list("together", {2, 3, 8}).number("scale", 0.5);
    net.weight("m", {3, 3}).weight("w", {8, 5});
    for (const std::string part : {"q", "k", "v"}) {
      net.weight("w" + part, {8, 8}).node({part}, "MatMul", {"x", "w" + part});
      net.node({part + "h"}, "Reshape", {part, "apart"});
    }
    const auto turned = integers("perm", {0, 2, 1, 3});
    net.node({"qt"}, "Transpose", {"qh"}, {turned}).node({"vt"}, "Transpose", {"vh"}, {turned});
    net.node({"kt"}, "Transpose", {"kh"}, {integers("perm", {0, 2, 3, 1})});
    net.node({"r1"}, "Sqrt", {"scale"}).node({"qs"}, "Mul", {"qt", "r1"});
    net.node({"r2"}, "Sqrt", {"scale"}).node({"ks"}, "Mul", {"kt", "r2"});
    net.node({"s"}, "MatMul", {"qs", "ks"});
    if (!mask.empty()) net.node({"sm"}, "Add", {"s", mask});
    net.node({"p"}, "Softmax", {mask.empty() ? "s" : "sm"}).node({"o"}, "MatMul", {"p", "vt"});
    net.node({"ot"}, "Transpose", {"o"}, {turned}).node({"flat"}, "Reshape", {"ot", "together"});
    net.node({"y"}, "MatMul", {"flat", "w"});
    return net;
  };
  const std::string all =
      "dot_product_attention.x dot_product_attention.x dot_product_attention.x ";
  const WorkloadOptions with_mask = with_buffer("m");
  for (const char* mask : {"", "m"}) {
    CHECK_THAT(graph(mask).kept(with_mask),
               Contains(all + "dot_product_attention.y dot_product_attention.log_sum"));
    const Workload net = graph(mask).build(with_mask);
    // Three products, attention and the last product; no copy of what attention made.
    CHECK(net.forwards == 5);
    // Query, key, value and result, and a number for each head and position.
    CHECK(net.saved_bytes == Bytes{4 * (4 * 2 * 24 + 2 * 6)});
    CHECK(find_operator(net, "kt.forward").flops == Flops{2 * 2 * (2 * 2 * 3 * 3 * 4)});
    CHECK(find_operator(net, "kt.backward").flops == Flops{5 * 2 * (2 * 2 * 3 * 3 * 4)});
  }
  // Of a mask that is learned PyTorch runs the operators one by one.
  CHECK(graph("m").kept().find("dot_product") == std::string::npos);
  CHECK(graph("m").build().parameters == graph("").build().parameters + 9);
  // What else reads the scores sees them: no fusion.
  Graph open = graph("");
  open.node({"also"}, "Softmax", {"s"});
  (*open).outputs = {"y", "also"};
  CHECK(open.kept().find("dot_product") == std::string::npos);
}

TEST_CASE("a file of PyTorch 2 keeps no mean's input, and no number of a product") {
  Graph graph({2, 6, 4});
  graph.weight("w", {4, 4}).number("half", 0.5).list("last", {2});
  graph.node({"h"}, "MatMul", {"x", "w"}).node({"s"}, "Mul", {"h", "half"});
  graph.node({"y"}, "ReduceMean", {"s", "last"});
  CHECK(graph.kept() == "linear.x(input) scale.factor global_avg_pool.x ");
  (*graph).is_of_pytorch_2 = true;
  CHECK(graph.kept() == "linear.x(input) ");
}

TEST_CASE("parts of one storage keep it once, and join their gradients where it is made") {
  Graph graph({1, 3, 4});
  graph.weight("w", {4, 12});
  graph.node({"qkv"}, "MatMul", {"x", "w"});
  graph.node({"q", "k", "v"}, "Split", {"qkv"}, {integer("axis", 2)});
  graph.node({"kt"}, "Transpose", {"k"}, {integers("perm", {0, 2, 1})});
  graph.node({"s"}, "MatMul", {"q", "kt"}).node({"p"}, "Softmax", {"s"});
  graph.node({"y"}, "MatMul", {"p", "v"});
  const Workload net = graph.build();
  CHECK(net.saved_bytes == Bytes{(3 * 12 + 3 * 3) * 4});
  // Each product's backward makes the gradients of its parts, 3 x 4 values each.
  const Operator& scores = find_operator(net, "s.backward");
  REQUIRE(net.list(scores.kept).size() == 2);
  for (const TensorId part : net.list(scores.kept)) CHECK(net[part].bytes == Bytes{3 * 4 * 4});
  // Beside the three parts is all of it, 3 x 12 values, or the gradient of the weight, 4 x 12.
  const Operator& product = find_operator(net, "qkv.backward");
  CHECK(names(net, product.reads) == "qkv.gradient qkv.gradient qkv.gradient x qkv.weight");
  CHECK(product.workspace == Bytes{});
}

TEST_CASE("token ids, learned positions and a tied head") {
  // The positions' ids are kept where the exporter made them of what the network computes, not
  // where they are a buffer, which is there throughout.
  for (const auto& [ids, kept] : {std::pair{"onnx::Gather_1", 3 * 8}, std::pair{"ids", 0}}) {
    Graph graph({2, 3}, OnnxType::integer);
    graph.weight("tokens", {11, 4}).weight("positions", {9, 4}).list(ids, {0, 1, 2});
    graph.node({"e"}, "Gather", {"tokens", "x"}).node({"p"}, "Gather", {"positions", ids});
    graph.node({"h"}, "Add", {"e", "p"}).node({"t"}, "Transpose", {"tokens"});
    graph.node({"y"}, "MatMul", {"h", "t"});
    const Workload net = graph.build({.loss = Loss::cross_entropy});
    CHECK(net.parameters == 11 * 4 + 9 * 4);
    // x of the head, log-softmax, targets, total weight.
    CHECK(net.saved_bytes.count() == kept + 2 * 3 * 4 * 4 + 2 * 3 * 11 * 4 + 2 * 3 * 8 + 4);
  }
}

TEST_CASE("what cannot be imported is refused with node, operator and what to do") {
  const auto unary = [](const std::string& kind, Dims dims = {1, 4}) {
    return Graph(std::move(dims)).node({"y"}, kind, {"x"}).error();
  };
  CHECK_THAT(unary("GRU"), Contains("net.onnx: error: unsupported operator `GRU` (domain "
                                    "ai.onnx, opset 13)") &&
                               Contains("first at node `y`, 1 in all"));
  CHECK_THAT(unary("Rellu"), Contains("did you mean `Relu`?"));
  CHECK_THAT(unary("Erf"), Contains("node `y` (Erf): it is supported for constants only"));
  CHECK_THAT(unary("BatchNormalization", {1, 4, 2, 2}),
             Contains("inference mode") && Contains("TrainingMode.TRAINING"));
  CHECK_THAT(unary("Dropout"), Contains("inference mode"));
  CHECK_THAT(unary("MatMul"), Contains("it lacks input 2"));
  CHECK_THAT(unary("GlobalAveragePool"), Contains("expected values [batch, channels"));
  Graph control({1, 4});
  OnnxAttribute branch;
  branch.name = "then_branch";
  branch.is_graph = true;
  control.node({"y"}, "If", {"x"}, {branch});
  CHECK_THAT(control.error(), Contains("control flow `If`") && Contains("trace the model"));
  Graph foreign({1, 4});
  foreign.node({"y"}, "FusedConv", {"x"});
  (*foreign).nodes.front().domain = "com.microsoft";
  CHECK_THAT(foreign.error(), Contains("`FusedConv` (domain com.microsoft"));
  CHECK_THAT(Graph({1, 4}).node({"y"}, "Relu", {"z"}).error(),
             Contains("its input `z` is made by nothing before it"));
  CHECK_THAT(Graph({1, 4}).error(), Contains("output `y` does not depend on the graph's inputs"));
  CHECK_THAT(Graph({1, 4}).node({"y"}, "Relu", {"x"}).node({"y"}, "Relu", {"x"}).error(),
             Contains("`y` is made twice"));
  CHECK_THAT(Graph({1, 0}).node({"y"}, "Relu", {"x"}).error(), Contains("dimension 1 is 0"));
  OnnxAttribute number;
  number.name = "value_int";
  number.integer = 2;
  Graph lost({1, 4});
  lost.node({"c"}, "Constant", {}, {number});
  (*lost).nodes.front().outputs.clear();
  CHECK_THAT(lost.error(), Contains("it has no output"));
  CHECK_THAT(Graph({1, 4})
                 .node({"c"}, "Constant", {}, {number})
                 .node({"c"}, "Constant", {}, {number})
                 .error(),
             Contains("`c` is made twice"));
  CHECK_THAT(Graph({1, 1000000000, 1000000000, 1000000000}).node({"y"}, "Relu", {"x"}).error(),
             Contains("sizes out of range"));
}

TEST_CASE("dimensions with a name take their size from the scenario") {
  Graph graph({1, 4});
  (*graph).inputs.front().dims = std::vector<OnnxDimension>{{{}, "batch"}, {{}, "sequence"}};
  graph.weight("w", {7, 2}).node({"h"}, "MatMul", {"x", "w"}).node({"y"}, "Relu", {"h"});
  CHECK_THAT(graph.error(), Contains("dimension 1 has the name `sequence`, but no size") &&
                                Contains("with: {sequence: N}"));
  CHECK_THAT(graph.error({.with = {{{"sequenc", {}}, 7}}}),
             Contains("no dimension named `sequenc`") && Contains("did you mean `sequence`?"));
  const Workload net = graph.build({.batch = 3, .with = {{{"sequence", {}}, 7}}});
  CHECK(net.batch == 3);
  CHECK(net.saved_bytes == Bytes{3 * 2 * 4});
  (*graph).inputs.front().dims.reset();
  CHECK_THAT(graph.error(), Contains("input `x` has no shape"));
}

TEST_CASE("files that are cut or changed end in one error, or in a workload") {
  const std::string bytes = read_bytes(kOnnx + "alexnet.onnx");
  REQUIRE(bytes.size() == 10129);
  const auto outcome = [](const std::string& text) {
    try {
      static_cast<void>(expand(parse_onnx(text, "cut.onnx"), {}));
      return std::string("built");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
  };
  CHECK(outcome(bytes) == "built");
  CHECK_THAT(outcome(""), Contains("expected an ONNX model"));
  // The graph, and with it everything after the first bytes, is one message of a stated length; the
  // opset follows it.
  for (std::size_t size = 40; size + 10 < bytes.size(); size += 97)
    CHECK_THAT(outcome(bytes.substr(0, size)), Contains("cut.onnx: error: expected an ONNX model"));
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string changed = bytes;
    for (int k = 0; k < 3; ++k) changed[random() % changed.size()] = static_cast<char>(random());
    CHECK(!outcome(changed).empty());
  }
}
