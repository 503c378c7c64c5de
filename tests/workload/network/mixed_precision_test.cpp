#include "workload/workload_text.hpp"

#include <map>

#include <catch2/catch.hpp>

using namespace plimsoll;

namespace {

/// Bytes by class of what the whole step holds: parameters, their gradients, the optimizer's.
std::map<TensorClass, std::int64_t> held(const Workload& workload) {
  std::map<TensorClass, std::int64_t> sums;
  for (const Tensor& tensor : workload.tensors)
    if (tensor.lifetime == Lifetime::resident || tensor.lifetime == Lifetime::accumulated)
      sums[tensor.tensor_class] += tensor.bytes.count();
  return sums;
}

Workload gpt2(const WorkloadOptions& options) {
  return build(read_workload(read_document(shipped("gpt2-small"))), options);
}

constexpr std::int64_t kParameters = 124'439'808;

}  // namespace

TEST_CASE("mixed precision with Adam holds 18 bytes a parameter") {
  // Korthikanti et al. 2022: 2 of the parameter, 4 of its gradient, 12 of the optimizer (a copy in
  // fp32 and two moments).
  for (const DType dtype : {DType::fp16, DType::bf16}) {
    const auto sums =
        held(gpt2({.dtype = dtype, .optimizer = Optimizer::adam, .master_weights = true}));
    CHECK(sums.at(TensorClass::parameter) == 2 * kParameters);
    CHECK(sums.at(TensorClass::gradient) == 4 * kParameters);
    CHECK(sums.at(TensorClass::optimizer_state) == 12 * kParameters);
  }
  const auto pure = held(gpt2({.dtype = DType::bf16, .optimizer = Optimizer::adam}));
  CHECK(pure.at(TensorClass::gradient) == 2 * kParameters);
  CHECK(pure.at(TensorClass::optimizer_state) == 8 * kParameters);
}

TEST_CASE("a gradient of 16 bits is made and added to the one of 32") {
  const std::string text = network("[4]", "  - linear: 8\n", "mse");
  const WorkloadOptions mixed{
      .dtype = DType::bf16, .optimizer = Optimizer::sgd_momentum, .master_weights = true};
  const Workload net = build_text(text, mixed);
  const Operator& backward = find_operator(net, "linear_1.backward");
  CHECK(backward.workspace == Bytes{2 * 40});
  CHECK(net[net.list(backward.kept)[0]].bytes == Bytes{4 * 32});
  const Operator& update = find_operator(net, "linear_1.update");
  CHECK(names(net, update.updates) ==
        "linear_1.weight linear_1.weight.master linear_1.weight.state_1 "
        "linear_1.bias linear_1.bias.master linear_1.bias.state_1");
  // 40 gradients read; parameters of 2 bytes, copies and momentum of 4 read and written; three
  // passes more.
  CHECK(update.traffic == Bytes{40 * (4 + 2 * (2 + 4 + 4) + 4 * 3)});
  const Operator pure =
      find_operator(build_text(text, {.dtype = DType::bf16}), "linear_1.backward");
  CHECK(pure.workspace == Bytes{});
  // Written in 16 bits, read by the cast, and written in 32.
  CHECK(backward.traffic == pure.traffic + Bytes{40 * (2 + 4)});
}

TEST_CASE("in fp16 all gradients are unscaled before the first update; bf16 has no scale") {
  const std::string text = network("[4]", "  - linear: 8\n  - relu\n  - linear: 2\n", "mse");
  const auto optimizer_of = [&](DType dtype) {
    const Workload net =
        build_text(text, {.dtype = dtype, .optimizer = Optimizer::sgd, .master_weights = true});
    std::string order;
    for (std::size_t i = net.optimizer_begin; i < net.operators.size(); ++i)
      order += net.operators[i].name + " ";
    return order;
  };
  CHECK(optimizer_of(DType::fp16) ==
        "linear_1.unscale linear_2.unscale linear_1.update linear_2.update ");
  CHECK(optimizer_of(DType::bf16) == "linear_1.update linear_2.update ");
  const Workload net =
      build_text(text, {.dtype = DType::fp16, .optimizer = Optimizer::sgd, .master_weights = true});
  const Operator& unscale = find_operator(net, "linear_1.unscale");
  CHECK(names(net, unscale.updates) == "linear_1.weight.gradient linear_1.bias.gradient");
  CHECK(unscale.traffic == Bytes{2 * 4 * 40});
}

TEST_CASE("a transformer in 16 bits keeps what Korthikanti et al. count") {
  // 34 sbh + 5 a s^2 b of one block with the causal mask shared (s^2); the statistics of the norms
  // (16 sb, fp32) and the scaling number (8) they leave out. Here a network of L blocks minus one
  // of L - 1.
  const auto saved = [](std::int64_t blocks) {
    return gpt2({.batch = 2, .dtype = DType::bf16, .with = {{{"blocks", {}}, blocks}}})
        .saved_bytes.count();
  };
  constexpr std::int64_t s = 1024, b = 2, h = 768, a = 12;
  CHECK(saved(3) - saved(2) == 34 * s * b * h + 5 * a * s * s * b + s * s + 16 * s * b + 8);
}

