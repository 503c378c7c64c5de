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

std::string divisors_of(std::int64_t number) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d <= number && divisors.size() < 16; ++d)
    if (number % d == 0) divisors.push_back(d);
  std::string text;
  for (std::size_t i = 0; i < divisors.size(); ++i)
    text += (i == 0 ? "" : i + 1 == divisors.size() ? " or " : ", ") + std::to_string(divisors[i]);
  return text;
}

/// Each head of key and value serves the same number of heads of the query.
void check_groups(std::int64_t heads, std::int64_t kv_heads) {
  constexpr std::int64_t kMostHeads = 1'000'000;
  if (heads < 1 || heads > kMostHeads)
    throw LayerError(std::to_string(heads) + " heads; expected from 1 to 1e6");
  if (kv_heads < 1 || heads % kv_heads != 0)
    throw LayerError(
        std::to_string(heads) + " heads cannot share " + std::to_string(kv_heads) +
            " heads of key and value evenly",
        "of " + std::to_string(heads) + " heads `kv_heads` may be " + divisors_of(heads));
}

/// The features of each of so many heads.
std::int64_t head_size(const Dims& x, std::int64_t heads) {
  if (x.size() != 2 || x[1] % heads != 0)
    throw LayerError("expected a sequence [positions, features] in " + std::to_string(heads) +
                     " heads, found " + to_text(x));
  return x[1] / heads;
}

/// Pairs of a query and a key that it looks at: of t queries and s keys all; where it is causal
/// those from itself back, of a window of w the nearest w. t s; s (s + 1) / 2;
/// w (w + 1) / 2 + (s - w) w.
Elements attended_pairs(std::int64_t queries, std::int64_t keys, bool causal, std::int64_t window) {
  if (!causal && window != 0)
    throw LayerError("a `window` needs `causal: true`",
                     "a window of w looks at the position itself and w - 1 before it");
  if (!causal) return elements_of({queries, keys});
  if (queries != keys)
    throw LayerError("causal attention of " + std::to_string(queries) + " queries to " +
                     std::to_string(keys) + " keys; expected as many");
  const std::int64_t seen = window == 0 ? keys : std::min(window, keys);
  return Elements{elements_of({seen, seen + 1}).count() / 2} + elements_of({keys - seen, seen});
}

/// What the fused operator of query, key and value is applied to.
struct FusedShape {
  Dims output;
  Dims rows;       ///< of scores, before their last dimension
  Elements pairs;  ///< over the heads
  std::int64_t key_size = 0, value_size = 0;
};

/// Query [t, heads d], key [s, kv_heads d], value [s, kv_heads e].
FusedShape shape_of_heads(const RuleCall& call) {
  const Dims &query = call.inputs[0], &key = call.inputs[1], &value = call.inputs[2];
  const std::int64_t heads = call["heads"];
  const std::int64_t kv_heads = call["kv_heads"] == 0 ? heads : call["kv_heads"];
  check_groups(heads, kv_heads);
  FusedShape shape;
  shape.key_size = head_size(key, kv_heads);
  shape.value_size = head_size(value, kv_heads);
  if (head_size(query, heads) != shape.key_size || key[0] != value[0])
    throw LayerError(
        "expected a query [t, heads x d], a key [s, kv_heads x d] and a value [s, "
        "kv_heads x e] of " +
        std::to_string(heads) + " and " + std::to_string(kv_heads) + " heads, found " +
        to_text(query) + ", " + to_text(key) + " and " + to_text(value));
  shape.output = {query[0], (Elements{heads} * shape.value_size).count()};
  shape.rows = {heads, query[0]};
  shape.pairs = attended_pairs(query[0], key[0], call["causal"] != 0, call["window"]) * heads;
  return shape;
}

/// Query [.., t, d], key [.., s, d] and value [.., s, e].
FusedShape shape_of_matrices(const RuleCall& call) {
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
  FusedShape shape;
  shape.output = query;
  shape.output.back() = value.back();
  shape.rows = Dims(query.begin(), query.end() - 1);
  shape.key_size = query.back();
  shape.value_size = value.back();
  const Elements heads = elements_of(Dims(query.begin(), query.end() - 2));
  shape.pairs =
      attended_pairs(query[rank - 2], key[rank - 2], call["causal"] != 0, call["window"]) *
      heads.count();
  return shape;
}

/// Of the two products: of query and key, and of probabilities and value.
struct FusedWork {
  Elements macs;
  Flops forward, backward;
};

/// With a product for each of the three gradients of the first, and for two of the second.
FusedWork work_of(const RuleCall& call, const FusedShape& shape, Elements pairs) {
  const Elements product = pairs * call.batch * shape.key_size;
  const Elements context = pairs * call.batch * shape.value_size;
  return {product + context, flops(product + context, 2),
          flops(product, 2) * 3 + flops(context, 2) * 2};
}

