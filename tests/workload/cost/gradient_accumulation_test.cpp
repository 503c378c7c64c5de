// What adding the gradients of microbatches moves, and where.
#include "workload/cost/gradient_accumulation.hpp"

#include "workload/workload_text.hpp"

#include <string>

#include <catch2/catch.hpp>

using namespace plimsoll;

namespace {

/// Bytes that its backward moves more than in a step of one microbatch.
Bytes added_bytes(const Workload& net, MadeGradients made, const std::string& name) {
  Workload adding = net;
  add_gradients(adding, made);
  return find_operator(adding, name).traffic - find_operator(net, name).traffic;
}

}  // namespace

TEST_CASE("what a backward makes is written, read, and added to a sum that is read and written") {
  const std::string text = network("[4]", "  - linear: 8\n", "mse");
  const Workload pure = build_text(text, {.dtype = DType::bf16});
  const Workload mixed =
      build_text(text, {.dtype = DType::bf16, .optimizer = Optimizer::sgd, .master_weights = true});
  const std::string backward = "linear_1.backward";
  // Written once in a step of one microbatch.
  CHECK(added_bytes(pure, MadeGradients::apart, backward) == Bytes{40 * (4 * 2 - 2)});
  // 40 in 16 bits are written, and read by the cast, which writes 32 bits that it need not read.
  CHECK(added_bytes(mixed, MadeGradients::as_values, backward) == Bytes{40 * 4});
  Workload adding = mixed;
  add_gradients(adding, MadeGradients::as_values);
  const Operator& it = find_operator(adding, backward);
  CHECK(it.additions.count == 2);
  CHECK(it.additions.counted == Bytes{40 * (2 + 4 + 4)});
  CHECK(it.additions.apart == it.additions.counted);
  CHECK(it.workspace == find_operator(mixed, backward).workspace);
  REQUIRE(adding.list(it.kept).size() == 2);
  CHECK(adding[adding.list(it.kept)[0]].lifetime == Lifetime::accumulated);
}

TEST_CASE("a product that adds to the sum itself makes nothing apart") {
  const std::string text = network("[4]", "  - linear: 8\n  - layer_norm\n  - linear: 2\n", "mse");
  const WorkloadOptions mixed{
      .dtype = DType::bf16, .optimizer = Optimizer::sgd, .master_weights = true};
  WorkloadOptions fused = mixed;
  fused.fuses_accumulation = Location{};
  const Workload net = build_text(text, mixed), fusing = build_text(text, fused);
  const Operator& before = find_operator(net, "linear_1.backward");
  const Operator& after = find_operator(fusing, "linear_1.backward");
  CHECK(before.workspace == Bytes{2 * 40});
  CHECK(after.workspace == Bytes{});
  // Neither the cast's read nor what it reads.
  CHECK(before.traffic - after.traffic == Bytes{2 * 2 * 40});
  CHECK(added_bytes(fusing, MadeGradients::fused, "linear_1.backward") == Bytes{4 * 40});
  // Others make theirs in 16 bits.
  const Operator& norm = find_operator(fusing, "layer_norm_1.backward");
  CHECK(norm.workspace == Bytes{2 * 16});
  CHECK(norm.traffic == find_operator(net, "layer_norm_1.backward").traffic);
  CHECK(added_bytes(fusing, MadeGradients::fused, "layer_norm_1.backward") == Bytes{4 * 16});
}

TEST_CASE("a second gradient of a tied weight is added to the first, and the first to the sum") {
  const std::string text =
      "workload: t\ninput: {shape: [3], type: indices}\nlayers:\n"
      "  - embedding: {entries: 11, features: 4, name: tokens}\n"
      "  - linear: {features: 11, bias: false, tied: tokens}\n";
  Workload net = build_text(text, {.optimizer = Optimizer::adam});
  CHECK(added_bytes(net, MadeGradients::apart, "linear_1.backward") == Bytes{44 * 4 * 3});
  CHECK(added_bytes(net, MadeGradients::apart, "tokens.backward") == Bytes{});
  add_gradients(net, MadeGradients::apart);
  CHECK(find_operator(net, "linear_1.backward").additions.count == 1);
  CHECK(find_operator(net, "tokens.backward").additions.count == 1);
}

TEST_CASE("gradients that stay are read by what adds to them, which makes its own") {
  const std::string text = network("[4]", "  - linear: 8\n  - relu\n  - linear: 2\n", "mse");
  Workload net = build_text(text, {.optimizer = Optimizer::sgd});
  const Workload before = net;
  add_gradients(net, MadeGradients::apart);
  keep_gradients(net);
  const Operator& backward = find_operator(net, "linear_2.backward");
  CHECK(names(net, backward.kept) == "linear_1.gradient");
  CHECK(names(net, backward.reads) ==
        "linear_2.gradient linear_1 linear_2.weight linear_2.bias linear_2.weight.gradient "
        "linear_2.bias.gradient");
  CHECK(backward.workspace == Bytes{4 * (16 + 2)});
  // Made, and read again; the sum is read, and written.
  CHECK(backward.traffic == find_operator(before, "linear_2.backward").traffic + Bytes{3 * 4 * 18});
  for (const Tensor& tensor : net.tensors) CHECK(tensor.lifetime != Lifetime::accumulated);
  // The optimizer and the forward are as they were.
  CHECK(find_operator(net, "linear_2.update").traffic ==
        find_operator(before, "linear_2.update").traffic);
  CHECK(net.saved_bytes == before.saved_bytes);
  Workload apart = before;
  add_gradients(apart, MadeGradients::given);
  keep_gradients(apart);
  CHECK(find_operator(apart, "linear_2.backward").workspace == Bytes{});
}
