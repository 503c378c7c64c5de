#include "workload/network/trained_layers.hpp"

#include "workload/network/kept_tensors.hpp"
#include "workload/workload_text.hpp"

#include <random>
#include <set>

#include <catch2/catch.hpp>

using namespace plimsoll;
using Catch::Matchers::Contains;

namespace {

constexpr Trained kBias{Trained::What::bias, kWhole};
constexpr Trained kFrozen{Trained::What::none, kWhole};
constexpr Trained kQuarter{Trained::What::all, Ratio{250'000'000}};

std::string backwards(const Workload& net) {
  std::string text;
  for (std::size_t i = net.forwards; i < net.optimizer_begin; ++i)
    text += net.operators[i].name + " ";
  return text;
}

std::int64_t bytes_of_class(const Workload& net, TensorClass wanted) {
  std::int64_t sum = 0;
  for (const Tensor& tensor : net.tensors)
    if (tensor.tensor_class == wanted && tensor.lifetime != Lifetime::step)
      sum += tensor.bytes.count();
  return sum;
}

const std::string kThree =
    network("[4]",
            "  - linear: 8\n  - relu\n  - linear: {features: 16, name: middle}\n  - relu\n"
            "  - linear: 2\n",
            "mse");

}  // namespace

TEST_CASE("a frozen layer has neither gradient nor state, and its input is not kept") {
  const std::string frozen =
      network("[4]",
              "  - linear: 8\n  - relu\n  - linear: {features: 16, trained: none}\n  - sigmoid\n"
              "  - linear: 2\n",
              "mse");
  const Workload net = build_text(frozen, {.batch = 3, .optimizer = Optimizer::adam});
  const Operator& backward = find_operator(net, "linear_2.backward");
  CHECK(names(net, backward.kept) == "linear_1.gradient");
  CHECK(names(net, backward.reads) == "linear_2.gradient linear_2.weight linear_2.bias");
  CHECK(backward.flops == Flops{2 * 3 * 8 * 16});  // one product of two
  for (const Operator& op : net.operators) CHECK(op.name != "linear_2.update");
  CHECK(net.parameters == 4 * 8 + 8 + 8 * 16 + 16 + 16 * 2 + 2);
  constexpr std::int64_t trained = 4 * 8 + 8 + 16 * 2 + 2;
  CHECK(bytes_of_class(net, TensorClass::gradient) == 4 * trained);
  CHECK(bytes_of_class(net, TensorClass::optimizer_state) == 8 * trained);
  // The ReLU's output for its own backward; the sigmoid's, which the last layer reads, too; the
  // loss.
  CHECK(net.saved_bytes == Bytes{3 * 4 * (8 + 16 + 2 + 2)});
}

TEST_CASE("nothing is kept, and nothing runs backward, before the first layer that is trained") {
  const WorkloadOptions from_middle{
      .batch = 3, .trained_from = Located<std::string>{"middle", {"s.yaml", 4, 2}}};
  const Workload net = build_text(kThree, from_middle);
  CHECK(backwards(net) == "mse_loss.backward linear_3.backward relu_2.backward middle.backward ");
  // The first ReLU's output for the weight of the middle layer, not for its own gradient.
  CHECK(names(net, find_operator(net, "middle.backward").reads) ==
        "middle.gradient linear_1 middle.weight middle.bias");
  CHECK(names(net, find_operator(net, "middle.backward").kept) ==
        "middle.weight.gradient middle.bias.gradient");
  CHECK(net.saved_bytes == Bytes{3 * 4 * (8 + 16 + 2 + 2)});
  CHECK_THAT(error_of(kThree, {.trained_from = Located<std::string>{"midle", {"s.yaml", 4, 2}}}),
             Contains("s.yaml:4:2") && Contains("no layer is named `midle`") &&
                 Contains("did you mean `middle`?"));
  // With everything frozen there is no backward, and no optimizer.
  const Workload none = build_text(kThree, {.optimizer = Optimizer::adam, .trained = kFrozen});
  CHECK(none.operators.size() == none.forwards);
  CHECK(none.saved_bytes == Bytes{});
}

TEST_CASE("biases alone need no inputs") {
  const Workload net =
      build_text(kThree, {.batch = 3, .optimizer = Optimizer::sgd, .trained = kBias});
  CHECK(backwards(net) ==
        "mse_loss.backward linear_3.backward relu_2.backward middle.backward relu_1.backward "
        "linear_1.backward ");
  CHECK(names(net, find_operator(net, "middle.backward").kept) ==
        "linear_1.gradient middle.bias.gradient");
  CHECK(find_operator(net, "linear_1.backward").flops == Flops{});
  // The two ReLUs keep their outputs, the loss its input and target.
  CHECK(net.saved_bytes == Bytes{3 * 4 * (8 + 16 + 2 + 2)});
  // With GELU, which keeps its input, the gain is half: the dense layers would keep its output.
  const std::string gelu = network("[4]", "  - linear: 8\n  - gelu\n  - linear: 2\n", "sum");
  CHECK(build_text(gelu).saved_bytes == Bytes{2 * 4 * 8});
  CHECK(build_text(gelu, {.trained = kBias}).saved_bytes == Bytes{4 * 8});
  // A norm needs its input for the gradient of its own, whatever of it is trained.
  const std::string image = "[2, 8, 8]";
  const std::string conv = "  - conv2d: {channels: 2, kernel: 3, padding: 1}\n";
  CHECK(build_text(network(image, conv + conv), {.trained = kBias}).saved_bytes == Bytes{});
  CHECK(build_text(network(image, conv + "  - batch_norm\n"), {.trained = kBias}).saved_bytes ==
        Bytes{2 * 8 * 8 * 4 + 2 * 2 * 4});
}

