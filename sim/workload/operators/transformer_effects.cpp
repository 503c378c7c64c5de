#include "workload/operators/layer_error.hpp"
#include "workload/operators/operator_effects.hpp"

namespace plimsoll::effect {

using Form = OperatorEffect::Form;

namespace {

OperatorEffect view_of(Dims dims) {
  OperatorEffect effect;
  effect.form = Form::view;
  effect.output = std::move(dims);
  return effect;
}

/// Elements of `dims` with so many FLOPs each, forward and backward.
void work(OperatorEffect& effect, Elements elements, std::int64_t forward, std::int64_t backward) {
  effect.forward_flops = flops(elements, forward);
  effect.backward_flops = flops(elements, backward);
}

/// One number for each row of x.
OperatorEffect over_rows(const RuleCall& call) {
  const Dims& x = call.inputs.front();
  OperatorEffect effect;
  effect.output = x;
  effect.output.back() = 1;
  work(effect, count(call, x), 1, 1);
  return effect;
}

}  // namespace

OperatorEffect rms_norm(const RuleCall& call) {
  const Dims& x = call.inputs.front();
  Dims rows = x;
  rows.back() = 1;
  OperatorEffect effect = elementwise(call, 4, 8);
  effect.keeps_inputs = true;
  effect.extras = {{"inverse_deviation", call.over_batch(rows), ElementType::statistic}};
  if (call["affine"] != 0) effect.parameters = {{"weight", {x.back()}}};
  return effect;
}

OperatorEffect row_mean(const RuleCall& call) {
  OperatorEffect effect = over_rows(call);
  effect.keeps_inputs = call["kept"] != 0;
  return effect;
}

OperatorEffect row_sum(const RuleCall& call) {
  return over_rows(call);
}

namespace {

/// Of each position those that rotary positions turn: of each head of `size` the last `rotated`, by
/// twos.
std::int64_t turned_features(const RuleCall& call) {
  const Dims& x = sequence(call);
  const std::int64_t size = call["size"] == 0 ? x[1] : call["size"];
  const std::int64_t rotated = call["rotated"] == 0 ? size : call["rotated"];
  require(x[1] % size == 0, call, "features in whole heads of " + std::to_string(size));
  if (rotated > size || rotated % 2 != 0)
    throw LayerError("of heads of " + std::to_string(size) + " features " +
                         std::to_string(rotated) + " cannot turn in pairs",
                     "`rotated` is an even number up to the size of a head");
  return x[1] / size * rotated;
}

}  // namespace

OperatorEffect rotary(const RuleCall& call) {
  OperatorEffect effect;
  effect.output = call.inputs.front();
  work(effect, count(call, {effect.output.front(), turned_features(call)}), 3, 3);
  return effect;
}

OperatorEffect rotate_half(const RuleCall& call) {
  OperatorEffect effect;
  effect.output = call.inputs.front();
  const Dims half = {effect.output.front(), turned_features(call) / 2};
  work(effect, count(call, half), 1, 1);
  effect.forward_workspace = effect.backward_workspace = call.bytes(half);
  return effect;
}

namespace {

/// f(x) * by. The backward makes f(x) again from x.
OperatorEffect gated(const RuleCall& call, std::int64_t forward, std::int64_t backward) {
  require(call.inputs.front() == call.inputs.back(), call,
          "the shape of `by`, " + to_text(call.inputs.back()));
  OperatorEffect effect = elementwise(call, forward, backward);
  effect.keeps_inputs = true;
  return effect;
}

}  // namespace

/// As `silu` and `multiply`, and the product with the sigmoid again.
OperatorEffect swiglu(const RuleCall& call) {
  return gated(call, 5 + 1, 8 + 2 + 1);
}

OperatorEffect geglu(const RuleCall& call) {
  return gated(call, 10 + 1, 14 + 2 + 1);
}

OperatorEffect rows_of(const RuleCall& call) {
  const Dims& x = call.inputs.front();
  const std::int64_t features = call["features"], all = elements_of(x).count();
  require(features >= 1 && all % features == 0, call,
          "values in whole rows of " + std::to_string(features));
  return view_of({all / features, features});
}

OperatorEffect slice(const RuleCall& call) {
  const Dims& x = sequence(call);
  const std::int64_t features = call["features"];
  require(features >= 1 && features <= x[1], call,
          "a sequence of at least " + std::to_string(features) + " features");
  return view_of({x[0], features});
}

OperatorEffect transpose(const RuleCall& call) {
  Dims dims = call.inputs.front();
  require(dims.size() >= 2, call, "matrices [.., m, n]");
  std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
  return view_of(std::move(dims));
}

OperatorEffect repeat_features(const RuleCall& call) {
  const Dims& x = sequence(call);
  const std::int64_t times = call["times"];
  require(times >= 1, call, "`times` of at least 1");
  if (times == 1) return view_of(x);
  OperatorEffect effect;
  effect.output = {x[0], (Elements{x[1]} * times).count()};
  effect.backward_flops = flops(count(call, effect.output), 1);
  return effect;
}

}  // namespace plimsoll::effect
