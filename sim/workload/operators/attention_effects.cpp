#include "workload/operators/layer_error.hpp"
#include "workload/operators/operator_effects.hpp"

#include <algorithm>

namespace plimsoll::effect {
namespace {

constexpr std::int64_t kMostWindow = 10'000;

/// The features of one of query, key, value in their common product.
std::int64_t head_features(const RuleCall& call, const Dims& qkv) {
  const std::int64_t heads = call["heads"];
  if (qkv.size() != 2 || heads < 1 || qkv[1] % 3 != 0 || qkv[1] / 3 % heads != 0)
    throw LayerError("expected query, key and value [positions, 3 x features] of " +
                     std::to_string(heads) + " heads, found " + to_text(qkv));
  return qkv[1] / 3;
}

/// The positions of each of `windows`, that attend to one another.
std::int64_t window_positions(const RuleCall& call, const Dims& qkv) {
  const std::int64_t windows = call["windows"];
  if (windows < 1 || qkv[0] % windows != 0)
    throw LayerError("expected positions in " + std::to_string(windows) + " equal windows, found " +
                     std::to_string(qkv[0]));
  return qkv[0] / windows;
}

}  // namespace

OperatorEffect attention_scores(const RuleCall& call) {
  const Dims& qkv = call.inputs.front();
  const std::int64_t features = head_features(call, qkv);
  const std::int64_t near = window_positions(call, qkv);
  OperatorEffect effect;
  effect.output = {elements_of({call["heads"], call["windows"]}).count(), near, near};
  effect.keeps_inputs = true;
  effect.read_parts = {{qkv[0], 2 * features}};
  multiply(effect, elements_of({qkv[0], near, features}) * call.batch);
  effect.backward_flops = flops(effect.macs, 2);
  return effect;
}

OperatorEffect attention_context(const RuleCall& call) {
  const Dims& qkv = call.inputs.back();
  const std::int64_t features = head_features(call, qkv);
  const std::int64_t near = window_positions(call, qkv);
  const Dims scores{elements_of({call["heads"], call["windows"]}).count(), near, near};
  require(call.inputs.front() == scores, call, "attention probabilities " + to_text(scores));
  OperatorEffect effect;
  effect.output = {qkv[0], features};
  effect.keeps_inputs = true;
  effect.inputs = OperatorEffect::Inputs::partner;
  effect.read_parts = {{}, {qkv[0], features}};
  multiply(effect, elements_of({qkv[0], near, features}) * call.batch);
  return effect;
}

/// Of query [.., t, d], key [.., s, d] and value [.., s, e]. As above, with a product for each of
/// the three gradients.
OperatorEffect dot_product_attention(const RuleCall& call) {
  if (call.inputs.size() != 3)
    throw LayerError("expected query, key and value, found " + std::to_string(call.inputs.size()) +
                     " values");
  const Dims &query = call.inputs[0], &key = call.inputs[1], &value = call.inputs[2];
  const std::size_t rank = query.size();
  const auto matches = [&](const Dims& it) {
    return it.size() == rank && std::equal(it.begin(), it.end() - 2, query.begin());
  };
  if (rank < 2 || !matches(key) || !matches(value) || key.back() != query.back() ||
      key[rank - 2] != value[rank - 2])
    throw LayerError(
        "expected a query [.., t, d], a key [.., s, d] and a value [.., s, e], found " +
        to_text(query) + ", " + to_text(key) + " and " + to_text(value));
  OperatorEffect effect;
  effect.output = query;
  effect.output.back() = value.back();
  effect.keeps_inputs = effect.keeps_output = true;
  effect.extras = {
      {"log_sum", call.over_batch(Dims(query.begin(), query.end() - 1)), ElementType::statistic}};
  Dims scores = query;
  scores.back() = key[rank - 2];
  const Flops product = flops(count(call, scores) * query.back(), 2);
  const Flops context = flops(count(call, scores) * value.back(), 2);
  effect.forward_flops = product + context;
  effect.backward_flops = product * 3 + context * 2;
  return effect;
}

/// [.., m, k] times [.., k, n].
OperatorEffect product(const RuleCall& call) {
  const Dims& left = call.inputs.front();
  const Dims& right = call.inputs.back();
  const std::size_t rank = left.size();
  OperatorEffect effect;
  effect.output = left;
  if (rank < 2 || right.size() != rank || right[rank - 2] != left.back() ||
      !std::equal(left.begin(), left.end() - 2, right.begin()))
    throw LayerError("expected matrices [.., m, k] and [.., k, n], found " + to_text(left) +
                     " and " + to_text(right));
  effect.output.back() = right.back();
  effect.keeps_inputs = true;
  effect.inputs = OperatorEffect::Inputs::partner;
  multiply(effect, count(call, effect.output) * left.back());
  return effect;
}

/// Scores are never stored: the backward computes them again, so five products instead of four.
OperatorEffect attention_core(const RuleCall& call) {
  const Dims& qkv = call.inputs.front();
  const std::int64_t features = head_features(call, qkv);
  OperatorEffect effect;
  effect.output = {qkv[0], features};
  effect.keeps_inputs = effect.keeps_output = true;
  effect.extras = {{"log_sum", call.over_batch({call["heads"], qkv[0]}), ElementType::statistic}};
  multiply(effect, elements_of({2, qkv[0], qkv[0], features}) * call.batch);
  effect.backward_flops = flops(elements_of({3, qkv[0], qkv[0], features}) * call.batch, 2);
  return effect;
}

/// A number a head for each difference of two positions of a square window, so (2 w - 1)^2 of them.
OperatorEffect relative_bias(const RuleCall& call) {
  const std::int64_t window = call["window"], heads = call["heads"];
  if (window < 1 || window > kMostWindow || heads < 1)
    throw LayerError("heads must be at least 1, window from 1 to " + std::to_string(kMostWindow));
  const std::int64_t positions = window * window;
  const Dims& x = call.inputs.front();
  require(x.size() == 3 && x[0] % heads == 0 && x[1] == positions && x[2] == positions, call,
          "scores of " + std::to_string(heads) + " heads in windows, [.., " +
              std::to_string(positions) + ", " + std::to_string(positions) + "]");
  OperatorEffect effect = elementwise(call, 1, 1);
  effect.gradient = OperatorEffect::Gradient::pass;
  effect.backward_reads_parameters = false;
  effect.parameters = {{"table", {(2 * window - 1) * (2 * window - 1), heads}}};
  return effect;
}

/// The mask before it is broadcast.
OperatorEffect masked_fill(const RuleCall& call) {
  OperatorEffect effect = elementwise(call, 1, 1);
  const Dims mask = {call["heads"], call["rows"], call["columns"]};
  if (elements_of(mask).count() > elements_of(effect.output).count())
    throw LayerError("a mask " + to_text(mask) + " has more elements than the values " +
                     to_text(effect.output));
  const Dims& x = effect.output;
  const std::int64_t rows = x.size() > 1 ? x[x.size() - 2] : 1;
  if ((mask[1] != 1 && mask[1] != rows) || (mask[2] != 1 && mask[2] != x.back()))
    throw LayerError("a mask " + to_text(mask) + " does not broadcast to the values " + to_text(x));
  Dims dims = mask;
  dims.insert(dims.begin(), call["per_sample"] != 0 ? call.batch : 1);
  if (call["kept"] != 0) effect.extras = {{"mask", std::move(dims), ElementType::boolean}};
  return effect;
}

/// One mask, shared by the batch and the heads.
OperatorEffect causal_mask(const RuleCall& call) {
  const Dims& x = call.inputs.front();
  require(x.size() == 3 && x[1] == x[2], call, "scores [heads, positions, positions]");
  OperatorEffect effect = elementwise(call, 1, 1);
  effect.extras = {{"mask", {1, 1, x[1], x[2]}, ElementType::boolean}};
  return effect;
}

}  // namespace plimsoll::effect
