#include "workload/operator_rules.hpp"

#include "workload/operator_effects.hpp"

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

std::int64_t bytes_of(ElementType type, std::int64_t value) {
  switch (type) {
    case ElementType::value:
      return value;
    case ElementType::boolean:
      return 1;
    case ElementType::statistic:
      return 4;
    case ElementType::index:
    case ElementType::number:
      return 8;
  }
  return value;
}

Bytes bytes(const KeptExtra& extra, std::int64_t value) {
  return Bytes{bytes_of(extra.type, value)} * elements_of(extra.dims).count();
}

std::int64_t RuleCall::operator[](std::string_view argument) const {
  return std::ranges::find(arguments, argument, [](const auto& a) { return a.first; })->second;
}

Bytes RuleCall::bytes(const Dims& dims) const {
  return Bytes{element} * batch * elements_of(dims).count();
}

Dims RuleCall::over_batch(const Dims& dims) const {
  Dims all = {batch};
  all.insert(all.end(), dims.begin(), dims.end());
  return all;
}

namespace {

const std::vector<Attribute> kWindow = {{"kernel"},
                                        {"stride", 0},
                                        {"padding", 0},
                                        {"ceil", 0},
                                        {"kernel_width", kAsHeight},
                                        {"stride_width", kAsHeight},
                                        {"padding_width", kAsHeight}};
const std::vector<Attribute> kConvolution = {{"channels"},
                                             {"kernel"},
                                             {"stride", 1},
                                             {"padding", 0},
                                             {"groups", 1},
                                             {"dilation", 1},
                                             {"bias", 1},
                                             {"kernel_width", kAsHeight},
                                             {"stride_width", kAsHeight},
                                             {"padding_width", kAsHeight},
                                             {"dilation_width", kAsHeight}};
/// Kept for a loss that is multiplied by a number before it is added to the others.
const std::vector<Attribute> kWeighted = {{"weighted", 0}};

std::vector<Attribute> operator+(std::vector<Attribute> some, const std::vector<Attribute>& more) {
  some.insert(some.end(), more.begin(), more.end());
  return some;
}
const std::vector<Attribute> kInPlace = {{"in_place", kWherePossible}};

const std::array kRules = {
    OperatorRule{"conv2d", OperatorClass::convolution, Autocast::low, kConvolution, effect::conv2d,
                 "convolution; keeps x"},
    OperatorRule{"conv_transpose2d", OperatorClass::convolution, Autocast::low,
                 kConvolution + std::vector<Attribute>{{"output_padding", 0},
                                                       {"output_padding_width", kAsHeight}},
                 effect::conv_transpose2d, "transposed convolution; keeps x"},
    OperatorRule{"linear",
                 OperatorClass::matmul,
                 Autocast::low,
                 {{"features"}, {"bias", 1}},
                 effect::linear,
                 "dense layer over the last dimension; keeps x; `tied: NAME` shares a weight",
                 {},
                 {},
                 false,
                 false,
                 kTied},
    OperatorRule{"lstm",
                 OperatorClass::matmul,
                 Autocast::unknown,
                 {{"features"}, {"bias", 1}, {"fused", 0}},
                 effect::lstm,
                 "over all positions; keeps x, and of each four gates, two cells and a state"},
    OperatorRule{"batch_norm",
                 OperatorClass::normalization,
                 Autocast::input,
                 {},
                 effect::batch_norm,
                 "keeps x and two vectors of statistics"},
    OperatorRule{"batch_norm_relu",
                 OperatorClass::normalization,
                 Autocast::input,
                 {},
                 effect::batch_norm_relu,
                 "one operator; keeps x, y and two vectors of statistics"},
    OperatorRule{"batch_norm_add_relu",
                 OperatorClass::normalization,
                 Autocast::input,
                 {},
                 effect::batch_norm_add_relu,
                 "adds `skip` before the ReLU; keeps x, y and two vectors of statistics",
                 "skip"},
    OperatorRule{"layer_norm",
                 OperatorClass::normalization,
                 Autocast::full,
                 {},
                 effect::layer_norm,
                 "over the last dimension; keeps x and two numbers a row"},
    OperatorRule{"group_norm",
                 OperatorClass::normalization,
                 Autocast::full,
                 {{"groups"}},
                 effect::group_norm,
                 "of so many groups of channels; keeps x and two numbers a group and sample"},
    OperatorRule{"instance_norm",
                 OperatorClass::normalization,
                 Autocast::input,
                 {{"affine", 0}},
                 effect::instance_norm,
                 "each channel of each sample; keeps x and two numbers each, with a weight three"},
    OperatorRule{"relu", OperatorClass::elementwise, Autocast::input, kInPlace, effect::relu,
                 "keeps y"},
    OperatorRule{"relu6", OperatorClass::elementwise, Autocast::input, kInPlace, effect::relu6,
                 "in place it keeps a private copy of x, else x"},
    OperatorRule{"leaky_relu", OperatorClass::elementwise, Autocast::input, kInPlace,
                 effect::leaky_relu, "in place it keeps y, else x"},
    OperatorRule{"hard_swish", OperatorClass::elementwise, Autocast::input, kInPlace, effect::relu6,
                 "in place it keeps a private copy of x, else x"},
    OperatorRule{"gelu",
                 OperatorClass::elementwise,
                 Autocast::input,
                 {},
                 effect::keeps_x<10, 14>,
                 "exact; keeps x"},
    OperatorRule{
        "silu", OperatorClass::elementwise, Autocast::input, {}, effect::keeps_x<5, 8>, "keeps x"},
    OperatorRule{
        "mish", OperatorClass::elementwise, Autocast::input, {}, effect::keeps_x<7, 12>, "keeps x"},
    OperatorRule{"softplus",
                 OperatorClass::elementwise,
                 Autocast::full,
                 {},
                 effect::keeps_x<4, 4>,
                 "keeps x"},
    OperatorRule{"elu", OperatorClass::elementwise, Autocast::input, kInPlace, effect::leaky_relu,
                 "in place it keeps y, else x; SELU and CELU, too"},
    OperatorRule{"hard_sigmoid", OperatorClass::elementwise, Autocast::input, kInPlace,
                 effect::relu6, "in place it keeps a private copy of x, else x"},
    OperatorRule{
        "exp", OperatorClass::elementwise, Autocast::full, {}, effect::keeps_y<2, 1>, "keeps y"},
    OperatorRule{
        "sqrt", OperatorClass::elementwise, Autocast::input, {}, effect::keeps_y<2, 2>, "keeps y"},
    OperatorRule{"rsqrt",
                 OperatorClass::elementwise,
                 Autocast::full,
                 {},
                 effect::keeps_y<3, 4>,
                 "1 over the root; keeps y"},
    OperatorRule{"reciprocal",
                 OperatorClass::elementwise,
                 Autocast::full,
                 {},
                 effect::keeps_y<1, 3>,
                 "keeps y"},
    OperatorRule{
        "log", OperatorClass::elementwise, Autocast::full, {}, effect::keeps_x<2, 1>, "keeps x"},
    OperatorRule{"pow",
                 OperatorClass::elementwise,
                 Autocast::full,
                 {},
                 effect::keeps_x<2, 4>,
                 "to the power of a number; keeps x"},
    OperatorRule{
        "abs", OperatorClass::elementwise, Autocast::input, {}, effect::keeps_x<1, 2>, "keeps x"},
    OperatorRule{
        "sin", OperatorClass::elementwise, Autocast::input, {}, effect::keeps_x<4, 5>, "keeps x"},
    OperatorRule{
        "cos", OperatorClass::elementwise, Autocast::input, {}, effect::keeps_x<4, 6>, "keeps x"},
    OperatorRule{"neg",
                 OperatorClass::elementwise,
                 Autocast::input,
                 {},
                 effect::keeps_nothing<1, 1>,
                 "times -1; keeps nothing"},
    OperatorRule{"sigmoid",
                 OperatorClass::elementwise,
                 Autocast::input,
                 {},
                 effect::keeps_y<4, 3>,
                 "keeps y"},
    OperatorRule{
        "tanh", OperatorClass::elementwise, Autocast::input, {}, effect::keeps_y<6, 3>, "keeps y"},
    OperatorRule{"softmax",
                 OperatorClass::elementwise,
                 Autocast::softmax,
                 {},
                 effect::keeps_y<5, 4>,
                 "over the last dimension; keeps y"},
    OperatorRule{"softmax_dropout",
                 OperatorClass::elementwise,
                 Autocast::softmax,
                 {},
                 effect::softmax_dropout,
                 "both as one operator; keeps the softmax and a mask"},
    OperatorRule{"max_pool", OperatorClass::pooling, Autocast::input, kWindow, effect::max_pool,
                 "stride 0: the kernel; keeps x and 8 bytes an output element"},
    OperatorRule{"max_unpool",
                 OperatorClass::pooling,
                 Autocast::input,
                 {},
                 effect::max_unpool,
                 "undoes the max_pool named by `pool`; keeps that one's indices",
                 {},
                 {},
                 false,
                 false,
                 kPool},
    OperatorRule{"avg_pool", OperatorClass::pooling, Autocast::input, kWindow, effect::avg_pool,
                 "stride 0: the kernel; keeps x"},
    OperatorRule{"adaptive_avg_pool",
                 OperatorClass::pooling,
                 Autocast::input,
                 {{"size"}},
                 effect::adaptive_avg_pool,
                 "to size x size; keeps x"},
    OperatorRule{"global_avg_pool",
                 OperatorClass::pooling,
                 Autocast::input,
                 {{"kept", 1}},
                 effect::global_avg_pool,
                 "to a vector; keeps x, or with `kept: 0` nothing"},
    OperatorRule{"global_sum",
                 OperatorClass::pooling,
                 Autocast::parameter,
                 {},
                 effect::global_sum,
                 "to a vector; keeps nothing"},
    OperatorRule{"upsample",
                 OperatorClass::elementwise,
                 Autocast::input,
                 {{"factor"}},
                 effect::upsample,
                 "factor times as high and wide; keeps nothing"},
    OperatorRule{"resize",
                 OperatorClass::elementwise,
                 Autocast::input,
                 {{"height"}, {"width"}},
                 effect::resize,
                 "to so many rows and columns; keeps nothing"},
    OperatorRule{"pad",
                 OperatorClass::elementwise,
                 Autocast::input,
                 {{"top", 0}, {"bottom", 0}, {"left", 0}, {"right", 0}},
                 effect::pad,
                 "with so many rows and columns of a constant; keeps nothing"},
    OperatorRule{"dropout",
                 OperatorClass::elementwise,
                 Autocast::input,
                 {{"fused", 1}},
                 effect::dropout,
                 "keeps a mask; not fused, as PyTorch on a CPU, a factor an element"},
    OperatorRule{"flatten", OperatorClass::other, Autocast::input, {}, effect::flatten, "a view"},
    OperatorRule{"tokens",
                 OperatorClass::other,
                 Autocast::input,
                 {},
                 effect::tokens,
                 "an image as one position a pixel; a view"},
    OperatorRule{"select",
                 OperatorClass::other,
                 Autocast::input,
                 {{"position", 0}},
                 effect::select,
                 "one position, counted from 0; a view, so that all positions stay"},
    OperatorRule{"take",
                 OperatorClass::embedding,
                 Autocast::input,
                 {{"positions"}},
                 effect::take,
                 "so many positions of a sequence, copied; keeps their ids"},
    OperatorRule{"class_token",
                 OperatorClass::elementwise,
                 Autocast::parameter,
                 {},
                 effect::class_token,
                 "puts a learned position in front; keeps nothing"},
    OperatorRule{"embedding",
                 OperatorClass::embedding,
                 Autocast::parameter,
                 {{"entries"}, {"features"}},
                 effect::embedding,
                 "rows of a table; keeps the indices",
                 {},
                 {},
                 false,
                 true},
    OperatorRule{"position_embedding",
                 OperatorClass::embedding,
                 Autocast::parameter,
                 {{"entries"}},
                 effect::position_embedding,
                 "adds learned positions; keeps their ids"},
    OperatorRule{"segment_embedding",
                 OperatorClass::embedding,
                 Autocast::parameter,
                 {{"entries"}},
                 effect::segment_embedding,
                 "adds learned segments; keeps their ids"},
    OperatorRule{"attention_scores",
                 OperatorClass::attention,
                 Autocast::low,
                 {{"heads"}},
                 effect::attention_scores,
                 "query times key; keeps both, in one storage with the value"},
    OperatorRule{"attention_context",
                 OperatorClass::attention,
                 Autocast::low,
                 {{"heads"}},
                 effect::attention_context,
                 "probabilities times value; keeps both",
                 "values"},
    OperatorRule{"attention_core",
                 OperatorClass::attention,
                 Autocast::low,
                 {{"heads"}},
                 effect::attention_core,
                 "fused attention; keeps query, key, value, the result and a number a row"},
    OperatorRule{
        "dot_product_attention",
        OperatorClass::attention,
        Autocast::low,
        {},
        effect::dot_product_attention,
        "fused attention of query, key and value; keeps them, the result and a number a row",
        {},
        "of"},
    OperatorRule{"product",
                 OperatorClass::attention,
                 Autocast::low,
                 {},
                 effect::product,
                 "matrices times those named by `right`; keeps both",
                 "right"},
    OperatorRule{"masked_fill",
                 OperatorClass::elementwise,
                 Autocast::input,
                 {{"rows"}, {"columns"}, {"heads", 1}, {"per_sample", 0}},
                 effect::masked_fill,
                 "keeps a mask of the size before it is broadcast"},
    OperatorRule{"multiply",
                 OperatorClass::elementwise,
                 Autocast::widest,
                 {},
                 effect::times,
                 "by the value named by `by`, which is broadcast; keeps both",
                 "by"},
    OperatorRule{"sub",
                 OperatorClass::elementwise,
                 Autocast::widest,
                 {},
                 effect::sub,
                 "minus the value named by `by`, which is broadcast; keeps nothing",
                 "by"},
    OperatorRule{"div",
                 OperatorClass::elementwise,
                 Autocast::widest,
                 {},
                 effect::div,
                 "by the value named by `by`, which is broadcast; keeps both",
                 "by"},
    OperatorRule{"bias",
                 OperatorClass::elementwise,
                 Autocast::parameter,
                 {{"elements"}},
                 effect::bias,
                 "adds so many learned numbers, broadcast; keeps nothing"},
    OperatorRule{"gain",
                 OperatorClass::elementwise,
                 Autocast::parameter,
                 {{"elements"}},
                 effect::gain,
                 "times so many learned numbers, broadcast; keeps x"},
    OperatorRule{"shift",
                 OperatorClass::elementwise,
                 Autocast::input,
                 {},
                 effect::shift,
                 "adds a number; keeps nothing"},
    OperatorRule{"scale",
                 OperatorClass::elementwise,
                 Autocast::input,
                 {{"kept", 1}},
                 effect::scale,
                 "by a number, which it keeps, or by numbers that are there throughout"},
    OperatorRule{"causal_mask",
                 OperatorClass::elementwise,
                 Autocast::input,
                 {},
                 effect::causal_mask,
                 "keeps one mask for batch and heads"},
    OperatorRule{"copy",
                 OperatorClass::elementwise,
                 Autocast::input,
                 {},
                 effect::keeps_nothing<0, 0>,
                 "a contiguous copy; keeps nothing"},
    OperatorRule{"add",
                 OperatorClass::elementwise,
                 Autocast::widest,
                 {{"in_place", 0}},
                 effect::add,
                 "adds the value named by `skip`; keeps nothing",
                 "skip"},
    OperatorRule{"concat",
                 OperatorClass::elementwise,
                 Autocast::widest,
                 {},
                 effect::concat,
                 "joins the values named in `parts` along channels; keeps nothing",
                 {},
                 "parts"},
    // A cross-entropy asks for the type of its input by an argument, which autocast leaves alone.
    OperatorRule{
        "log_softmax", OperatorClass::loss, Autocast::input, {}, effect::keeps_y<6, 4>, "keeps y"},
    OperatorRule{"nll_loss",
                 OperatorClass::loss,
                 Autocast::full,
                 kWeighted,
                 effect::nll_loss,
                 "keeps x and the labels",
                 {},
                 {},
                 true},
    OperatorRule{"bce_with_logits_loss",
                 OperatorClass::loss,
                 Autocast::full,
                 kWeighted,
                 effect::loss_against_values<8>,
                 "keeps x and targets",
                 {},
                 {},
                 true},
    OperatorRule{"mse_loss",
                 OperatorClass::loss,
                 Autocast::full,
                 kWeighted,
                 effect::loss_against_values<3>,
                 "keeps x and targets",
                 {},
                 {},
                 true},
    OperatorRule{"sum_loss",
                 OperatorClass::loss,
                 Autocast::input,
                 kWeighted,
                 effect::sum_loss,
                 "keeps nothing",
                 {},
                 {},
                 true},
};

}  // namespace

RuleArguments default_arguments(const OperatorRule& rule) {
  RuleArguments arguments;
  for (const Attribute& attribute : rule.attributes)
    arguments.emplace_back(attribute.name, attribute.fallback);
  return arguments;
}

std::span<const OperatorRule> operator_rules() {
  return kRules;
}

const OperatorRule* find_rule(std::string_view kind) {
  const auto rule = std::ranges::find(kRules, kind, &OperatorRule::kind);
  return rule == kRules.end() ? nullptr : &*rule;
}

}  // namespace plimsoll
