// Widths of elements: what values, parameters, gradients and state take, and what computes in int8.
#include "support/played.hpp"
#include "workload/cost/cost_model.hpp"
#include "workload/workload_text.hpp"

#include <catch2/catch.hpp>

using namespace plimsoll;
using Catch::Matchers::Contains;

namespace {

const std::string kDense =
    "  - linear: 8\n  - relu\n  - linear: {features: 16, name: middle%}\n  - relu\n  - linear: 2\n";

std::string dense(const std::string& more) {
  std::string layers = kDense;
  layers.replace(layers.find('%'), 1, more);
  return network("[4]", layers, "mse");
}

constexpr std::int64_t kParameters = 4 * 8 + 8 + 8 * 16 + 16 + 16 * 2 + 2;

WorkloadOptions with_bits(const ElementBits& bits, Optimizer optimizer) {
  return {.batch = 3, .optimizer = optimizer, .bits = Located<ElementBits>{bits, {"s.yaml", 3, 9}}};
}

std::int64_t bytes_that_stay(const Workload& net, TensorClass wanted) {
  std::int64_t sum = 0;
  for (const Tensor& tensor : net.tensors)
    if (tensor.tensor_class == wanted && tensor.lifetime != Lifetime::step)
      sum += tensor.bytes.count();
  return sum;
}

Bytes bytes_of_tensor(const Workload& net, const std::string& name) {
  for (const Tensor& tensor : net.tensors)
    if (tensor.name == name) return tensor.bytes;
  throw std::out_of_range("no tensor " + name);
}

}  // namespace

TEST_CASE("in 8 bits everything takes a quarter, but for the optimizer's state") {
  for (const auto& [optimizer, state] :
       {std::pair{Optimizer::sgd, 0}, {Optimizer::sgd_momentum, 4}, {Optimizer::adam, 8}}) {
    const Workload net = build_text(dense(""), with_bits({8, 8, 8}, optimizer));
    // Both ReLUs' outputs, and what the loss keeps: its input and the target.
    CHECK(net.saved_bytes == Bytes{3 * (8 + 16 + 2 + 2)});
    CHECK(bytes_of_tensor(net, "input") == Bytes{3 * 4});
    CHECK(bytes_that_stay(net, TensorClass::parameter) == kParameters);
    CHECK(bytes_that_stay(net, TensorClass::gradient) == kParameters);
    CHECK(bytes_that_stay(net, TensorClass::optimizer_state) == state * kParameters);
    CHECK(net.parameters == kParameters);
    // State is fp32, and so is the arithmetic of what changes it.
    for (const Operator& op : net.operators) {
      CAPTURE(op.name);
      const bool is_fp32 = op.phase == Phase::optimizer && state > 0;
      CHECK((op.dtype == DType::int8) != is_fp32);
    }
  }
}

TEST_CASE("an update in 8 bits is one kernel in place") {
  const Workload net = build_text(dense(""), with_bits({8, 8, 8}, Optimizer::sgd));
  const Operator& update = find_operator(net, "middle.update");
  // 128 weights and 16 biases: gradients and parameters are read, parameters written.
  CHECK(update.traffic == Bytes{3 * (128 + 16)});
  CHECK(update.launches == 1);
  CHECK(update.workspace == Bytes{});
}

TEST_CASE("a layer has widths of its own") {
  const std::string own = ", bits: {activations: 4, weights: 2, gradients: 6}";
  const Workload net = build_text(dense(own), {.batch = 3, .optimizer = Optimizer::sgd});
  // 48 values of 4 bits, weights of 2 bits, gradients of 6 bits.
  CHECK(bytes_of_tensor(net, "middle") == Bytes{3 * 16 * 4 / 8});
  CHECK(bytes_of_tensor(net, "middle.weight") == Bytes{8 * 16 * 2 / 8});
  CHECK(bytes_of_tensor(net, "middle.bias") == Bytes{16 * 2 / 8});
  CHECK(bytes_of_tensor(net, "middle.weight.gradient") == Bytes{8 * 16 * 6 / 8});
  CHECK(bytes_of_tensor(net, "middle.gradient") == Bytes{3 * 16 * 6 / 8});
  CHECK(bytes_of_tensor(net, "linear_1.weight") == Bytes{4 * 8 * 4});
  // The ReLU behind it makes fp32, so that it cannot work in its bytes.
  CHECK(bytes_of_tensor(net, "relu_2") == Bytes{3 * 16 * 4});
  CHECK(net.saved_bytes == Bytes{3 * 4 * (8 + 16 + 2 + 2)});
  CHECK(find_operator(net, "middle.forward").dtype == DType::int8);
  CHECK(find_operator(net, "middle.backward").dtype == DType::int8);
  CHECK_FALSE(find_operator(net, "linear_1.forward").dtype);
  CHECK_FALSE(find_operator(net, "relu_2.forward").dtype);
}

