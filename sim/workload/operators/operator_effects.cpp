#include "workload/operators/operator_effects.hpp"

#include "workload/operators/layer_error.hpp"

#include <algorithm>
#include <set>

namespace plimsoll::effect {

using Form = OperatorEffect::Form;
using Gradient = OperatorEffect::Gradient;
using Inputs = OperatorEffect::Inputs;

void require(bool good, const RuleCall& call, const std::string& wanted) {
  if (!good) throw LayerError("expected " + wanted + ", found " + to_text(call.inputs.front()));
}

const Dims& image(const RuleCall& call) {
  require(call.inputs.front().size() == 3, call, "an image [channels, height, width]");
  return call.inputs.front();
}

const Dims& sequence(const RuleCall& call) {
  require(call.inputs.front().size() == 2, call, "a sequence [positions, features]");
  return call.inputs.front();
}

/// Elements over the batch.
Elements count(const RuleCall& call, const Dims& dims) {
  return elements_of(dims) * call.batch;
}

Flops flops(Elements elements, std::int64_t each) {
  return Flops{each} * elements.count();
}

/// y of the shape of x, with so many FLOPs an element.
OperatorEffect elementwise(const RuleCall& call, std::int64_t forward, std::int64_t backward) {
  OperatorEffect effect;
  effect.output = call.inputs.front();
  effect.forward_flops = flops(count(call, effect.output), forward);
  effect.backward_flops = flops(count(call, effect.output), backward);
  return effect;
}

void multiply(OperatorEffect& effect, Elements macs) {
  effect.macs = macs;
  effect.forward_flops = flops(macs, 2);
}

namespace {

/// x, and two vectors of statistics.
OperatorEffect normalization(const RuleCall& call, const Dims& statistics, std::int64_t channels) {
  OperatorEffect effect = elementwise(call, 8, 12);
  effect.keeps_inputs = true;
  effect.extras = {{"mean", statistics, ElementType::statistic},
                   {"inverse_deviation", statistics, ElementType::statistic}};
  effect.parameters = {{"weight", {channels}}, {"bias", {channels}}};
  return effect;
}

void require_same_as_skip(const RuleCall& call) {
  require(call.inputs.front() == call.inputs.back(), call,
          "the shape of `skip`, " + to_text(call.inputs.back()));
}

/// Whether `dims` broadcast to `values`: from the last dimension on each is 1 or equal, and leading
/// ones may be missing. A vector of the channels of an image broadcasts over its pixels.
bool broadcasts(const Dims& dims, const Dims& values) {
  if (dims == Dims{channels_of(values)}) return true;
  return dims.size() <= values.size() &&
         std::equal(dims.rbegin(), dims.rend(), values.rbegin(),
                    [](std::int64_t dim, std::int64_t value) { return dim == 1 || dim == value; });
}

void require_broadcast(const RuleCall& call) {
  if (!broadcasts(call.inputs.back(), call.inputs.front()))
    throw LayerError("a factor " + to_text(call.inputs.back()) + " does not fit values " +
                     to_text(call.inputs.front()) +
                     ", to which it does not broadcast: each of its dimensions, from the last, is "
                     "1 or that of the values");
}

/// Whether so many numbers can have a shape that broadcasts to `values`, which takes each dimension
/// or leaves it out. O(dimensions x divisors of `elements`).
bool can_broadcast(std::int64_t elements, const Dims& values) {
  std::set<std::int64_t> sizes{1};
  for (const std::int64_t dim : values) {
    std::vector<std::int64_t> larger;
    for (const std::int64_t size : sizes)
      if (elements % size == 0 && elements / size % dim == 0) larger.push_back(size * dim);
    sizes.insert(larger.begin(), larger.end());
  }
  return sizes.contains(elements);
}

bool in_place(const RuleCall& call) {
  return call["in_place"] == kWherePossible ? call.can_update : call["in_place"] != 0;
}

/// y = x + table[ids]: the gradient goes on to x unchanged.
OperatorEffect added_embedding(const RuleCall& call, const Dims& ids) {
  const Dims& x = sequence(call);
  OperatorEffect effect = elementwise(call, 1, 1);
  effect.gradient = Gradient::pass;
  if (call["kept"] != 0) effect.extras = {{"ids", ids, ElementType::index, true}};
  effect.parameters = {{"weight", {call["entries"], x[1]}}};
  effect.inputs = Inputs::weight;
  effect.backward_reads_parameters = false;
  effect.sparse_parameters = true;
  effect.forward_workspace = Bytes{call.element} * x[1] * elements_of(ids).count();
  return effect;
}

/// Rows that a loss over classes sees: pixels, positions, or one a sample.
Elements rows(const RuleCall& call) {
  const Dims& x = call.inputs.front();
  return Elements{count(call, x).count() / std::max<std::int64_t>(channels_of(x), 1)};
}

}  // namespace

OperatorEffect linear(const RuleCall& call) {
  const Dims& x = call.inputs.front();
  OperatorEffect effect;
  effect.output = x;
  effect.output.back() = call["features"];
  // Over positions PyTorch multiplies and adds to them as one matrix.
  effect.views_output = x.size() == 2 && call["bias"] != 0;
  effect.parameters.emplace_back("weight", Dims{call["features"], x.back()});
  multiply(effect, count(call, effect.output) * x.back());
  if (call["bias"] != 0) effect.parameters.emplace_back("bias", Dims{call["features"]});
  effect.keeps_inputs = true;
  effect.inputs = Inputs::weight;
  return effect;
}

OperatorEffect batch_norm(const RuleCall& call) {
  const Dims& x = call.inputs.front();
  OperatorEffect effect = normalization(call, {channels_of(x)}, channels_of(x));
  // PyTorch 1.13.1, measured: beside the gradient of the input a buffer of its size.
  effect.input_scratch.on_cpu = effect.backward_scratch.on_cpu = call.bytes(x);
  if (call["affine"] == 0) effect.parameters.clear();
  return effect;
}

/// One operator, as libraries have it: neither what it normalizes to nor the sum is ever stored.
OperatorEffect batch_norm_relu(const RuleCall& call) {
  OperatorEffect effect =
      normalization(call, {channels_of(call.inputs.front())}, channels_of(call.inputs.front()));
  const Flops relu = flops(count(call, effect.output), 1);
  effect.forward_flops += relu;
  effect.backward_flops += relu;
  effect.keeps_output = true;
  return effect;
}

OperatorEffect batch_norm_add_relu(const RuleCall& call) {
  require_same_as_skip(call);
  OperatorEffect effect = batch_norm_relu(call);
  effect.forward_flops += flops(count(call, effect.output), 1);
  effect.inputs = Inputs::first;
  return effect;
}

OperatorEffect layer_norm(const RuleCall& call) {
  const Dims& x = call.inputs.front();
  Dims rows = x;
  rows.back() = 1;
  OperatorEffect effect = normalization(call, call.over_batch(rows), x.back());
  if (call["affine"] == 0) effect.parameters.clear();
  return effect;
}

/// Its statistics have the type of its values (aten/src/ATen/native/group_norm.cpp).
OperatorEffect group_norm(const RuleCall& call) {
  const std::int64_t channels = channels_of(image(call)), groups = call["groups"];
  require(groups > 0 && channels % groups == 0, call,
          "channels in " + std::to_string(groups) + " equal groups");
  OperatorEffect effect = normalization(call, call.over_batch({groups}), channels);
  for (KeptExtra& statistics : effect.extras) statistics.type = ElementType::value;
  return effect;
}

/// PyTorch runs it as the batch norm of one sample that has the channels of all, for which it
/// repeats the weight.
OperatorEffect instance_norm(const RuleCall& call) {
  const std::int64_t channels = channels_of(image(call));
  const Dims each = call.over_batch({channels});
  OperatorEffect effect = normalization(call, each, channels);
  effect.backward_reads_parameters = false;
  if (call["affine"] != 0)
    effect.extras.push_back({"repeated_weight", each, ElementType::value});
  else
    effect.parameters.clear();
  return effect;
}

OperatorEffect relu(const RuleCall& call) {
  OperatorEffect effect = elementwise(call, 1, 1);
  if (in_place(call)) effect.form = Form::in_place;
  effect.keeps_output = true;
  return effect;
}

/// In place autograd keeps the result, else x.
OperatorEffect leaky_relu(const RuleCall& call) {
  OperatorEffect effect = elementwise(call, 2, 2);
  if (in_place(call)) {
    effect.form = Form::in_place;
    effect.keeps_output = true;
  } else {
    effect.keeps_inputs = true;
  }
  return effect;
}

OperatorEffect relu6(const RuleCall& call) {
  OperatorEffect effect = elementwise(call, 2, 2);
  if (in_place(call)) {
    effect.form = Form::in_place;
    effect.extras = {{"copy", call.over_batch(effect.output)}};
  } else {
    effect.keeps_inputs = true;
  }
  return effect;
}

OperatorEffect dropout(const RuleCall& call) {
  OperatorEffect effect = elementwise(call, 2, 1);
  const bool fused = call["fused"] != 0;
  effect.extras = {{fused ? "mask" : "factors", call.over_batch(effect.output),
                    fused ? ElementType::boolean : ElementType::value}};
  return effect;
}

/// Scores are read once and written twice, as probabilities and as what is left of them; the
/// backward goes from the one's gradient to that of the scores.
OperatorEffect softmax_dropout(const RuleCall& call) {
  OperatorEffect effect = elementwise(call, 7, 5);
  effect.extras = {{"probabilities", call.over_batch(effect.output), ElementType::value},
                   {"mask", call.over_batch(effect.output), ElementType::boolean}};
  return effect;
}

OperatorEffect flatten(const RuleCall& call) {
  OperatorEffect effect;
  effect.form = Form::view;
  effect.output = {elements_of(call.inputs.front()).count()};
  return effect;
}

/// [channels, height, width] as one position a pixel.
OperatorEffect tokens(const RuleCall& call) {
  const Dims& x = image(call);
  OperatorEffect effect;
  effect.form = Form::view;
  effect.output = {elements_of({x[1], x[2]}).count(), x[0]};
  return effect;
}

OperatorEffect select(const RuleCall& call) {
  const Dims& x = sequence(call);
  require(call["position"] < x[0], call,
          "a sequence with a position " + std::to_string(call["position"]) + " (counted from 0)");
  OperatorEffect effect;
  effect.form = Form::view;
  effect.output = {x[1]};
  return effect;
}

/// Which positions does not matter to bytes and times.
OperatorEffect take(const RuleCall& call) {
  const Dims& x = sequence(call);
  const std::int64_t positions = call["positions"];
  require(positions >= 1 && positions <= x[0], call,
          "a sequence of at least " + std::to_string(positions) + " positions");
  OperatorEffect effect;
  effect.output = {positions, x[1]};
  effect.extras = {{"ids", call.over_batch({positions}), ElementType::index}};
  return effect;
}

/// Squares of neighbours become one position with the features of all. Which ones does not matter.
OperatorEffect merge_positions(const RuleCall& call) {
  const Dims& x = sequence(call);
  const std::int64_t factor = call["factor"];
  if (factor < 1) throw LayerError("factor must be at least 1");
  const std::int64_t merged = elements_of({factor, factor}).count();
  require(x[0] % merged == 0, call,
          "positions in squares of " + std::to_string(merged) + ", [positions, features]");
  OperatorEffect effect;
  effect.output = {x[0] / merged, elements_of({x[1], merged}).count()};
  return effect;
}

/// A concatenation: the gradient of x is a part of that of y.
OperatorEffect class_token(const RuleCall& call) {
  const Dims& x = sequence(call);
  OperatorEffect effect;
  effect.output = {x[0] + 1, x[1]};
  effect.gradient = Gradient::pass;
  effect.parameters = {{"weight", {1, x[1]}}};
  effect.backward_reads_parameters = false;
  effect.backward_flops = flops(Elements{x[1]} * call.batch, 1);
  return effect;
}

OperatorEffect embedding(const RuleCall& call) {
  OperatorEffect effect;
  effect.output = call.inputs.front();
  effect.output.push_back(call["features"]);
  effect.keeps_inputs = true;
  effect.inputs = Inputs::weight;
  effect.parameters = {{"weight", {call["entries"], call["features"]}}};
  effect.backward_reads_parameters = false;
  effect.sparse_parameters = true;
  effect.backward_flops = flops(count(call, effect.output), 1);
  return effect;
}

OperatorEffect position_embedding(const RuleCall& call) {
  const Dims& x = sequence(call);
  if (x[0] > call["entries"])
    throw LayerError("a sequence of " + std::to_string(x[0]) + " positions, but only " +
                     std::to_string(call["entries"]) + " position embeddings");
  return added_embedding(call, {1, x[0]});
}

OperatorEffect segment_embedding(const RuleCall& call) {
  return added_embedding(call, call.over_batch({sequence(call)[0]}));
}

OperatorEffect scale(const RuleCall& call) {
  OperatorEffect effect = elementwise(call, 1, 1);
  if (call["kept"] != 0) effect.extras = {{"factor", {}, ElementType::number}};
  return effect;
}

OperatorEffect add(const RuleCall& call) {
  require_same_as_skip(call);
  OperatorEffect effect = elementwise(call, 1, 0);
  if (in_place(call)) effect.form = Form::in_place;
  effect.gradient = Gradient::pass;
  return effect;
}

/// Each operand's gradient needs the other one; the second may be smaller, and is broadcast.
OperatorEffect times(const RuleCall& call) {
  require_broadcast(call);
  OperatorEffect effect = elementwise(call, 1, 2);
  effect.keeps_inputs = true;
  effect.inputs = Inputs::partner;
  return effect;
}

OperatorEffect sub(const RuleCall& call) {
  require_broadcast(call);
  return elementwise(call, 1, 1);
}

OperatorEffect div(const RuleCall& call) {
  require_broadcast(call);
  OperatorEffect effect = elementwise(call, 1, 4);
  effect.keeps_inputs = true;
  return effect;
}

namespace {

/// Learned numbers that are broadcast to the values.
void add_learned(OperatorEffect& effect, const RuleCall& call, const char* name) {
  const std::int64_t elements = call["elements"];
  if (elements < 1 || !can_broadcast(elements, call.inputs.front()))
    throw LayerError(std::to_string(elements) + " learned numbers do not fit values " +
                     to_text(call.inputs.front()));
  effect.parameters = {{name, {elements}}};
}

}  // namespace

OperatorEffect bias(const RuleCall& call) {
  OperatorEffect effect = elementwise(call, 1, 1);
  effect.gradient = Gradient::pass;
  effect.backward_reads_parameters = false;
  add_learned(effect, call, "bias");
  if (const std::int64_t rows = call["rows"]; rows != 1) {
    const std::int64_t elements = call["elements"];
    const Dims& x = call.inputs.front();
    const bool fits = rows >= 1 && elements % rows == 0 &&
                      broadcasts({elements / rows}, {x.back()}) &&
                      can_broadcast(rows, Dims(x.begin(), x.end() - 1));
    if (!fits)
      throw LayerError(std::to_string(elements) + " learned numbers do not fit " +
                       std::to_string(rows) + " rows");
    effect.parameters = {{"weight", {rows, elements / rows}}};
  }
  return effect;
}

OperatorEffect gain(const RuleCall& call) {
  OperatorEffect effect = elementwise(call, 1, 2);
  effect.keeps_inputs = true;
  effect.inputs = Inputs::weight;
  add_learned(effect, call, "weight");
  return effect;
}

/// A number is added: the gradient goes on unchanged.
OperatorEffect shift(const RuleCall& call) {
  OperatorEffect effect = elementwise(call, 1, 0);
  effect.gradient = Gradient::pass;
  return effect;
}

OperatorEffect concat(const RuleCall& call) {
  OperatorEffect effect;
  effect.output = call.inputs.front();
  const std::size_t axis = effect.output.size() == 3 ? 0 : effect.output.size() - 1;
  for (std::size_t i = 1; i < call.inputs.size(); ++i) {
    Dims part = call.inputs[i];
    require(part.size() == effect.output.size(), call, "parts of one rank");
    effect.output[axis] += part[axis];
    part[axis] = effect.output[axis];
    require(part == effect.output, call, "parts that differ only in channels");
  }
  effect.gradient = Gradient::pass;
  return effect;
}

OperatorEffect loss_of(const RuleCall& call, std::int64_t forward) {
  OperatorEffect effect = elementwise(call, forward, 1);
  effect.form = Form::no_output;
  if (call["weighted"] != 0) effect.extras = {{"factor", {}, ElementType::number}};
  return effect;
}

OperatorEffect nll_loss(const RuleCall& call) {
  OperatorEffect effect = loss_of(call, 0);
  effect.keeps_inputs = true;
  effect.extras.push_back({"target", {rows(call).count()}, ElementType::index});
  effect.extras.push_back({"total_weight", {}});
  return effect;
}

OperatorEffect sum_loss(const RuleCall& call) {
  return loss_of(call, 1);
}

namespace {

/// What is kept beside values or what makes them: of each row the logarithm of its sum and its
/// label.
void keep_rows(OperatorEffect& effect, std::int64_t rows) {
  effect.extras.push_back({"log_sum", {rows}, ElementType::statistic});
  effect.extras.push_back({"target", {rows}, ElementType::index});
}

}  // namespace

OperatorEffect fused_cross_entropy_loss(const RuleCall& call) {
  OperatorEffect effect = loss_of(call, 6);
  effect.backward_flops = flops(count(call, effect.output), 5);
  effect.keeps_inputs = true;
  effect.inputs = Inputs::first;  // not what ranks know of rows (exchange_rules.hpp)
  keep_rows(effect, rows(call).count());
  return effect;
}

/// E. Wijmans and others, "Cut your losses in large-vocabulary language models", ICLR 2025 (arXiv
/// 2411.09009): logits are made in pieces, in the forward for the sum of each row and again in the
/// backward, beside the two products for the gradients. A piece is as many rows as go into one of
/// `chunks`, with its gradient in the backward; without chunks it stays on the chip.
OperatorEffect linear_cross_entropy(const RuleCall& call) {
  const Dims& x = call.inputs.front();
  const std::int64_t positions = count(call, x).count() / x.back();
  const std::int64_t classes = call["features"], chunks = call["chunks"];
  if (chunks > positions)
    throw LayerError(std::to_string(chunks) + " chunks of " + std::to_string(positions) + " rows",
                     "`chunks` is at most the number of positions of all samples, or 0");
  OperatorEffect effect;
  effect.output = x;
  effect.form = Form::no_output;
  effect.keeps_inputs = true;
  effect.parameters = {{"weight", {classes, x.back()}}};
  const Elements logits = elements_of({positions, classes});
  multiply(effect, logits * x.back());
  effect.forward_flops += flops(logits, 6);
  effect.backward_flops = flops(effect.macs * 3, 2) + flops(logits, 5);
  effect.backward_is_whole = true;
  keep_rows(effect, positions);
  if (chunks == 0) return effect;
  const std::int64_t piece = (positions + chunks - 1) / chunks;
  effect.forward_workspace = Bytes{call.element} * elements_of({piece, classes}).count();
  effect.backward_workspace = effect.forward_workspace * 2;
  return effect;
}

}  // namespace plimsoll::effect
