#include "workload/operators/operator_rules.hpp"

#include "workload/operators/operator_effects.hpp"

#include <algorithm>

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

using enum OperatorClass;

std::vector<Attribute> operator+(std::vector<Attribute> some, const std::vector<Attribute>& more) {
  some.insert(some.end(), more.begin(), more.end());
  return some;
}

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
const std::vector<Attribute> kTransposedConvolution =
    kConvolution +
    std::vector<Attribute>{{"output_padding", 0}, {"output_padding_width", kAsHeight}};
/// 0: without a weight and a bias.
const std::vector<Attribute> kAffine = {{"affine", 1}};
const std::vector<Attribute> kInPlace = {{"in_place", kWherePossible}};
const std::vector<Attribute> kFused = {{"heads"}, {"causal", 0}, {"window", 0}};
const std::vector<Attribute> kFusedOfThree = {
    {"heads", 0}, {"kv_heads", 0}, {"causal", 0}, {"window", 0}};
const std::vector<Attribute> kRotary = {{"size", 0}, {"rotated", 0}};
/// Which rows of a mixture an expert gets.
const std::vector<Attribute> kDispatch = {
    {"experts"}, {"top_k"}, {"capacity", 0}, {"held", 0}, {"load", 100}};
/// Kept for a loss that is multiplied by a number before it is added to the others.
const std::vector<Attribute> kWeighted = {{"weighted", 0}};