TEST_CASE("a share of the output channels has that share of gradient, state and product") {
  const std::string text =
      network("[4]", "  - linear: 8\n  - relu\n  - linear: {features: 10, trained: 25 %}\n", "mse");
  const Workload net = build_text(text, {.batch = 3, .optimizer = Optimizer::sgd_momentum});
  // A quarter of 10 rows of 8, rounded up to 3; the biases whole.
  const Operator& backward = find_operator(net, "linear_2.backward");
  const auto made = net.list(backward.kept);
  CHECK(net[made[1]].bytes == Bytes{4 * 3 * 8});
  CHECK(net[made[2]].bytes == Bytes{4 * 10});
  CHECK(backward.flops == Flops{2 * 3 * 8 * 10 + 2 * 3 * 8 * 3});
  const Operator& update = find_operator(net, "linear_2.update");
  CHECK(net[net.list(update.updates)[1]].bytes == Bytes{4 * 3 * 8});
  // Of the parameter, too, only the trained rows move: eight passes.
  CHECK(update.traffic == Bytes{4 * (24 + 10) * 8});
  CHECK(net.saved_bytes ==
        build_text(network("[4]", "  - linear: 8\n  - relu\n  - linear: 10\n", "mse"), {.batch = 3})
            .saved_bytes);
  // As a default, 3 x 3 windows of 2 channels: 1 of 4 output channels.
  const Workload conv =
      build_text(network("[2, 8, 8]", "  - conv2d: {channels: 4, kernel: 3, bias: false}\n"),
                 {.trained = kQuarter});
  CHECK(bytes_of_class(conv, TensorClass::gradient) == 4 * 2 * 9);
}

TEST_CASE("a block says it for the layers that do not, and a layer for itself") {
  const std::string text =
      "workload: w\ninput: [4]\nloss: sum\nblocks:\n"
      "  pair: {layers: [linear: 4, linear: {features: 4, trained: bias}]}\nlayers:\n"
      "  - pair: {trained: none}\n  - pair\n";
  const Workload net = build_text(text, {.optimizer = Optimizer::sgd});
  std::string updated;
  for (const Tensor& tensor : net.tensors)
    if (tensor.lifetime == Lifetime::accumulated) updated += tensor.name + " ";
  CHECK(updated ==
        "pair_1/linear_2.bias.gradient pair_2/linear_1.weight.gradient "
        "pair_2/linear_1.bias.gradient pair_2/linear_2.bias.gradient ");
  const Workload from = build_text(text, {.trained_from = Located<std::string>{"pair_2", {}}});
  CHECK(backwards(from) == "sum_loss.backward pair_2/linear_2.backward pair_2/linear_1.backward ");
  CHECK_THAT(error_of(network("[4]", "  - linear: {features: 4, trained: some}\n")),
             Contains("test.yaml:5:36") &&
                 Contains("expected `all`, `bias`, `none`, or the share") && Contains("`some`"));
  CHECK_FALSE(error_of(network("[4]", "  - linear: {features: 4, trained: 0 %}\n")).empty());
}

TEST_CASE("products keep an operand only for the gradient of the other") {
  // The first factor is frozen, so that the second one need not stay.
  const std::string text = network("[4]",
                                   "  - linear: {features: 4, name: a, trained: none}\n"
                                   "  - linear: {from: input, features: 4, name: b}\n"
                                   "  - multiply: {by: a}\n",
                                   "sum");
  const Workload net = build_text(text);
  CHECK(names(net, find_operator(net, "multiply_1.backward").reads) == "multiply_1.gradient a");
  CHECK(net.saved_bytes == Bytes{4 * 4});
}

