#include "workload/core/workload_builder.hpp"

#include "workload/workload_text.hpp"

#include <stdexcept>

#include <catch2/catch.hpp>

using namespace plimsoll;

namespace {

TensorId add_tensor(WorkloadBuilder& builder, std::string name, std::int64_t bytes,
                    Lifetime lifetime = Lifetime::step,
                    TensorClass tensor_class = TensorClass::activation) {
  return builder.add(Tensor{std::move(name), Bytes{bytes}, tensor_class, lifetime, kNoTensor});
}

OperatorId add_forward(WorkloadBuilder& builder, std::string name, std::vector<TensorId> reads,
                       std::vector<TensorId> makes, std::vector<TensorId> updates = {}) {
  OperatorSpec spec;
  spec.name = std::move(name);
  spec.reads = std::move(reads);
  spec.updates = std::move(updates);
  spec.kept = spec.bare = std::move(makes);
  return builder.add(std::move(spec));
}

std::string message(WorkloadBuilder& builder) {
  try {
    static_cast<void>(builder.freeze());
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("forwards are put after what they need, else they stay in place") {
  WorkloadBuilder builder("w");
  const TensorId x = add_tensor(builder, "x", 1, Lifetime::input);
  const TensorId a = add_tensor(builder, "a", 1), b = add_tensor(builder, "b", 1);
  const OperatorId late = add_forward(builder, "late", {b}, {});
  add_forward(builder, "first", {x}, {a});
  add_forward(builder, "second", {a}, {b});
  OperatorSpec backward;
  backward.name = "back";
  backward.phase = Phase::backward;
  backward.forward = late;
  backward.reads = {b};
  builder.add(backward);

  const Workload workload = builder.freeze();
  REQUIRE(workload.forwards == 3);
  CHECK(workload.operators[0].name == "first");
  CHECK(workload.operators[1].name == "second");
  CHECK(workload.operators[2].name == "late");
  CHECK(workload[workload.operators[3].forward].name == "late");
}

TEST_CASE("a change in place comes after earlier readers and before later ones") {
  WorkloadBuilder builder("w");
  const TensorId a = add_tensor(builder, "a", 1), b = add_tensor(builder, "b", 1);
  // `early` reads b, which `last` makes: without the rule for changes `change` could run before it.
  add_forward(builder, "make", {}, {a});
  add_forward(builder, "early", {a, b}, {});
  add_forward(builder, "change", {a}, {}, {a});
  add_forward(builder, "after", {a}, {});
  add_forward(builder, "last", {}, {b});
  const Workload workload = builder.freeze();
  std::string order;
  for (const Operator& op : workload.operators) order += op.name + " ";
  CHECK(order == "make last early change after ");
}

TEST_CASE("a cycle is named") {
  WorkloadBuilder builder("w");
  const TensorId a = add_tensor(builder, "a", 1), b = add_tensor(builder, "b", 1);
  add_forward(builder, "f", {b}, {a});
  add_forward(builder, "g", {a}, {b});
  CHECK(message(builder) == "the operators form a cycle: `f` needs `g` needs `f`");
}

TEST_CASE("a value that nothing makes and an unknown id are refused") {
  WorkloadBuilder lost("w");
  add_forward(lost, "f", {add_tensor(lost, "ghost", 1)}, {});
  CHECK(message(lost) == "operator `f` reads `ghost`, which nothing before it makes");
  WorkloadBuilder unknown("w");
  add_forward(unknown, "f", {TensorId{7}}, {});
  CHECK(message(unknown) == "operator `f` names an unknown id");
}

TEST_CASE("saved bytes count each storage that a backward reads once, and parameters apart") {
  WorkloadBuilder builder("w");
  const TensorId x = add_tensor(builder, "x", 1000, Lifetime::input);
  const TensorId weight =
      add_tensor(builder, "weight", 300, Lifetime::resident, TensorClass::parameter);
  const TensorId kept = add_tensor(builder, "kept", 20);
  const TensorId unread = add_tensor(builder, "unread", 4);
  const TensorId inside =
      builder.add(Tensor{"inside", Bytes{8}, TensorClass::activation, Lifetime::step, kept});
  const OperatorId f = add_forward(builder, "f", {x, weight}, {kept, unread});
  for (int i = 0; i < 2; ++i) {
    OperatorSpec backward;
    backward.name = "b";
    backward.phase = Phase::backward;
    backward.forward = f;
    backward.reads = {x, weight, kept, inside};
    builder.add(backward);
  }
  const Workload workload = builder.freeze();
  CHECK(workload.saved_bytes == Bytes{20});  // kept alone: x is an input, weight a parameter
  CHECK(workload.parameter_bytes == Bytes{300});
}
