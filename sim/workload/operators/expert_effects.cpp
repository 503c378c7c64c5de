#include "workload/operators/layer_error.hpp"
#include "workload/operators/operator_effects.hpp"

#include <algorithm>

namespace plimsoll::effect {
namespace {

using Inputs = OperatorEffect::Inputs;

__extension__ using Wide = __int128;

/// a * b / c, rounded up. Throws QuantityOverflow.
std::int64_t share(std::int64_t a, std::int64_t b, std::int64_t c) {
  const Wide quotient = (Wide{a} * b + c - 1) / c;
  if (quotient >= Elements::unlimited().count()) throw QuantityOverflow();
  return static_cast<std::int64_t>(quotient);
}

std::string hint_of_most(const char* key, std::int64_t most) {
  return std::string("`") + key + "` is from 1 to " + std::to_string(most);
}

std::int64_t held_experts(const RuleCall& call) {
  const std::int64_t experts = call["experts"], held = call["held"];
  if (held > experts)
    throw LayerError(
        "holds " + std::to_string(held) + " of " + std::to_string(experts) + " experts",
        hint_of_most("held", experts));
  return held == 0 ? experts : held;
}

/// The rows of one sample that the experts held here get.
std::int64_t rows_of_experts(const RuleCall& call, std::int64_t positions) {
  constexpr std::int64_t kPercent = 100;
  const std::int64_t experts = call["experts"], top_k = call["top_k"], load = call["load"];
  const std::int64_t held = held_experts(call);
  if (top_k < 1 || top_k > experts)
    throw LayerError("each position takes " + std::to_string(top_k) + " of " +
                         std::to_string(experts) + " experts",
                     hint_of_most("top_k", experts));
  if (load < 1) throw LayerError("a load of 0 %; expected at least 1 %");
  const std::int64_t routed = (Elements{positions} * top_k).count();
  const std::int64_t capacity = call["capacity"];
  if (capacity > 0 && load != kPercent)
    throw LayerError(
        "`capacity` says how many rows each expert has, full or not, and `load` another number",
        "leave one of them out");
  if (capacity > 0) return (Elements{share(routed, capacity, experts * kPercent)} * held).count();
  if (held == experts && load != kPercent)
    throw LayerError("all experts together get what is routed, whatever the router does",
                     "`load` is that of the experts held here, of which `held` says how many");
  const std::int64_t chosen = std::min(top_k, held);
  const std::int64_t rows = share(routed, held * load, experts * kPercent);
  if (const std::int64_t most = (Elements{positions} * chosen).count(); rows > most)
    throw LayerError(
        "a load of " + std::to_string(load) + " % is " + std::to_string(rows) + " rows, and " +
            std::to_string(positions) + " positions that choose " + std::to_string(chosen) +
            " of the experts held here make " + std::to_string(most),
        hint_of_most("load", static_cast<std::int64_t>(Wide{experts} * kPercent * chosen /
                                                       (Wide{top_k} * held))));
  return rows;
}

}  // namespace

OperatorEffect top_k(const RuleCall& call) {
  const Dims& x = call.inputs.front();
  const std::int64_t chosen = call["k"];
  if (chosen < 1 || chosen > x.back())
    throw LayerError(
        "the largest " + std::to_string(chosen) + " of " + std::to_string(x.back()) + " values",
        hint_of_most("k", x.back()));
  OperatorEffect effect = elementwise(call, 1, 0);
  effect.output.back() = chosen;
  effect.extras = {{"ids", call.over_batch(effect.output), ElementType::index}};
  return effect;
}

OperatorEffect dispatch(const RuleCall& call) {
  const Dims& x = sequence(call);
  OperatorEffect effect;
  effect.output = {rows_of_experts(call, x[0]), x[1]};
  effect.extras = {{"rows", call.over_batch({effect.output[0], 2}), ElementType::index}};
  effect.backward_flops = flops(count(call, effect.output), 1);
  return effect;
}

OperatorEffect expert_linear(const RuleCall& call) {
  const Dims& x = sequence(call);
  const std::int64_t experts = held_experts(call), features = call["features"];
  OperatorEffect effect;
  effect.output = {x[0], features};
  effect.parameters = {{"weight", {experts, features, x[1]}}};
  if (call["bias"] != 0) effect.parameters.emplace_back("bias", Dims{experts, features});
  multiply(effect, count(call, effect.output) * x[1]);
  effect.keeps_inputs = true;
  effect.inputs = Inputs::weight;
  return effect;
}

/// Autograd keeps what a sum over indices adds, too, if only for its shape.
OperatorEffect combine_rows(const RuleCall& call) {
  const Dims& y = sequence(call);
  const Dims& weights = call.inputs.back();
  if (weights.size() != 2)
    throw LayerError("expected `by` to be weights [positions, top_k], found " + to_text(weights));
  OperatorEffect effect;
  effect.output = {weights[0], y[1]};
  effect.keeps_inputs = true;
  effect.inputs = Inputs::first;
  effect.extras = {{"weights", call.over_batch({y[0]})}};
  if (call["fused"] == 0) effect.extras.push_back({"weighted", call.over_batch(y)});
  effect.forward_flops = flops(count(call, y), 2);
  effect.backward_flops = flops(count(call, y), 3);
  return effect;
}

}  // namespace plimsoll::effect
