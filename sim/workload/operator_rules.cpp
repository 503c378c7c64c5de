#include "workload/operator_rules.hpp"

#include "workload/layer_error.hpp"

#include <algorithm>
#include <array>

namespace plimsoll {

Elements elements_of(const Dims& dims) {
  Elements elements{1};
  for (const std::int64_t dim : dims) elements *= dim;
  return elements;
}

std::int64_t channels_of(const Dims& dims) {
  if (dims.empty()) return 0;
  return dims.size() == 3 ? dims.front() : dims.back();
}

std::string to_text(const Dims& dims) {
  std::string text = "[";
  for (const std::int64_t dim : dims) text += (text.size() > 1 ? ", " : "") + std::to_string(dim);
  return text + "]";
}

std::int64_t RuleCall::operator[](std::string_view argument) const {
  return std::ranges::find(arguments, argument, [](const auto& a) { return a.first; })->second;
}

Bytes RuleCall::bytes(const Dims& dims) const {
  return Bytes{element} * batch * elements_of(dims).count();
}

namespace {

using Form = OperatorEffect::Form;
using Gradient = OperatorEffect::Gradient;

constexpr std::int64_t kMaskBytes = 1, kIndexBytes = 8, kStatisticBytes = 4, kNumberBytes = 8;

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

/// Output size of a window that slides over `size` positions.
std::int64_t windows(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                     std::int64_t padding, std::int64_t dilation = 1) {
  if (kernel < 1 || stride < 1 || dilation < 1)
    throw LayerError("kernel, stride and dilation must be at least 1");
  const std::int64_t reach = dilation * (kernel - 1) + 1;
  const std::int64_t room = size + 2 * padding - reach;
  if (room < 0)
    throw LayerError("a window of " + std::to_string(reach) + " does not fit into " +
                     std::to_string(size) + " positions with padding " + std::to_string(padding));
  return room / stride + 1;
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

OperatorEffect conv2d(const RuleCall& call) {
  const Dims& x = image(call);
  const std::int64_t channels = call["channels"], kernel = call["kernel"], groups = call["groups"];
  if (groups < 1 || x[0] % groups != 0 || channels % groups != 0)
    throw LayerError(std::to_string(groups) + " groups do not divide " + std::to_string(x[0]) +
                     " input and " + std::to_string(channels) + " output channels");
  OperatorEffect effect;
  effect.output = {channels};
  for (const std::int64_t size : {x[1], x[2]})
    effect.output.push_back(
        windows(size, kernel, call["stride"], call["padding"], call["dilation"]));
  const Elements window = elements_of({x[0] / groups, kernel, kernel});
  effect.parameters.emplace_back("weight", window * channels);
  multiply(effect, count(call, effect.output) * window.count());
  if (call["bias"] != 0) effect.parameters.emplace_back("bias", Elements{channels});
  effect.keeps_inputs = true;
  return effect;
}

OperatorEffect linear(const RuleCall& call) {
  const Dims& x = call.inputs.front();
  OperatorEffect effect;
  effect.output = x;
  effect.output.back() = call["features"];
  effect.parameters.emplace_back("weight", elements_of({x.back(), call["features"]}));
  multiply(effect, count(call, effect.output) * x.back());
  if (call["bias"] != 0) effect.parameters.emplace_back("bias", Elements{call["features"]});
  effect.keeps_inputs = true;
  return effect;
}

/// x, and two vectors of statistics.
OperatorEffect normalization(const RuleCall& call, Elements statistics, std::int64_t channels) {
  OperatorEffect effect = elementwise(call, 8, 12);
  effect.keeps_inputs = true;
  const Bytes vector = Bytes{kStatisticBytes} * statistics.count();
  effect.extras = {{"mean", vector}, {"inverse_deviation", vector}};
  effect.parameters = {{"weight", Elements{channels}}, {"bias", Elements{channels}}};
  return effect;
}

OperatorEffect batch_norm(const RuleCall& call) {
  const Dims& x = call.inputs.front();
  return normalization(call, Elements{channels_of(x)}, channels_of(x));
}

OperatorEffect layer_norm(const RuleCall& call) {
  const Dims& x = call.inputs.front();
  const Dims rows(x.begin(), x.end() - 1);
  return normalization(call, count(call, rows), x.back());
}

bool in_place(const RuleCall& call) {
  return call["in_place"] == kWherePossible ? call.can_update : call["in_place"] != 0;
}

OperatorEffect relu(const RuleCall& call) {
  OperatorEffect effect = elementwise(call, 1, 1);
  if (in_place(call)) effect.form = Form::in_place;
  effect.keeps_output = true;
  return effect;
}

OperatorEffect relu6(const RuleCall& call) {
  OperatorEffect effect = elementwise(call, 2, 2);
  if (in_place(call)) {
    effect.form = Form::in_place;
    effect.extras = {{"copy", call.bytes(effect.output)}};
  } else {
    effect.keeps_inputs = true;
  }
  return effect;
}

template <std::int64_t forward, std::int64_t backward>
OperatorEffect keeps_x(const RuleCall& call) {
  OperatorEffect effect = elementwise(call, forward, backward);
  effect.keeps_inputs = true;
  return effect;
}

template <std::int64_t forward, std::int64_t backward>
OperatorEffect keeps_y(const RuleCall& call) {
  OperatorEffect effect = elementwise(call, forward, backward);
  effect.keeps_output = true;
  return effect;
}

OperatorEffect pooling(const RuleCall& call, Dims output, std::int64_t window) {
  OperatorEffect effect;
  effect.output = std::move(output);
  effect.forward_flops = flops(count(call, effect.output), window);
  effect.backward_flops = effect.forward_flops;
  effect.keeps_inputs = true;
  return effect;
}

OperatorEffect window_pool(const RuleCall& call) {
  const Dims& x = image(call);
  const std::int64_t kernel = call["kernel"];
  const std::int64_t stride = call["stride"] != 0 ? call["stride"] : kernel;
  if (call["padding"] > kernel / 2) throw LayerError("padding is more than half of the kernel");
  Dims output = {x[0], windows(x[1], kernel, stride, call["padding"]),
                 windows(x[2], kernel, stride, call["padding"])};
  return pooling(call, std::move(output), elements_of({kernel, kernel}).count());
}

OperatorEffect max_pool(const RuleCall& call) {
  OperatorEffect effect = window_pool(call);
  effect.extras = {{"indices", Bytes{kIndexBytes} * count(call, effect.output).count()}};
  return effect;
}

OperatorEffect adaptive_avg_pool(const RuleCall& call) {
  const Dims& x = image(call);
  const std::int64_t size = call["size"];
  if (size < 1) throw LayerError("size must be at least 1");
  const std::int64_t window = elements_of({x[1] / size + 1, x[2] / size + 1}).count();
  return pooling(call, {x[0], size, size}, window);
}

OperatorEffect global_avg_pool(const RuleCall& call) {
  const Dims& x = image(call);
  return pooling(call, {x[0]}, elements_of({x[1], x[2]}).count());
}

OperatorEffect dropout(const RuleCall& call) {
  OperatorEffect effect = elementwise(call, 2, 1);
  effect.extras = {{"mask", Bytes{kMaskBytes} * count(call, effect.output).count()}};
  return effect;
}

OperatorEffect flatten(const RuleCall& call) {
  OperatorEffect effect;
  effect.form = Form::view;
  effect.output = {elements_of(call.inputs.front()).count()};
  return effect;
}

OperatorEffect embedding(const RuleCall& call) {
  OperatorEffect effect;
  effect.output = call.inputs.front();
  effect.output.push_back(call["features"]);
  effect.keeps_inputs = true;
  effect.parameters = {{"weight", elements_of({call["entries"], call["features"]})}};
  effect.backward_reads_parameters = false;
  effect.sparse_parameters = true;
  effect.backward_flops = flops(count(call, effect.output), 1);
  return effect;
}

/// y = x + table[ids]: the gradient goes on to x unchanged.
OperatorEffect added_embedding(const RuleCall& call, Elements ids) {
  const Dims& x = sequence(call);
  OperatorEffect effect = elementwise(call, 1, 1);
  effect.gradient = Gradient::pass;
  effect.extras = {{"ids", Bytes{kIndexBytes} * ids.count()}};
  effect.parameters = {{"weight", elements_of({call["entries"], x[1]})}};
  effect.backward_reads_parameters = false;
  effect.sparse_parameters = true;
  effect.forward_workspace = Bytes{call.element} * x[1] * ids.count();
  return effect;
}

OperatorEffect position_embedding(const RuleCall& call) {
  const Dims& x = sequence(call);
  if (x[0] > call["entries"])
    throw LayerError("a sequence of " + std::to_string(x[0]) + " positions, but only " +
                     std::to_string(call["entries"]) + " position embeddings");
  return added_embedding(call, Elements{x[0]});
}

OperatorEffect segment_embedding(const RuleCall& call) {
  return added_embedding(call, count(call, {sequence(call)[0]}));
}

/// The features of one of query, key, value in their common product.
std::int64_t head_features(const RuleCall& call, const Dims& qkv) {
  const std::int64_t heads = call["heads"];
  if (qkv.size() != 2 || heads < 1 || qkv[1] % 3 != 0 || qkv[1] / 3 % heads != 0)
    throw LayerError("expected query, key and value [positions, 3 x features] of " +
                     std::to_string(heads) + " heads, found " + to_text(qkv));
  return qkv[1] / 3;
}

OperatorEffect attention_scores(const RuleCall& call) {
  const Dims& qkv = call.inputs.front();
  const std::int64_t features = head_features(call, qkv);
  OperatorEffect effect;
  effect.output = {call["heads"], qkv[0], qkv[0]};
  effect.keeps_inputs = true;
  multiply(effect, elements_of({qkv[0], qkv[0], features}) * call.batch);
  effect.backward_flops = flops(effect.macs, 2);
  return effect;
}

OperatorEffect attention_context(const RuleCall& call) {
  const Dims& qkv = call.inputs.back();
  const std::int64_t features = head_features(call, qkv);
  require(call.inputs.front() == Dims{call["heads"], qkv[0], qkv[0]}, call,
          "attention probabilities " + to_text(Dims{call["heads"], qkv[0], qkv[0]}));
  OperatorEffect effect;
  effect.output = {qkv[0], features};
  effect.keeps_inputs = true;
  multiply(effect, elements_of({qkv[0], qkv[0], features}) * call.batch);
  return effect;
}

/// Scores are never stored: the backward computes them again, so five products instead of four.
OperatorEffect attention_core(const RuleCall& call) {
  const Dims& qkv = call.inputs.front();
  const std::int64_t features = head_features(call, qkv);
  OperatorEffect effect;
  effect.output = {qkv[0], features};
  effect.keeps_inputs = effect.keeps_output = true;
  effect.extras = {
      {"log_sum", Bytes{kStatisticBytes} * count(call, {call["heads"], qkv[0]}).count()}};
  multiply(effect, elements_of({2, qkv[0], qkv[0], features}) * call.batch);
  effect.backward_flops = flops(elements_of({3, qkv[0], qkv[0], features}) * call.batch, 2);
  return effect;
}

OperatorEffect scale(const RuleCall& call) {
  OperatorEffect effect = elementwise(call, 1, 1);
  effect.extras = {{"factor", Bytes{kNumberBytes}}};
  return effect;
}

/// One mask, shared by the batch and the heads.
OperatorEffect causal_mask(const RuleCall& call) {
  const Dims& x = call.inputs.front();
  require(x.size() == 3 && x[1] == x[2], call, "scores [heads, positions, positions]");
  OperatorEffect effect = elementwise(call, 1, 1);
  effect.extras = {{"mask", Bytes{kMaskBytes} * elements_of({x[1], x[2]}).count()}};
  return effect;
}

OperatorEffect copy(const RuleCall& call) {
  return elementwise(call, 0, 0);
}

OperatorEffect add(const RuleCall& call) {
  require(call.inputs.front() == call.inputs.back(), call,
          "the shape of `skip`, " + to_text(call.inputs.back()));
  OperatorEffect effect = elementwise(call, 1, 0);
  if (in_place(call)) effect.form = Form::in_place;
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

/// Rows that a loss over classes sees: pixels, positions, or one a sample.
Elements rows(const RuleCall& call) {
  const Dims& x = call.inputs.front();
  return Elements{count(call, x).count() / std::max<std::int64_t>(channels_of(x), 1)};
}

OperatorEffect loss_of(const RuleCall& call, std::int64_t forward) {
  OperatorEffect effect = elementwise(call, forward, 1);
  effect.form = Form::no_output;
  return effect;
}

OperatorEffect nll_loss(const RuleCall& call) {
  OperatorEffect effect = loss_of(call, 0);
  effect.keeps_inputs = true;
  effect.extras = {{"target", Bytes{kIndexBytes} * rows(call).count()},
                   {"total_weight", Bytes{kStatisticBytes}}};
  return effect;
}

template <std::int64_t forward>
OperatorEffect loss_against_values(const RuleCall& call) {
  OperatorEffect effect = loss_of(call, forward);
  effect.keeps_inputs = true;
  effect.extras = {{"target", call.bytes(call.inputs.front())}};
  return effect;
}

OperatorEffect sum_loss(const RuleCall& call) {
  return loss_of(call, 1);
}

const std::vector<Attribute> kWindow = {{"kernel"}, {"stride", 0}, {"padding", 0}};
const std::vector<Attribute> kInPlace = {{"in_place", kWherePossible}};

const std::array kRules = {
    OperatorRule{"conv2d",
                 OperatorClass::convolution,
                 {{"channels"},
                  {"kernel"},
                  {"stride", 1},
                  {"padding", 0},
                  {"groups", 1},
                  {"dilation", 1},
                  {"bias", 1}},
                 conv2d,
                 "convolution; keeps x"},
    OperatorRule{"linear",
                 OperatorClass::matmul,
                 {{"features"}, {"bias", 1}},
                 linear,
                 "dense layer over the last dimension; keeps x; `tied: NAME` shares a weight"},
    OperatorRule{"batch_norm",
                 OperatorClass::normalization,
                 {},
                 batch_norm,
                 "keeps x and two vectors of statistics"},
    OperatorRule{"layer_norm",
                 OperatorClass::normalization,
                 {},
                 layer_norm,
                 "over the last dimension; keeps x and two numbers a row"},
    OperatorRule{"relu", OperatorClass::elementwise, kInPlace, relu, "keeps y"},
    OperatorRule{"relu6", OperatorClass::elementwise, kInPlace, relu6,
                 "in place it keeps a private copy of x, else x"},
    OperatorRule{"gelu", OperatorClass::elementwise, {}, keeps_x<10, 14>, "exact; keeps x"},
    OperatorRule{"silu", OperatorClass::elementwise, {}, keeps_x<5, 8>, "keeps x"},
    OperatorRule{"sigmoid", OperatorClass::elementwise, {}, keeps_y<4, 3>, "keeps y"},
    OperatorRule{"tanh", OperatorClass::elementwise, {}, keeps_y<6, 3>, "keeps y"},
    OperatorRule{"softmax",
                 OperatorClass::elementwise,
                 {},
                 keeps_y<5, 4>,
                 "over the last dimension; keeps y"},
    OperatorRule{"max_pool", OperatorClass::pooling, kWindow, max_pool,
                 "stride 0: the kernel; keeps x and 8 bytes an output element"},
    OperatorRule{"avg_pool", OperatorClass::pooling, kWindow, window_pool,
                 "stride 0: the kernel; keeps x"},
    OperatorRule{"adaptive_avg_pool",
                 OperatorClass::pooling,
                 {{"size"}},
                 adaptive_avg_pool,
                 "to size x size; keeps x"},
    OperatorRule{
        "global_avg_pool", OperatorClass::pooling, {}, global_avg_pool, "to a vector; keeps x"},
    OperatorRule{"dropout", OperatorClass::elementwise, {}, dropout, "keeps a mask"},
    OperatorRule{"flatten", OperatorClass::other, {}, flatten, "a view"},
    OperatorRule{"embedding",
                 OperatorClass::embedding,
                 {{"entries"}, {"features"}},
                 embedding,
                 "rows of a table; keeps the indices",
                 {},
                 {},
                 false,
                 true},
    OperatorRule{"position_embedding",
                 OperatorClass::embedding,
                 {{"entries"}},
                 position_embedding,
                 "adds learned positions; keeps their ids"},
    OperatorRule{"segment_embedding",
                 OperatorClass::embedding,
                 {{"entries"}},
                 segment_embedding,
                 "adds learned segments; keeps their ids"},
    OperatorRule{"attention_scores",
                 OperatorClass::attention,
                 {{"heads"}},
                 attention_scores,
                 "query times key; keeps both, in one storage with the value"},
    OperatorRule{"attention_context",
                 OperatorClass::attention,
                 {{"heads"}},
                 attention_context,
                 "probabilities times value; keeps both",
                 "values"},
    OperatorRule{"attention_core",
                 OperatorClass::attention,
                 {{"heads"}},
                 attention_core,
                 "fused attention; keeps query, key, value, the result and a number a row"},
    OperatorRule{"scale", OperatorClass::elementwise, {}, scale, "by a number, which it keeps"},
    OperatorRule{"causal_mask",
                 OperatorClass::elementwise,
                 {},
                 causal_mask,
                 "keeps one mask for batch and heads"},
    OperatorRule{"copy", OperatorClass::elementwise, {}, copy, "a contiguous copy; keeps nothing"},
    OperatorRule{"add",
                 OperatorClass::elementwise,
                 {{"in_place", 0}},
                 add,
                 "adds the value named by `skip`; keeps nothing",
                 "skip"},
    OperatorRule{"concat",
                 OperatorClass::elementwise,
                 {},
                 concat,
                 "joins the values named in `parts` along channels; keeps nothing",
                 {},
                 "parts"},
    OperatorRule{"log_softmax", OperatorClass::loss, {}, keeps_y<6, 4>, "keeps y"},
    OperatorRule{
        "nll_loss", OperatorClass::loss, {}, nll_loss, "keeps x and the labels", {}, {}, true},
    OperatorRule{"bce_with_logits_loss",
                 OperatorClass::loss,
                 {},
                 loss_against_values<8>,
                 "keeps x and targets",
                 {},
                 {},
                 true},
    OperatorRule{"mse_loss",
                 OperatorClass::loss,
                 {},
                 loss_against_values<3>,
                 "keeps x and targets",
                 {},
                 {},
                 true},
    OperatorRule{"sum_loss", OperatorClass::loss, {}, sum_loss, "keeps nothing", {}, {}, true},
};

}  // namespace

std::span<const OperatorRule> operator_rules() {
  return kRules;
}

const OperatorRule* find_rule(std::string_view kind) {
  const auto rule = std::ranges::find(kRules, kind, &OperatorRule::kind);
  return rule == kRules.end() ? nullptr : &*rule;
}

}  // namespace plimsoll