// One short entry an operator.
// clang-format off
const OperatorRule kOperatorRules[] = {
    {"conv2d", convolution, Autocast::low, kConvolution, effect::conv2d, "convolution; keeps x"},
    {"conv_transpose2d", convolution, Autocast::low, kTransposedConvolution,
     effect::conv_transpose2d, "transposed convolution; keeps x"},
    {"linear", matmul, Autocast::low, {{"features"}, {"bias", 1}}, effect::linear,
     "dense layer over the last dimension; keeps x; `tied: NAME` shares a weight", {.link = kTied}},
    {"lstm", matmul, Autocast::unknown, {{"features"}, {"bias", 1}, {"fused", 0}}, effect::lstm,
     "over all positions; keeps x, and of each four gates, two cells and a state"},
    {"batch_norm", normalization, Autocast::input, kAffine, effect::batch_norm,
     "keeps x and two vectors of statistics"},
    {"batch_norm_relu", normalization, Autocast::input, {}, effect::batch_norm_relu,
     "one operator; keeps x, y and two vectors of statistics"},
    {"batch_norm_add_relu", normalization, Autocast::input, {}, effect::batch_norm_add_relu,
     "adds `skip` before the ReLU; keeps x, y and two vectors of statistics",
     {.second_input = "skip"}},
    {"layer_norm", normalization, Autocast::full, kAffine, effect::layer_norm,
     "over the last dimension; keeps x and two numbers a row"},
    {"group_norm", normalization, Autocast::full, {{"groups"}}, effect::group_norm,
     "of so many groups of channels; keeps x and two numbers a group and sample"},
    {"fused_rms_norm", normalization, Autocast::full, kAffine, effect::rms_norm,
     "over the last dimension, by its root mean square; keeps x and a number a row"},
    {"instance_norm", normalization, Autocast::input, {{"affine", 0}}, effect::instance_norm,
     "each channel of each sample; keeps x and two numbers each, with a weight three"},
    {"relu", elementwise, Autocast::input, kInPlace, effect::relu, "keeps y"},
    {"relu6", elementwise, Autocast::input, kInPlace, effect::relu6,
     "in place it keeps a private copy of x, else x"},
    {"leaky_relu", elementwise, Autocast::input, kInPlace, effect::leaky_relu,
     "in place it keeps y, else x"},
    {"hard_swish", elementwise, Autocast::input, kInPlace, effect::relu6,
     "in place it keeps a private copy of x, else x"},
    {"gelu", elementwise, Autocast::input, {}, effect::keeps_x<10, 14>, "exact; keeps x"},
    {"silu", elementwise, Autocast::input, {}, effect::keeps_x<5, 8>, "keeps x"},
    {"mish", elementwise, Autocast::input, {}, effect::keeps_x<7, 12>, "keeps x"},
    {"softplus", elementwise, Autocast::full, {}, effect::keeps_x<4, 4>, "keeps x"},
    {"elu", elementwise, Autocast::input, kInPlace, effect::leaky_relu,
     "in place it keeps y, else x; SELU and CELU, too"},
    {"hard_sigmoid", elementwise, Autocast::input, kInPlace, effect::relu6,
     "in place it keeps a private copy of x, else x"},
    {"exp", elementwise, Autocast::full, {}, effect::keeps_y<2, 1>, "keeps y"},
    {"sqrt", elementwise, Autocast::input, {}, effect::keeps_y<2, 2>, "keeps y"},
    {"rsqrt", elementwise, Autocast::full, {}, effect::keeps_y<3, 4>, "1 over the root; keeps y"},
    {"reciprocal", elementwise, Autocast::full, {}, effect::keeps_y<1, 3>, "keeps y"},
    {"log", elementwise, Autocast::full, {}, effect::keeps_x<2, 1>, "keeps x"},
    {"pow", elementwise, Autocast::full, {}, effect::keeps_x<2, 4>,
     "to the power of a number; keeps x"},
    {"abs", elementwise, Autocast::input, {}, effect::keeps_x<1, 2>, "keeps x"},
    {"sin", elementwise, Autocast::input, {}, effect::keeps_x<4, 5>, "keeps x"},
    {"cos", elementwise, Autocast::input, {}, effect::keeps_x<4, 6>, "keeps x"},
    {"neg", elementwise, Autocast::input, {}, effect::keeps_nothing<1, 1>,
     "times -1; keeps nothing"},
    {"sigmoid", elementwise, Autocast::input, {}, effect::keeps_y<4, 3>, "keeps y"},
    {"tanh", elementwise, Autocast::input, {}, effect::keeps_y<6, 3>, "keeps y"},
    {"swiglu", elementwise, Autocast::widest, {}, effect::swiglu,
     "SiLU, times the value named by `by`, as one operator; keeps both", {.second_input = "by"}},
    {"geglu", elementwise, Autocast::widest, {}, effect::geglu,
     "GELU, times the value named by `by`, as one operator; keeps both", {.second_input = "by"}},
    {"softmax", elementwise, Autocast::softmax, {}, effect::keeps_y<5, 4>,
     "over the last dimension; keeps y"},
    {"softmax_dropout", elementwise, Autocast::softmax, {}, effect::softmax_dropout,
     "both as one operator; keeps the softmax and a mask", {.is_random = true}},
    {"max_pool", pooling, Autocast::input, kWindow, effect::max_pool,
     "stride 0: the kernel; keeps x and 8 bytes an output element"},
    {"max_unpool", pooling, Autocast::input, {}, effect::max_unpool,
     "undoes the max_pool named by `pool`; keeps that one's indices", {.link = kPool}},
    {"avg_pool", pooling, Autocast::input, kWindow, effect::avg_pool,
     "stride 0: the kernel; keeps x"},
    {"adaptive_avg_pool", pooling, Autocast::input, {{"size"}}, effect::adaptive_avg_pool,
     "to size x size; keeps x"},
    {"global_avg_pool", pooling, Autocast::input, {{"kept", 1}}, effect::global_avg_pool,
     "to a vector; keeps x, or with `kept: 0` nothing"},
    {"global_sum", pooling, Autocast::parameter, {}, effect::global_sum,
     "to a vector; keeps nothing"},
    {"upsample", elementwise, Autocast::input, {{"factor"}}, effect::upsample,
     "factor times as high and wide; keeps nothing"},
    {"resize", elementwise, Autocast::input, {{"height"}, {"width"}}, effect::resize,
     "to so many rows and columns; keeps nothing"},
    {"pad", elementwise, Autocast::input, {{"top", 0}, {"bottom", 0}, {"left", 0}, {"right", 0}},
     effect::pad, "with so many rows and columns of a constant; keeps nothing"},
    {"dropout", elementwise, Autocast::input, {{"fused", 1}}, effect::dropout,
     "keeps a mask; not fused, as PyTorch on a CPU, a factor an element", {.is_random = true}},
    {"flatten", other, Autocast::input, {}, effect::flatten, "a view"},
    {"tokens", other, Autocast::input, {}, effect::tokens,
     "an image as one position a pixel; a view"},
    {"rows", other, Autocast::input, {{"features"}}, effect::rows_of,
     "values as rows of so many features; a view"},
    {"slice", other, Autocast::input, {{"features"}}, effect::slice,
     "so many features of each position; a view, so that all of them stay"},
    {"transpose", other, Autocast::input, {}, effect::transpose, "of matrices; a view"},
    {"split_heads", elementwise, Autocast::input, {{"heads"}, {"kv_heads", 0}}, effect::split_heads,
     "[heads, positions, features] of `kv_heads` heads, each repeated; keeps nothing"},
    {"join_heads", elementwise, Autocast::input, {}, effect::join_heads,
     "heads as [positions, features], copied; keeps nothing"},
    {"repeat_features", elementwise, Autocast::input, {{"times"}}, effect::repeat_features,
     "each position's features so many times, copied; keeps nothing"},
    {"row_mean", elementwise, Autocast::full, {{"kept", 1}}, effect::row_mean,
     "over the last dimension; keeps x, or with `kept: 0` nothing"},
    {"row_sum", elementwise, Autocast::full, {}, effect::row_sum,
     "over the last dimension; keeps nothing"},
    {"fused_rotary", elementwise, Autocast::input, kRotary, effect::rotary,
     "turns pairs of features by their position; keeps nothing"},
    {"rotate_half", elementwise, Autocast::input, kRotary, effect::rotate_half,
     "of each head the second half times -1, then the first; keeps nothing"},
    {"select", other, Autocast::input, {{"position", 0}}, effect::select,
     "one position, counted from 0; a view, so that all positions stay"},
    {"take", embedding, Autocast::input, {{"positions"}}, effect::take,
     "so many positions of a sequence, copied; keeps their ids"},
    {"merge_positions", elementwise, Autocast::input, {{"factor"}}, effect::merge_positions,
     "squares of factor x factor positions as one, copied; keeps nothing"},
    {"class_token", elementwise, Autocast::parameter, {}, effect::class_token,
     "puts a learned position in front; keeps nothing"},
    {"embedding", embedding, Autocast::parameter, {{"entries"}, {"features"}}, effect::embedding,
     "rows of a table; keeps the indices; `tied: NAME` shares a table",
     {.link = kTied, .reads_indices = true}},
    {"position_embedding", embedding, Autocast::parameter, {{"entries"}, {"kept", 1}},
     effect::position_embedding, "adds learned positions; keeps their ids, with `kept: 0` not"},
    {"segment_embedding", embedding, Autocast::parameter, {{"entries"}, {"kept", 1}},
     effect::segment_embedding, "adds learned segments; keeps their ids, with `kept: 0` not"},
    {"relative_bias", embedding, Autocast::widest, {{"buckets", 0}}, effect::relative_bias,
     "adds a number for each head and distance to scores, from a table of so many buckets, whose "
     "ids it keeps, or without from an earlier one"},
    {"attention_scores", attention, Autocast::low, {{"heads"}, {"windows", 1}},
     effect::attention_scores, "query times key; keeps both, in one storage with the value"},
    {"attention_context", attention, Autocast::low, {{"heads"}, {"windows", 1}},
     effect::attention_context,
     "probabilities times value; keeps both", {.second_input = "values"}},
    {"attention_core", attention, Autocast::low, kFused, effect::attention_core,
     "fused attention; keeps query, key, value, the result and a number a row"},
    {"dot_product_attention", attention, Autocast::low, kFusedOfThree, effect::dot_product_attention,
     "fused attention of query, key and value; keeps them, the result and a number a row",
     {.input_list = "of"}},
    {"product", attention, Autocast::low, {}, effect::product,
     "matrices times those named by `right`; keeps both", {.second_input = "right"}},
    {"window_bias", elementwise, Autocast::parameter, {{"heads"}, {"window"}},
     effect::window_bias,
     "adds to scores a learned number for each difference of positions in a square; keeps nothing"},
    {"masked_fill", elementwise, Autocast::input,
     {{"rows"}, {"columns"}, {"heads", 1}, {"per_sample", 0}, {"kept", 1}}, effect::masked_fill,
     "keeps a mask of the size before it is broadcast, with `kept: 0` not"},
    {"multiply", elementwise, Autocast::widest, {}, effect::times,
     "by the value named by `by`, which is broadcast; keeps both", {.second_input = "by"}},
    {"sub", elementwise, Autocast::widest, {}, effect::sub,
     "minus the value named by `by`, which is broadcast; keeps nothing", {.second_input = "by"}},
    {"div", elementwise, Autocast::widest, {}, effect::div,
     "by the value named by `by`, which is broadcast; keeps both", {.second_input = "by"}},
    {"bias", elementwise, Autocast::parameter, {{"elements"}, {"rows", 1}}, effect::bias,
     "adds so many learned numbers, broadcast; keeps nothing"},
    {"gain", elementwise, Autocast::parameter, {{"elements"}}, effect::gain,
     "times so many learned numbers, broadcast; keeps x"},
    {"shift", elementwise, Autocast::input, {}, effect::shift, "adds a number; keeps nothing"},
    {"scale", elementwise, Autocast::input, {{"kept", 1}}, effect::scale,
     "by a number, which it keeps, or by numbers that are there throughout"},
    {"causal_mask", elementwise, Autocast::input, {{"causal", 1}, {"window", 0}}, effect::causal_mask,
     "keeps one mask for batch and heads"},
    {"copy", elementwise, Autocast::input, {}, effect::keeps_nothing<0, 0>,
     "a contiguous copy; keeps nothing"},
    {"add", elementwise, Autocast::widest, {{"in_place", 0}}, effect::add,
     "adds the value named by `skip`; keeps nothing", {.second_input = "skip"}},
    {"concat", elementwise, Autocast::widest, {}, effect::concat,
     "joins the values named in `parts` along channels; keeps nothing", {.input_list = "parts"}},
    {"top_k", elementwise, Autocast::input, {{"k"}}, effect::top_k,
     "the largest of the last dimension; keeps their ids"},
    {"dispatch", embedding, Autocast::input, kDispatch, effect::dispatch,
     "a row for each position and expert that it takes, copied; keeps 16 bytes a row"},
    {"expert_linear", matmul, Autocast::low, {{"features"}, {"experts"}, {"held", 0}, {"bias", 0}},
     effect::expert_linear, "a dense layer for each expert over its rows; keeps x"},
    {"combine_rows", embedding, Autocast::input, {{"fused", 0}}, effect::combine_rows,
     "rows times their weight in `by`, summed over positions; keeps x, a weight a row and, not "
     "fused, the product", {.second_input = "by"}},
    // A cross-entropy asks for the type of its input by an argument, which autocast leaves alone.
    {"log_softmax", loss, Autocast::input, {}, effect::keeps_y<6, 4>, "keeps y"},
    {"nll_loss", loss, Autocast::full, kWeighted, effect::nll_loss, "keeps x and the labels",
     {.is_loss = true}},
    {"fused_cross_entropy_loss", loss, Autocast::input, kWeighted, effect::fused_cross_entropy_loss,
     "keeps x, a number a row and the labels", {.is_loss = true}},
    {"linear_cross_entropy", matmul, Autocast::low, {{"features"}, {"chunks", 0}},
     effect::linear_cross_entropy,
     "a dense layer without a bias and the cross-entropy, whose backward makes the logits again; "
     "keeps x, a number a row and the labels", {.link = kTied}},
    {"bce_with_logits_loss", loss, Autocast::full, kWeighted, effect::loss_against_values<8>,
     "keeps x and targets", {.is_loss = true}},
    {"mse_loss", loss, Autocast::full, kWeighted, effect::loss_against_values<3>,
     "keeps x and targets", {.is_loss = true}},
    {"sum_loss", loss, Autocast::input, kWeighted, effect::sum_loss, "keeps nothing",
     {.is_loss = true}},
};
// clang-format on

}  // namespace

RuleArguments default_arguments(const OperatorRule& rule) {
  RuleArguments arguments;
  for (const Attribute& attribute : rule.attributes)
    arguments.emplace_back(attribute.name, attribute.fallback);
  return arguments;
}

std::span<const OperatorRule> operator_rules() {
  return kOperatorRules;
}

const OperatorRule* find_rule(std::string_view kind) {
  const auto rule = std::ranges::find(kOperatorRules, kind, &OperatorRule::kind);
  return rule == std::ranges::end(kOperatorRules) ? nullptr : &*rule;
}

}  // namespace plimsoll
