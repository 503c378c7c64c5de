#include "workload/recorded_tensors.hpp"
#include "workload/workload_text.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <tuple>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace plimsoll;
using Catch::Matchers::Contains;

namespace {

nlohmann::json read_oracle() {
  std::ifstream file(std::string(PLIMSOLL_SOURCE_DIR) +
                     "/tests/oracles/autocast_saved_tensors.json");
  return nlohmann::json::parse(file);
}

WorkloadOptions options_of(const nlohmann::json& row) {
  WorkloadOptions options;
  options.batch = row.at("batch").get<std::int64_t>();
  options.loss = row.at("loss") == "sum" ? Loss::sum : Loss::cross_entropy;
  options.autocast = row.at("autocast") == "fp16" ? DType::fp16 : DType::bf16;
  for (const auto& [name, value] : row.at("with").items())
    options.with.push_back({{name, {}}, value.get<std::int64_t>()});
  return options;
}

/// A shipped network, or one block of it, whose input is then the network's.
LayersSpec layers_of(const nlohmann::json& row) {
  const bool is_block = row.contains("block_of");
  if (is_block)
    return std::get<LayersSpec>(read_workload(block_alone(row.at("block_of").get<std::string>())));
  const std::string name = row.at("workload").get<std::string>();
  return std::get<LayersSpec>(read_workload(read_document(shipped(name))));
}

/// Autograd keeps the weight of a dense layer transposed.
Dims dims_of(const KeptTensor& kept) {
  Dims dims = kept.dims;
  if (kept.kind == "linear" && kept.role == "weight") std::ranges::reverse(dims);
  return dims;
}

using Line = std::tuple<std::string, Dims, std::string, std::int64_t, std::int64_t, bool>;
using Storage = std::pair<std::string, std::int64_t>;

}  // namespace

TEST_CASE("under autocast every recorded network keeps the recorded storages, to the byte") {
  const nlohmann::json recorded = read_oracle();
  REQUIRE(recorded.at("rows").size() == 10);
  for (const nlohmann::json& row : recorded.at("rows")) {
    CAPTURE(row.value("workload", row.value("block_of", "")), row.at("with").dump());
    const LayersSpec layers = layers_of(row);
    const Workload workload = build(layers, options_of(row));
    CHECK(workload.saved_bytes.count() == row.at("saved_bytes").get<std::int64_t>());
    CHECK(workload.parameters == row.at("parameters").get<std::int64_t>());
    std::map<Storage, int> found, expected;
    for (const KeptTensor& kept : kept_tensors(expand(layers, options_of(row))))
      if (!kept.is_shared && !kept.is_input) ++found[{dtype_of(kept), kept.storage_bytes.count()}];
    for (const nlohmann::json& storage : row.at("storages"))
      expected[{storage[0].get<std::string>(), storage[1].get<std::int64_t>()}] =
          storage[2].get<int>();
    CHECK(found == expected);
  }
}

TEST_CASE("under autocast recorded networks keep the recorded tensors") {
  const nlohmann::json oracle = read_oracle();
  int networks = 0;
  for (const nlohmann::json& row : oracle.at("rows")) {
    if (!row.contains("tensors")) continue;
    ++networks;
    CAPTURE(row.at("workload").dump());
    std::map<Line, int> found, expected;
    for (const KeptTensor& kept : kept_tensors(expand(layers_of(row), options_of(row))))
      ++found[{node_of(kept), dims_of(kept), dtype_of(kept), kept.bytes.count(),
               kept.storage_bytes.count(), kept.is_input}];
    for (const nlohmann::json& t : row.at("tensors"))
      expected[{t[0].get<std::string>(), t[1].get<Dims>(), t[2].get<std::string>(),
                t[3].get<std::int64_t>(), t[4].get<std::int64_t>(), t[5].get<bool>()}] +=
          t[6].get<int>();
    CHECK(found == expected);
  }
  CHECK(networks == 4);
}