TEST_CASE("random networks: gradients of what is trained and of nothing else") {
  std::mt19937_64 random(99);
  const char* trained[] = {"all", "bias", "none", "50 %"};
  for (int round = 0; round < 300; ++round) {
    std::string layers;
    const std::uint64_t count = 1 + random() % 8;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::string said = std::string(", trained: ") + trained[random() % 4] + "}\n";
      layers += "  - linear: {features: 6" + said;
      if (random() % 2 == 0) layers += "  - gelu\n";
      if (random() % 3 == 0) layers += "  - dropout\n";
      if (random() % 3 == 0)
        layers += std::string("  - layer_norm: {trained: ") + trained[random() % 3] + "}\n";
    }
    const std::string text = network("[6]", layers, "mse");
    CAPTURE(text);
    const Workload net = build_text(text, {.batch = 2, .optimizer = Optimizer::adam});
    std::set<TensorId> made, updated;
    for (const Operator& op : net.operators) {
      for (const TensorId id : net.list(op.kept)) made.insert(id);
      if (op.phase == Phase::optimizer)
        for (const TensorId id : net.list(op.reads)) updated.insert(id);
    }
    for (std::uint32_t t = 0; t < net.tensors.size(); ++t)
      if (net.tensors[t].lifetime == Lifetime::accumulated) {
        REQUIRE(made.contains(TensorId{t}));
        REQUIRE(updated.contains(TensorId{t}));
      }
    // What is kept, tensor by tensor, is what the step counts, and never more than with all
    // trained.
    std::int64_t sum = 0;
    const WorkloadSource source = read_workload(parse_document(text, "test.yaml"));
    for (const KeptTensor& kept : kept_tensors(expand(std::get<LayersSpec>(source), {.batch = 2})))
      if (!kept.is_shared && !kept.is_input) sum += kept.storage_bytes.count();
    REQUIRE(sum == net.saved_bytes.count());
  }
}

// Three samples of 4 -> 8 -> 16 -> 2 features: 96, 384 and 96 multiply-adds. By convention the gradient
// of the input counts where a first layer is trained.
TEST_CASE("gradients that frozen weights save") {
  const auto frozen = [](const WorkloadOptions& options) {
    const Workload net = build_text(kThree, options);
    CHECK(net.macs == 96 + 384 + 96);
    return net.frozen_macs;
  };
  CHECK(frozen({.batch = 3}) == 0);
  // All but the forward: 2 of 6 FLOPs.
  CHECK(frozen({.batch = 3, .trained = kFrozen}) == 2 * (96 + 384 + 96));
  // Every weight; gradients pass on to the first bias.
  CHECK(frozen({.batch = 3, .trained = kBias}) == 96 + 384 + 96);
  // 6 of 8, 12 of 16 and 1 of 2 rows.
  CHECK(frozen({.batch = 3, .trained = kQuarter}) == 72 + 288 + 48);
  // Both of the first layer, and that of the input of the second.
  WorkloadOptions later{.batch = 3};
  later.trained_from = {"middle", {"s.yaml", 3, 9}};
  CHECK(frozen(later) == 2 * 96 + 384);
}

TEST_CASE("low-rank adapters are trained beside frozen linear layers") {
  const std::string layers =
      "  - linear: {features: 8, name: query}\n  - layer_norm\n  - linear: {features: 10, name: "
      "out}\n";
  const auto adapted = [&](std::vector<std::string> of, std::int64_t rank = 2) {
    LowRank lora{{rank, {"s.yaml", 3, 9}}, {}};
    for (std::string& name : of) lora.of.push_back({std::move(name), {"s.yaml", 3, 20}});
    return WorkloadOptions{.batch = 3, .optimizer = Optimizer::adam, .lora = std::move(lora)};
  };
  const auto bytes_of = [](const Workload& net, TensorClass wanted) {
    std::int64_t sum = 0;
    for (const Tensor& tensor : net.tensors)
      if (tensor.tensor_class == wanted && tensor.lifetime != Lifetime::step)
        sum += tensor.bytes.count();
    return sum;
  };
  constexpr std::int64_t rows = 3 * 6, base = 8 * 8 + 8 + 2 * 8 + 10 * 8 + 10;
  // To rank 2 and back of both: 2 (8 + 8) and 2 (8 + 10) numbers, with a gradient and two moments.
  const Workload both = build_text(network("[6, 8]", layers), adapted({"query", "*ut"}));
  constexpr std::int64_t trained = 2 * (8 + 8) + 2 * (8 + 10);
  CHECK(both.parameters == base + trained);
  // Both gradients of `query`, which reads the network's input, and that of the weight of `out`.
  CHECK(both.macs == rows * (8 * 8 + 2 * (8 + 8) + 8 * 10 + 2 * (8 + 10)));
  CHECK(both.frozen_macs == rows * (2 * 8 * 8 + 8 * 10));
  CHECK(bytes_of(both, TensorClass::gradient) == 4 * trained);
  CHECK(bytes_of(both, TensorClass::optimizer_state) == 2 * 4 * trained);
  // Of each A x, and the number. The norm keeps x and two numbers a row; what it made is x of the
  // second.
  CHECK(both.saved_bytes.count() == 2 * (rows * 2 * 4 + 8) + 2 * rows * 8 * 4 + rows * 8);
  // Nothing before the second is trained: the norm keeps nothing.
  const Workload one = build_text(network("[6, 8]", layers), adapted({"out"}));
  CHECK(one.saved_bytes.count() == rows * 2 * 4 + 8 + rows * 8 * 4);
  CHECK_THAT(error_of(network("[6, 8]", layers), adapted({"keys"})),
             Contains("s.yaml:3:20") && Contains("no linear layer is named `keys`"));
  CHECK_THAT(error_of(network("[6, 8]", layers), adapted({"out"}, 9)),
             Contains("s.yaml:3:9") && Contains("rank 9 exceeds the 8 features of `out`"));
}
