/// The functions behind the table of operator_rules.cpp: what each operator makes, keeps and costs,
/// and what they share. Each throws LayerError if its inputs or arguments are invalid.
#pragma once

#include "workload/operators/operator_rules.hpp"

#include <string>

namespace plimsoll::effect {

/// Throws LayerError: "expected `wanted`, found " and the first input's shape.
void require(bool good, const RuleCall& call, const std::string& wanted);
/// The first input, which must be [channels, height, width], or [positions, features].
[[nodiscard]] const Dims& image(const RuleCall& call);
[[nodiscard]] const Dims& sequence(const RuleCall& call);
/// Elements over the batch.
[[nodiscard]] Elements count(const RuleCall& call, const Dims& dims);
[[nodiscard]] Flops flops(Elements elements, std::int64_t each);
/// y of the shape of x, with so many FLOPs an element.
[[nodiscard]] OperatorEffect elementwise(const RuleCall& call, std::int64_t forward,
                                         std::int64_t backward);
/// Makes it a product of so many multiply-adds.
void multiply(OperatorEffect& effect, Elements macs);

// Windows that slide over images (window_effects.cpp).
OperatorEffect conv2d(const RuleCall& call);
OperatorEffect conv_transpose2d(const RuleCall& call);
OperatorEffect max_pool(const RuleCall& call);
OperatorEffect avg_pool(const RuleCall& call);
OperatorEffect adaptive_avg_pool(const RuleCall& call);
OperatorEffect global_avg_pool(const RuleCall& call);
OperatorEffect global_sum(const RuleCall& call);
OperatorEffect upsample(const RuleCall& call);
OperatorEffect resize(const RuleCall& call);
OperatorEffect pad(const RuleCall& call);
OperatorEffect max_unpool(const RuleCall& call);

OperatorEffect linear(const RuleCall& call);
OperatorEffect batch_norm(const RuleCall& call);
OperatorEffect batch_norm_relu(const RuleCall& call);
OperatorEffect batch_norm_add_relu(const RuleCall& call);
OperatorEffect layer_norm(const RuleCall& call);
OperatorEffect group_norm(const RuleCall& call);
OperatorEffect instance_norm(const RuleCall& call);
OperatorEffect relu(const RuleCall& call);
OperatorEffect relu6(const RuleCall& call);
OperatorEffect leaky_relu(const RuleCall& call);
OperatorEffect dropout(const RuleCall& call);
OperatorEffect softmax_dropout(const RuleCall& call);
OperatorEffect flatten(const RuleCall& call);
OperatorEffect tokens(const RuleCall& call);
OperatorEffect select(const RuleCall& call);
OperatorEffect take(const RuleCall& call);
OperatorEffect merge_positions(const RuleCall& call);
OperatorEffect class_token(const RuleCall& call);
OperatorEffect embedding(const RuleCall& call);
OperatorEffect position_embedding(const RuleCall& call);
OperatorEffect segment_embedding(const RuleCall& call);
OperatorEffect scale(const RuleCall& call);
OperatorEffect shift(const RuleCall& call);
OperatorEffect bias(const RuleCall& call);
OperatorEffect gain(const RuleCall& call);
OperatorEffect add(const RuleCall& call);
OperatorEffect times(const RuleCall& call);
OperatorEffect sub(const RuleCall& call);
OperatorEffect div(const RuleCall& call);
OperatorEffect concat(const RuleCall& call);

// Attention (attention_effects.cpp).
OperatorEffect attention_scores(const RuleCall& call);
OperatorEffect attention_context(const RuleCall& call);
OperatorEffect attention_core(const RuleCall& call);
OperatorEffect dot_product_attention(const RuleCall& call);
OperatorEffect ring_attention(const RuleCall& call);
OperatorEffect window_bias(const RuleCall& call);
OperatorEffect split_heads(const RuleCall& call);
OperatorEffect join_heads(const RuleCall& call);
OperatorEffect product(const RuleCall& call);
OperatorEffect relative_bias(const RuleCall& call);
OperatorEffect masked_fill(const RuleCall& call);
OperatorEffect causal_mask(const RuleCall& call);

// Beside attention: norms, positions, gates, views (transformer_effects.cpp).
OperatorEffect rms_norm(const RuleCall& call);
OperatorEffect row_mean(const RuleCall& call);
OperatorEffect row_sum(const RuleCall& call);
OperatorEffect rotary(const RuleCall& call);
OperatorEffect rotate_half(const RuleCall& call);
OperatorEffect swiglu(const RuleCall& call);
OperatorEffect geglu(const RuleCall& call);
OperatorEffect rows_of(const RuleCall& call);
OperatorEffect slice(const RuleCall& call);
OperatorEffect transpose(const RuleCall& call);
OperatorEffect repeat_features(const RuleCall& call);

// Mixtures of experts (expert_effects.cpp).
OperatorEffect top_k(const RuleCall& call);
OperatorEffect dispatch(const RuleCall& call);
OperatorEffect expert_linear(const RuleCall& call);
OperatorEffect combine_rows(const RuleCall& call);

// Recurrence (recurrent_effects.cpp).
OperatorEffect lstm(const RuleCall& call);

// Losses.
OperatorEffect loss_of(const RuleCall& call, std::int64_t forward);
OperatorEffect nll_loss(const RuleCall& call);
OperatorEffect sum_loss(const RuleCall& call);
OperatorEffect fused_cross_entropy_loss(const RuleCall& call);
OperatorEffect linear_cross_entropy(const RuleCall& call);

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

template <std::int64_t forward, std::int64_t backward>
OperatorEffect keeps_nothing(const RuleCall& call) {
  return elementwise(call, forward, backward);
}

template <std::int64_t forward>
OperatorEffect loss_against_values(const RuleCall& call) {
  OperatorEffect effect = loss_of(call, forward);
  effect.keeps_inputs = true;
  effect.extras.push_back({"target", call.over_batch(call.inputs.front())});
  return effect;
}

}  // namespace plimsoll::effect