TEST_CASE("under autocast an ONNX file keeps what its network's layers keep") {
  const std::string files = std::string(PLIMSOLL_SOURCE_DIR) + "/tests/oracles/onnx/";
  const WorkloadOptions options{.batch = 2, .loss = Loss::cross_entropy, .autocast = DType::fp16};
  for (const auto& [file, network] : {std::pair{"resnet18.onnx", "resnet18"},
                                      {"densenet121.onnx", "densenet121"},
                                      {"mobilenet_v2.onnx", "mobilenet-v2"},
                                      {"vgg16.onnx", "vgg16"}}) {
    CAPTURE(file);
    CHECK(build(read_onnx_workload(files + file), options).saved_bytes ==
          build(read_workload(read_document(shipped(network))), options).saved_bytes);
  }
}

namespace {

const WorkloadOptions kHalf{.optimizer = Optimizer::sgd, .autocast = DType::fp16};

/// Names of operators, of phases before the optimizer's.
std::string order_of(const Workload& workload) {
  std::string text;
  for (std::uint32_t i = 0; i < workload.optimizer_begin; ++i)
    text += (i > 0 ? " " : "") + workload.operators[i].name;
  return text;
}

Bytes made_by(const Workload& workload, const std::string& name) {
  Bytes sum;
  for (const TensorId id : workload.list(find_operator(workload, name).kept))
    sum += workload[id].bytes;
  return sum;
}

}  // namespace

TEST_CASE("autocast casts what products read, and gradients back") {
  const Workload net = build_text(network("[4]", "  - linear: 8\n", "mse"), kHalf);
  CHECK(order_of(net) ==
        "linear_1.forward_cast_input linear_1.forward_cast_weight linear_1.forward_cast_bias "
        "linear_1.forward mse_loss.forward_cast_input mse_loss.forward mse_loss.backward "
        "mse_loss.backward_cast_input linear_1.backward linear_1.backward_cast_weight "
        "linear_1.backward_cast_bias");
  // 4 inputs, 32 weights, 8 biases and outputs: 4 bytes read, 2 written.
  CHECK(find_operator(net, "linear_1.forward_cast_input").traffic == Bytes{4 * (4 + 2)});
  CHECK(find_operator(net, "linear_1.forward_cast_weight").traffic == Bytes{32 * (4 + 2)});
  CHECK(find_operator(net, "linear_1.forward").traffic == Bytes{2 * (4 + 32 + 8 + 8)});
  CHECK(find_operator(net, "linear_1.forward").dtype == DType::fp16);
  CHECK(find_operator(net, "linear_1.backward").dtype == DType::fp16);
  CHECK_FALSE(find_operator(net, "mse_loss.forward").dtype);
  CHECK(made_by(net, "linear_1.forward_cast_input") == Bytes{2 * 4});
  CHECK(made_by(net, "mse_loss.forward_cast_input") == Bytes{4 * 8});
  CHECK(made_by(net, "mse_loss.backward") == Bytes{4 * 8});
  CHECK(made_by(net, "mse_loss.backward_cast_input") == Bytes{2 * 8});
  CHECK(made_by(net, "linear_1.backward") == Bytes{2 * (32 + 8)});
  CHECK(made_by(net, "linear_1.backward_cast_weight") == Bytes{4 * 32});
  // The first layer's input has no gradient, so that nobody reads the weight's copy again.
  CHECK(names(net, find_operator(net, "linear_1.backward").reads) ==
        "linear_1.gradient linear_1.cast_input");
  CHECK(net.parameter_bytes == Bytes{4 * 40});
  // Kept: the copy of x; the copy of y and the targets, in fp32.
  CHECK(net.saved_bytes == Bytes{2 * 4 + 4 * 8 + 4 * 8});
}

TEST_CASE("fp16 gradients are divided by the scale of the loss, and bf16 ones need none") {
  const std::string text = network("[4]", "  - linear: 8\n", "mse");
  CHECK(find_operator(build_text(text, kHalf), "linear_1.unscale").traffic == Bytes{2 * 4 * 40});
  const Workload brain = build_text(text, {.optimizer = Optimizer::sgd, .autocast = DType::bf16});
  CHECK(brain.operators.size() == brain.optimizer_begin + std::size_t{1});
}