OperatorEffect fused_effect(const RuleCall& call, const FusedShape& shape) {
  OperatorEffect effect;
  effect.output = shape.output;
  effect.keeps_inputs = effect.keeps_output = true;
  effect.extras = {{"log_sum", call.over_batch(shape.rows), ElementType::statistic}};
  effect.backward_is_whole = true;
  effect.kernel.fuses_attention = true;
  return effect;
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

/// As `attention_core`, with a product for each of the three gradients.
OperatorEffect dot_product_attention(const RuleCall& call) {
  if (call.inputs.size() != 3)
    throw LayerError("expected query, key and value, found " + std::to_string(call.inputs.size()) +
                     " values");
  const FusedShape shape = call["heads"] != 0 ? shape_of_heads(call) : shape_of_matrices(call);
  OperatorEffect effect = fused_effect(call, shape);
  const FusedWork work = work_of(call, shape, shape.pairs);
  multiply(effect, work.macs);
  effect.backward_flops = work.backward;
  return effect;
}

/// Positions are in 2 n chunks of m, of which rank i has the i-th from each end: so where attention is
/// causal, a rank looks at 2 m^2 pairs of every other block, and at 2 m^2 + m of its own.
OperatorEffect ring_attention(const RuleCall& call) {
  const FusedShape shape = shape_of_heads(call);
  const std::int64_t positions = call.inputs.front()[0], ranks = call["ranks"];
  const Elements all = elements_of({positions, positions}) * call["heads"];
  const Elements pairs = call["causal"] != 0 ? Elements{all.count() / 2} : all;
  const FusedWork own = work_of(call, shape, shape.pairs), other = work_of(call, shape, pairs);
  OperatorEffect effect = fused_effect(call, shape);
  multiply(effect, own.macs + other.macs * (ranks - 1));
  effect.backward_flops = own.backward + other.backward * (ranks - 1);
  effect.ring = {ranks, own.forward, own.backward, other.forward, other.backward};
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
  const Elements product =
      attended_pairs(qkv[0], qkv[0], call["causal"] != 0, call["window"]) * features * call.batch;
  multiply(effect, product * 2);
  effect.backward_flops = flops(product * 3, 2);
  effect.kernel.fuses_attention = true;
  return effect;
}

/// At a batch of 1 a view, as there is nothing to move; else PyTorch's products copy what is not
/// in the order of its heads.
OperatorEffect split_heads(const RuleCall& call) {
  const Dims& x = call.inputs.front();
  const std::int64_t held = call["kv_heads"] == 0 ? call["heads"] : call["kv_heads"];
  check_groups(call["heads"], held);
  OperatorEffect effect;
  effect.output = {call["heads"], x.front(), head_size(x, held)};
  if (call.batch == 1 && held == call["heads"]) effect.form = OperatorEffect::Form::view;
  if (held != call["heads"]) effect.backward_flops = flops(count(call, effect.output), 1);
  return effect;
}

OperatorEffect join_heads(const RuleCall& call) {
  const Dims& x = call.inputs.front();
  require(x.size() == 3, call, "heads [heads, positions, features]");
  OperatorEffect effect;
  effect.output = {x[1], (Elements{x[0]} * x[2]).count()};
  return effect;
}

/// A number a head for each difference of two positions of a square window, so (2 w - 1)^2 of them.
OperatorEffect window_bias(const RuleCall& call) {
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

/// As T5 has it: a table [buckets, heads], of which the numbers for all pairs of positions are made
/// once. Scores are summed in a kernel that broadcasts them over the batch.
OperatorEffect relative_bias(const RuleCall& call) {
  const Dims& x = call.inputs.front();
  require(x.size() == 3, call, "scores [heads, positions, positions]");
  OperatorEffect effect = elementwise(call, 1, 1);
  effect.gradient = OperatorEffect::Gradient::pass;
  effect.backward_reads_parameters = false;
  effect.inputs = OperatorEffect::Inputs::weight;
  if (call["buckets"] == 0) return effect;
  effect.parameters = {{"weight", {call["buckets"], x[0]}}};
  effect.extras = {{"ids", {x[1], x[2]}, ElementType::index, true}};
  effect.forward_workspace = Bytes{call.element} * elements_of(x).count();
  return effect;
}

/// One mask, shared by the batch and the heads.
OperatorEffect causal_mask(const RuleCall& call) {
  const Dims& x = call.inputs.front();
  require(x.size() == 3, call, "scores [heads, positions, positions]");
  attended_pairs(x[1], x[2], call["causal"] != 0, call["window"]);
  OperatorEffect effect = elementwise(call, 1, 1);
  if (call["causal"] == 0) {
    effect.form = OperatorEffect::Form::view;
    return effect;
  }
  effect.extras = {{"mask", {1, 1, x[1], x[2]}, ElementType::boolean}};
  return effect;
}

}  // namespace plimsoll::effect
