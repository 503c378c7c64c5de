#include "workload/operators/optimizer_rules.hpp"

#include "workload/operators/muon.hpp"
#include "workload/workload_text.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

using namespace plimsoll;
using Catch::Matchers::Contains;

namespace {

std::int64_t state_of(Optimizer optimizer, const Dims& parameter) {
  std::int64_t sum = 0;
  for (const auto& [name, bytes] : optimizer_state(optimizer, parameter)) sum += bytes.count();
  return sum;
}

/// Bytes of a class that are there throughout.
std::int64_t resident(const Workload& workload, TensorClass wanted) {
  std::int64_t sum = 0;
  for (const Tensor& tensor : workload.tensors)
    if (tensor.tensor_class == wanted && tensor.lifetime == Lifetime::resident)
      sum += tensor.bytes.count();
  return sum;
}

}  // namespace

TEST_CASE("optimizers keep moments in fp32, in 8 bits or factored") {
  const Dims matrix = {300, 70};  // 21,000 elements
  CHECK(state_of(Optimizer::sgd, matrix) == 0);
  CHECK(state_of(Optimizer::sgd_momentum, matrix) == 4 * 21'000);
  CHECK(state_of(Optimizer::adam, matrix) == 2 * 4 * 21'000);
  CHECK(state_of(Optimizer::lion, matrix) == 4 * 21'000);
  CHECK(state_of(Optimizer::adamw, matrix) == 2 * 4 * 21'000);
  // Ten blocks of 2,048 and one of 520: a magnitude of 4 bytes each, for each moment.
  CHECK(state_of(Optimizer::adam_8bit, matrix) == 2 * (21'000 + 4 * 11));
  CHECK(state_of(Optimizer::adamw_8bit, {2, 2048}) == 2 * (4096 + 4 * 2));
  // Of less than 4,096 elements the moments stay in fp32.
  CHECK(state_of(Optimizer::adamw_8bit, {4095}) == 2 * 4 * 4095);
  // A mean of each of 300 rows and 70 columns; of 6 x 5 x 3 rows and 6 x 5 x 3 columns of windows
  // of 3 x 3; of a vector all.
  CHECK(state_of(Optimizer::adafactor, matrix) == 4 * (300 + 70));
  CHECK(state_of(Optimizer::adafactor, {6, 5, 3, 3}) == 4 * (6 * 5 * 3 + 6 * 5 * 3));
  CHECK(state_of(Optimizer::adafactor, {70}) == 4 * 70);
}

TEST_CASE("a step of a network has the state of each of its parameters") {
  const auto state = [](const char* name, Optimizer optimizer) {
    const Workload step =
        build(read_workload(read_document(shipped(name))), {.optimizer = optimizer});
    return resident(step, TensorClass::optimizer_state);
  };
  constexpr std::int64_t parameters = 138'357'544;
  CHECK(state("vgg16", Optimizer::adam) == 8 * parameters);
  // VGG-16, 8 bits: tensors below 4,096 elements are the first convolution's 1,728 weights and the
  // biases but for those of the two large dense layers, 4,096 each: 4,224 of the convolutions,
  // 1,000.
  constexpr std::int64_t small = 1728 + 4224 + 1000;
  // Blocks: 3 x 3 convolutions in units of 9 * 64 * 64 elements = 18 blocks; the dense layers
  // 25,088 x 4,096, 4,096 x 4,096 and 4,096 x 1,000 elements, and their two biases of 2 blocks.
  constexpr std::int64_t blocks = 18 * (1 + 2 + 4 + 8 + 16 + 16 + 32 + 64 + 64 + 64 + 64 + 64) +
                                  25'088 * 2 + 4096 * 2 + 2000 + 2 * 2;
  CHECK(state("vgg16", Optimizer::adamw_8bit) ==
        8 * small + 2 * (parameters - small) + 2 * 4 * blocks);
  // GPT-2 small, factored. A block: dense layers h to 3h, h to h, h to 4h, 4h to h with means of
  // rows and columns, 13 h - 4 h = 9 h biases and 4 h norms; embeddings; final norm.
  constexpr std::int64_t h = 768;
  CHECK(state("gpt2-small", Optimizer::adafactor) ==
        4 * (12 * ((4 + 2 + 5 + 5) * h + 9 * h + 4 * h) + (50'257 + h) + (1024 + h) + 2 * h));
}

TEST_CASE("temporaries are those of one tensor after the other") {
  CHECK(optimizer_temporaries(Optimizer::sgd_momentum, Elements{10}) == Bytes{});
  CHECK(optimizer_temporaries(Optimizer::adamw, Elements{10}) == Bytes{80});
  CHECK(optimizer_temporaries(Optimizer::adafactor, Elements{10}) == Bytes{80});
  CHECK(optimizer_temporaries(Optimizer::adamw_8bit, Elements{10}) == Bytes{});
  const std::string text = network("[4]", "  - linear: 8\n", "mse");
  const Workload workload = build_text(text, {.optimizer = Optimizer::adafactor});
  const Operator& update = find_operator(workload, "linear_1.update");
  // 32 weights, 8 biases. Reads gradients and parameters, writes these; both ways 8 rows and 4
  // columns, and the 8 second moments of the biases; 18 passes more over all elements.
  CHECK(update.traffic == Bytes{4 * (40 * 3 + 2 * (8 + 4 + 8) + 18 * 40)});
  CHECK(update.workspace == Bytes{2 * 4 * 32});
}

TEST_CASE("an update passes over its elements as often as PyTorch's operators do, or once") {
  const auto update = [](Optimizer optimizer, bool fused) {
    const std::string text = network("[4]", "  - linear: {features: 8, bias: false}\n", "mse");
    WorkloadOptions options{.optimizer = optimizer};
    if (fused) options.fuses_optimizer = Location{"s.yaml", 3, 1};
    return find_operator(build_text(text, options), "linear_1.update");
  };
  constexpr Bytes element{4 * 32};
  // p.add_(g); b.mul_().add_(g), p.add_(b); m.mul_().add_(g), v.mul_().addcmul_(g, g), v.sqrt() /
  // c, .add_(eps), p.addcdiv_(m, d); p.mul_() besides.
  CHECK(update(Optimizer::sgd, false).traffic == element * 3);
  CHECK(update(Optimizer::sgd_momentum, false).traffic == element * (2 + 3 + 3));
  CHECK(update(Optimizer::adam, false).traffic == element * (2 + 3 + 2 + 3 + 2 + 2 + 2 + 4));
  CHECK(update(Optimizer::adamw, false).traffic == element * (2 + 20));
  // m.mul_().add_(g), v.mul_().addcmul_(g, g), v.sqrt().add_(eps), p.addcdiv_(m, d).
  CHECK(update(Optimizer::adamw_hf, false).traffic == element * (2 + 3 + 2 + 3 + 2 + 2 + 4));
  CHECK(update(Optimizer::adamw_hf, false).workspace == element);
  // v.mul_().addcmul_(g, g), v.add(eps).sqrt_(), u.add(eps).sqrt_().div_(d).mul_(g),
  // u.mul_().addcmul_(x, x), p.add_(x).
  CHECK(update(Optimizer::adadelta, false).traffic ==
        element * (2 + 3 + 2 + 2 + 2 + 2 + 3 + 3 + 2 + 3 + 3));
  // norm(g), g.mul_(); m.mul_().add_(g), v.mul_().addcmul_(g, g), v.sqrt() + eps, m / d, w * p,
  // u += it, l * u, -u, p.add_(it).
  CHECK(update(Optimizer::bert_adam, false).traffic ==
        element * (1 + 2 + 2 + 3 + 2 + 3 + 2 + 2 + 3 + 2 + 3 + 2 + 2 + 3));
  CHECK(update(Optimizer::bert_adam, false).workspace == element * 3);
  // Fused, gradient, parameter and moments are read, and all but the gradient written.
  CHECK(update(Optimizer::sgd_momentum, true).traffic == element * 5);
  CHECK(update(Optimizer::adamw, true).traffic == element * 7);
  CHECK(update(Optimizer::adamw, true).workspace == Bytes{});
  CHECK(update(Optimizer::adamw, false).workspace == element * 2);
  CHECK(update(Optimizer::adam_8bit, true).traffic == update(Optimizer::adam_8bit, false).traffic);
}

TEST_CASE("an update is as many kernels as PyTorch's operators, or one") {
  // Counted by a TorchDispatchMode around torch.optim of PyTorch 1.13.1, without the count of
  // steps.
  CHECK(update_kernels(Optimizer::sgd, {8}) == 1);
  CHECK(update_kernels(Optimizer::sgd_momentum, {8}) == 3);
  CHECK(update_kernels(Optimizer::adam, {8}) == 8);
  CHECK(update_kernels(Optimizer::adamw, {8}) == 9);
  CHECK(update_kernels(Optimizer::adadelta, {8}) == 11);
  CHECK(update_kernels(Optimizer::adamw_8bit, {8}) == 1);
  const auto launches = [](const WorkloadOptions& options) {
    const std::string text = network("[4]", "  - linear: 8\n", "mse");
    return find_operator(build_text(text, options), "linear_1.update").launches;
  };
  // A weight and a bias.
  CHECK(launches({.optimizer = Optimizer::adamw}) == 2 * 9);
  CHECK(launches({.optimizer = Optimizer::adafactor}) == 24 + 16);
  CHECK(launches({.optimizer = Optimizer::adamw, .fuses_optimizer = Location{"s.yaml", 3, 1}}) ==
        1);
}

TEST_CASE("gradients are clipped after the last of them, before the first update") {
  const std::string text =
      network("[4]", "  - linear: 8\n  - linear: {features: 2, bias: false}\n", "mse");
  const Workload step = build_text(text, {.dtype = DType::fp16,
                                          .optimizer = Optimizer::sgd,
                                          .master_weights = true,
                                          .clips_gradients = Location{"s.yaml", 3, 1}});
  std::vector<std::string> names;
  for (std::size_t i = step.optimizer_begin; i < step.operators.size(); ++i)
    names.push_back(step.operators[i].name);
  CHECK(names == std::vector<std::string>{"linear_1.unscale", "linear_2.unscale", "linear_1.norm",
                                          "linear_2.norm", "linear_1.clip", "linear_2.clip",
                                          "linear_1.update", "linear_2.update"});
  // 32 weights and 8 biases, gradients of 4 bytes: read for the norm, read and written to be
  // scaled.
  const Operator& norm = find_operator(step, "linear_1.norm");
  const Operator& clip = find_operator(step, "linear_1.clip");
  CHECK(norm.traffic == Bytes{4 * 40});
  CHECK(clip.traffic == Bytes{2 * 4 * 40});
  CHECK(norm.flops == Flops{80});
  CHECK(step.list(norm.updates).empty());
  CHECK(step.list(clip.updates).size() == 2);
  CHECK(norm.launches == 2);
  const Workload fused = build_text(text, {.optimizer = Optimizer::adam,
                                           .fuses_optimizer = Location{"s.yaml", 3, 1},
                                           .clips_gradients = Location{"s.yaml", 3, 1}});
  CHECK(find_operator(fused, "linear_1.clip").launches == 1);
  CHECK_THAT(error_of(text, {.clips_gradients = Location{"s.yaml", 3, 1}}),
             Contains("s.yaml:3:1") && Contains("expected an `optimizer`"));
  CHECK_THAT(error_of(text, {.fuses_optimizer = Location{"s.yaml", 3, 1}}),
             Contains("s.yaml:3:1") && Contains("expected an `optimizer`"));
}

TEST_CASE("what has no shapes takes no optimizer whose state follows from them") {
  const std::string chain =
      "workload: c\ninput: 1 B\nchain: [{name: s, forward: 1 s, backward: 1 s, saved: 2 B, "
      "parameters: 8 B}]\n";
  for (const Optimizer optimizer :
       {Optimizer::adam_8bit, Optimizer::adamw_8bit, Optimizer::adafactor})
    CHECK_THAT(error_of(chain, {.optimizer = optimizer}),
               Contains("test.yaml:1:1") &&
                   Contains("the shapes of parameters, which a chain does not give"));
  CHECK_THAT(error_of(chain + "optimizer: adafactor\n"), Contains("which a chain does not give"));
  CHECK(error_of(chain, {.optimizer = Optimizer::adamw}).empty());
  CHECK_THAT(error_of(chain, {.trained = Trained{Trained::What::bias, kWhole}}),
             Contains("a chain takes no `trained`"));
  CHECK_THAT(error_of(chain, {.master_weights = true}), Contains("takes no `master_weights`"));
  CHECK_THAT(error_of(chain, {.fuses_optimizer = Location{"s.yaml", 3, 1}}),
             Contains("s.yaml:3:1") && Contains("takes no `fused_optimizer`"));
  CHECK_THAT(error_of(chain, {.clips_gradients = Location{"s.yaml", 3, 1}}),
             Contains("takes no `clip_gradients`"));
}

TEST_CASE("Muon makes hidden matrices orthogonal, and AdamW has everything else") {
  const std::string text = network("[6]",
                                   "  - linear: {features: 8, name: in}\n"
                                   "  - linear: {features: 3, bias: false, name: out}\n",
                                   "mse");
  const Workload step = build_text(text, {.optimizer = Optimizer::muon});
  // One moment of 48 weights; two of 8 biases and of the last layer's 24 weights.
  CHECK(resident(step, TensorClass::optimizer_state) == 4 * (48 + 2 * (8 + 24)));
  const Operator& orthogonal = find_operator(step, "in.orthogonalize");
  CHECK(orthogonal.operator_class == OperatorClass::matmul);
  CHECK(orthogonal.dtype == DType::bf16);
  // Five times: X X' and B X, 2 * 6 * 6 * 8 each, and A A, 2 * 6 * 6 * 6.
  CHECK(orthogonal.flops == Flops{5 * (2 * 2 * 6 * 6 * 8 + 2 * 6 * 6 * 6)});
  CHECK(orthogonal.launches == 7 + 5 * 8);
  // fp32: m.lerp_(g), g.lerp_(m), g is cast. bf16: what is cast, its norm, a quotient and a scale
  // of 48 elements; each step of 8 passes over 48 elements and 12 over 36.
  CHECK(orthogonal.traffic == Bytes{48 * (4 * 7 + 2 * 6) + 5 * 2 * (8 * 48 + 12 * 36)});
  // X and five squares of 36 elements, or four times 48 elements and two squares.
  CHECK(orthogonal.workspace == Bytes{2 * std::max(48 + 5 * 36, 4 * 48 + 2 * 36)});
  // p.mul_() and p.add_() of a bf16 update; AdamW's 22 passes over the 8 biases.
  const Operator& update = find_operator(step, "in.update");
  CHECK(update.traffic == Bytes{48 * (8 + 4 + 2 + 4) + 4 * 22 * 8});
  CHECK(update.launches == 2 + 9);
  CHECK(find_operator(step, "out.update").traffic == Bytes{4 * 22 * 24});
}

TEST_CASE(
    "Muon leaves tied embeddings alone, flattens convolutions, and takes experts one by one") {
  const auto state = [](const char* name) {
    return resident(
        build(read_workload(read_document(shipped(name))), {.optimizer = Optimizer::muon}),
        TensorClass::optimizer_state);
  };
  constexpr std::int64_t h = 768, blocks = 12, in_blocks = 12 * h * h;
  constexpr std::int64_t gpt2 = 124'439'808;
  CHECK(state("gpt2-small") == 4 * (2 * gpt2 - blocks * in_blocks));
  const auto convolution = orthogonalization_of(OperatorClass::convolution, {64, 16, 3, 3});
  const auto matrix = orthogonalization_of(OperatorClass::matmul, {64, 144});
  CHECK(convolution.flops == matrix.flops);
  const auto experts = orthogonalization_of(OperatorClass::matmul, {5, 64, 144});
  CHECK(experts.flops == matrix.flops * 5);
  CHECK(experts.traffic == matrix.traffic * 5);
  CHECK(experts.kernels == matrix.kernels);
  // Of a square matrix of m rows 30 m^3 FLOPs beside the 6 m^2 of each of B tokens: 5 m / B.
  CHECK(orthogonalization_of(OperatorClass::matmul, {h, h}).flops == Flops{30 * h * h * h});
}

TEST_CASE("Muon is refused where matrices are not known, or not whole kernels") {
  CHECK_THROWS_WITH(
      build(read_workload(read_document(shipped("vgg16"))),
            {.optimizer = Optimizer::muon, .fuses_optimizer = Location{"s.yaml", 3, 1}}),
      Contains("s.yaml:3:1") && Contains("no `fused_optimizer` makes it one kernel"));
}