TEST_CASE("copies of trained parameters are cached, and shared by layers that tie") {
  const std::string layers =
      "  - linear: {features: 4, name: first}\n"
      "  - linear: {features: 4, tied: first, trained: none}\n"
      "  - linear: {features: 4, bias: false, trained: none}\n";
  const Workload net = build_text(network("[4]", layers, "sum"), kHalf);
  std::map<std::string, bool> copies;
  for (const Tensor& tensor : net.tensors)
    if (tensor.name.ends_with(".copy")) copies[tensor.name] = tensor.cached;
  CHECK(copies == std::map<std::string, bool>{{"first.weight.copy", true},
                                              {"first.bias.copy", true},
                                              {"linear_2.bias.copy", false},
                                              {"linear_3.weight.copy", false}});
  // Both products' gradients of the weight meet in 16 bits, and are cast once.
  CHECK(names(net, find_operator(net, "first.backward").reads) ==
        "first.gradient first.cast_input first.weight.copy.gradient");
  CHECK(names(net, find_operator(net, "first.backward_cast_weight").reads) ==
        "first.weight.copy.gradient");
}

TEST_CASE("additions make the widest of what they read, and gradients of each type") {
  const std::string layers =
      "  - layer_norm: {name: wide}\n  - linear: 4\n  - add: {skip: wide}\n"
      "  - relu: {in_place: false}\n";
  const Workload net = build_text(network("[4]", layers, "sum"), kHalf);
  CHECK(made_by(net, "add_1.forward") == Bytes{4 * 4});
  CHECK(find_operator(net, "add_1.forward").traffic == Bytes{4 * (2 + 4 + 4)});
  CHECK(made_by(net, "add_1.backward") == Bytes{2 * 4});  // the other gradient is handed on
  CHECK(made_by(net, "relu_1.backward") == Bytes{4 * 4});
}

TEST_CASE("softmax reads fp16 as it is, and has bf16 cast") {
  const std::string text = network("[4]", "  - linear: 4\n  - softmax\n", "sum");
  const auto forward = [&](DType dtype) { return order_of(build_text(text, {.autocast = dtype})); };
  CHECK_THAT(forward(DType::fp16), !Contains("softmax_1.forward_cast_input"));
  CHECK_THAT(forward(DType::bf16), Contains("softmax_1.forward_cast_input"));
  // 4 elements of 2 bytes read, and of 4 made.
  CHECK(find_operator(build_text(text, kHalf), "softmax_1.forward").traffic == Bytes{4 * (2 + 4)});
}

TEST_CASE("halves of a backward read and make copies, too") {
  WorkloadOptions split = kHalf;
  split.split_backward = true;
  const Workload net = build_text(
      network("[4]",
              "  - linear: {features: 4, bias: false}\n  - linear: {features: 2, bias: false}\n",
              "sum"),
      split);
  CHECK(names(net, find_operator(net, "linear_2.backward_input").reads) ==
        "linear_2.gradient linear_2.weight.copy");
  CHECK(names(net, find_operator(net, "linear_2.backward_weight").kept) ==
        "linear_2.weight.copy.gradient");
  CHECK(find_operator(net, "linear_2.backward_cast_weight").phase == Phase::backward_weight);
}

TEST_CASE("what has no layers, or a library's copies, takes no autocast") {
  const std::string chain =
      "workload: c\ninput: 1 B\nchain: [{name: s, forward: 1 s, backward: 1 s, saved: 2 B}]\n";
  CHECK_THAT(error_of(chain, {.autocast = DType::fp16}), Contains("takes no `autocast`"));
  CHECK_THAT(error_of(network("[4, 4]", "  - lstm: 8\n", "sum"), {.autocast = DType::bf16}),
             Contains("autocast: how a library copies its weights to bf16 is not known"));
}