TEST_CASE("logits are cast to fp32 before the loss where that is asked for") {
  const std::string text = network("[4]", "  - linear: 8\n", "cross-entropy");
  const Located<DType> fp32{DType::fp32, {}};
  const Workload plain = build_text(text, {.batch = 2, .dtype = DType::bf16});
  const Workload cast = build_text(text, {.batch = 2, .dtype = DType::bf16, .loss_dtype = fp32});
  // Two samples of 8 logits: 2 bytes read and 4 written of each, and back for their gradients.
  const Operator& forward = find_operator(cast, "log_softmax.forward_cast_input");
  CHECK(forward.traffic == Bytes{16 * (2 + 4)});
  CHECK(find_operator(cast, "log_softmax.backward_cast_input").traffic == Bytes{16 * (4 + 2)});
  // Log-probabilities are kept in 4 bytes in the place of 2, and so is the sum of weights.
  CHECK(cast.saved_bytes - plain.saved_bytes == Bytes{16 * 2 + 2});
  // A fused loss keeps the copy of the logits instead of the logits.
  const auto fused = [&](std::optional<Located<DType>> type) {
    return build_text(text, {.batch = 2,
                             .dtype = DType::bf16,
                             .loss = Loss::fused_cross_entropy,
                             .loss_dtype = std::move(type)})
        .saved_bytes;
  };
  CHECK(fused(fp32) - fused(std::nullopt) == Bytes{16 * 2});
}

TEST_CASE("ranks that divide a vocabulary cast their part of the logits") {
  const std::string text =
      network("[4]", "  - linear: {features: 16, bias: false}\n", "cross-entropy");
  const auto kept = [&](bool casts) {
    WorkloadOptions options{.batch = 2, .dtype = DType::bf16, .tensor = TensorAxis{{}, 2, {}}};
    if (casts) options.loss_dtype = {DType::fp32, {}};
    return build_text(text, options).saved_bytes;
  };
  // Half of 16 logits of two samples, and the sum of weights.
  CHECK(kept(true) - kept(false) == Bytes{16 * 2 + 2});
}

TEST_CASE("an optimizer's state may be in 16 bits") {
  const Located<DType> bf16{DType::bf16, {}};
  const auto sums =
      held(gpt2({.dtype = DType::bf16, .optimizer = Optimizer::adamw, .state_dtype = bf16}));
  CHECK(sums.at(TensorClass::optimizer_state) == 4 * kParameters);
  const Workload net =
      build_text(network("[4]", "  - linear: 8\n", "mse"),
                 {.dtype = DType::bf16, .optimizer = Optimizer::adam, .state_dtype = bf16});
  const Operator& update = find_operator(net, "linear_1.update");
  // 40 elements: a gradient read, parameter and two moments read and written; 20 passes less these 7.
  CHECK(update.traffic == Bytes{40 * 2 * (7 + 20 - 7)});
  // A root and a quotient of the weight's 32.
  CHECK(update.workspace == Bytes{2 * 2 * 32});
}

TEST_CASE("types of losses and of state that make no sense are refused") {
  const std::string text = network("[4]", "  - linear: 8\n", "mse");
  const Located<DType> fp32{DType::fp32, {}}, bf16{DType::bf16, {}};
  const std::string graph = "workload: g\ngraph: [{name: a, time: 1 s}]\n";
  using Catch::Matchers::Contains;
  CHECK_THAT(error_of(text, {.loss_dtype = fp32}),
             Contains("`dtype` is fp32; expected bf16 or fp16"));
  CHECK_THAT(error_of(text, {.loss_dtype = fp32, .autocast = DType::bf16}),
             Contains("`loss_dtype` does not go with `autocast`"));
  CHECK_THAT(error_of(graph, {.loss_dtype = fp32}),
             Contains("only a network of layers takes `loss_dtype`"));
  CHECK_THAT(error_of(text, {.optimizer = Optimizer::adam, .state_dtype = bf16}),
             Contains("`dtype` is fp32, expected bf16, or no `state_dtype`"));
  CHECK_THAT(error_of(text, {.dtype = DType::bf16,
                             .optimizer = Optimizer::adam,
                             .state_dtype = bf16,
                             .master_weights = true}),
             Contains("`state_dtype` does not go with `master_weights`"));
  CHECK_THAT(
      error_of(text, {.dtype = DType::bf16, .optimizer = Optimizer::sgd, .state_dtype = bf16}),
      Contains("expected an optimizer that keeps them as they are, such as `adamw`"));
  CHECK_THAT(error_of(graph, {.optimizer = Optimizer::adam, .state_dtype = bf16}),
             Contains("only a network of layers takes `state_dtype`"));
}