TEST_CASE("what a layer does not say its block or the scenario does") {
  const std::string nested =
      "workload: net\ninput: [4]\nloss: none\nblocks:\n  inner:\n    layers:\n"
      "      - linear: {features: 5, bits: {activations: 3}}\n      - sigmoid\n"
      "layers:\n  - linear: 8\n  - inner: {bits: {activations: 16, gradients: 16}}\n";
  const Workload net = build_text(nested, with_bits({8, 8, {}}, Optimizer::none));
  CHECK(bytes_of_tensor(net, "linear_1") == Bytes{3 * 8});
  // 15 values of 3 bits are 45 bits, in 6 B.
  CHECK(bytes_of_tensor(net, "inner_1/linear_1") == Bytes{6});
  CHECK(bytes_of_tensor(net, "inner_1/linear_1.weight") == Bytes{8 * 5});
  CHECK(bytes_of_tensor(net, "inner_1/sigmoid_1") == Bytes{3 * 5 * 2});
  CHECK(bytes_of_tensor(net, "inner_1/linear_1.weight.gradient") == Bytes{8 * 5 * 2});
  CHECK(bytes_of_tensor(net, "linear_1.weight.gradient") == Bytes{4 * 8 * 4});
  // Gradients in fp32 make its backward one of fp32.
  CHECK(find_operator(net, "linear_1.forward").dtype == DType::int8);
  CHECK_FALSE(find_operator(net, "linear_1.backward").dtype);
}

TEST_CASE("a processor of 8-bit integers trains what is in 8 bits, and says why nothing else") {
  const Platform board = test::platform_of(
      "platform: b\nmemories: {sram: {capacity: 1 MiB}}\nprocessors: {cpu: {memory: sram, compute: "
      "{int8: 1 MFLOP/s}}}\n");
  const Workload narrow = build_text(dense(""), with_bits({8, 8, 8}, Optimizer::sgd));
  Time sum;
  for (const Time time : durations(narrow, board, ProcessorId{0})) sum += time;
  CHECK(sum > Time{});
  CHECK_THROWS_WITH(
      durations(build_text(dense(""), {}), board, ProcessorId{0}),
      Contains("states no peak rate for fp32, which operator `linear_1.forward` needs; it states "
               "int8, in which operators compute whose `bits` are 8 or fewer"));
  // Adam's state is in fp32.
  CHECK_THROWS_WITH(durations(build_text(dense(""), with_bits({8, 8, 8}, Optimizer::adam)), board,
                              ProcessorId{0}),
                    Contains("which operator `linear_1.update` needs"));
}

TEST_CASE("widths that make no sense are refused") {
  CHECK_THAT(error_of(dense(", bits: {weights: 33}")), Contains("from 1 to 32"));
  CHECK_THAT(error_of(dense(", bits: {weights: 0}")), Contains("from 1 to 32"));
  CHECK_THAT(error_of(dense(", bits: {weight: 8}")), Contains("did you mean `weights`?"));
  WorkloadOptions options = with_bits({8, 8, 8}, Optimizer::sgd);
  options.autocast = DType::fp16;
  CHECK_THAT(error_of(dense(""), options),
             Contains("s.yaml:3:9") && Contains("`bits` do not go with `autocast`"));
  CHECK_THAT(
      error_of(dense(", bits: {weights: 8}"), {.dtype = DType::fp16, .master_weights = true}),
      Contains("`bits` do not go with `master_weights`"));
  CHECK_THAT(error_of("workload: g\ngraph: [{name: a, time: 1 s}]\n",
                      with_bits({8, 8, 8}, Optimizer::none)),
             Contains("only a network of layers takes `bits`"));
  CHECK_THAT(error_of(network("[4]",
                              "  - linear: {features: 8, bits: {activations: 8}}\n"
                              "  - relu: {in_place: 1}\n")),
             Contains("`linear_1` has elements of another width"));
}
