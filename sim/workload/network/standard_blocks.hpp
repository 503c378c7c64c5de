/// Blocks that every network may use, written in the layer language.
#pragma once

#include <string_view>

namespace plimsoll {

/// Where they are from, as their locations say; no file of the user's.
inline constexpr std::string_view kStandardOrigin = "standard blocks";

/// Where the `framework` is pytorch-2, attention and norms are its fused operators, and rotary
/// positions one operator, as compiled code has them; else all are what plain modules of PyTorch
/// 1.13 call. `fused` decides it for one block.
inline constexpr std::string_view kStandardBlocks = R"(
# Multi-head self-attention: query, key and value from one dense layer, attention, projection. Not
# fused it is separate products: scores, scaling, mask, softmax, dropout, context.
attention:
  with: {heads: required, causal: false, dropout: true, fused: pytorch_2}
  layers:
    - linear: {features: 3 * in, name: qkv}
    - attention_core: {heads: heads, causal: causal, repeat: fused}
    - attention_scores: {heads: heads, repeat: 1 - fused}
    - scale: {repeat: 1 - fused}
    - causal_mask: {repeat: causal * (1 - fused)}
    - softmax: {repeat: 1 - fused}
    - dropout: {repeat: dropout * (1 - fused)}
    - attention_context: {heads: heads, values: qkv, repeat: 1 - fused}
    - copy: {repeat: 1 - fused}
    - linear: in
# The same with one fused operator that never stores the scores.
fused_attention:
  with: {heads: required}
  layers:
    - linear: 3 * in
    - attention_core: heads
    - linear: in
# Attention of named values: query [t, heads d], key [s, kv_heads d], value [s, kv_heads e].
scaled_dot_product_attention:
  with: {heads: required, kv_heads: required, causal: false, window: 0, dropout: false, fused: pytorch_2}
  reads: [query, key, value]
  layers:
    - dot_product_attention: {of: [query, key, value], heads: heads, kv_heads: kv_heads, causal: causal,
                              window: window, repeat: fused}
    - split_heads: {from: value, heads: heads, kv_heads: kv_heads, repeat: 1 - fused, name: values}
    - split_heads: {from: key, heads: heads, kv_heads: kv_heads, repeat: 1 - fused}
    - transpose: {repeat: 1 - fused, name: keys}
    - split_heads: {from: query, heads: heads, repeat: 1 - fused}
    - product: {right: keys, repeat: 1 - fused}
    - scale: {repeat: 1 - fused}
    - causal_mask: {causal: causal, window: window, repeat: 1 - fused}
    - softmax: {repeat: 1 - fused}
    - dropout: {repeat: dropout * (1 - fused)}
    - product: {right: values, repeat: 1 - fused}
    - join_heads: {repeat: 1 - fused}
# Self-attention as language models of today have it: `kv_heads` heads of key and value, each for
# heads / kv_heads of the query, of `size` features; rotary positions; with `norm` a norm of each head
# of query and key before them; back to `out` features.
grouped_attention:
  with: {heads: required, kv_heads: required, size: required, out: required, causal: true, window: 0,
         rotary: true, norm: false, bias: false, dropout: false, fused: pytorch_2}
  layers:
    - linear: {from: input, features: heads * size, bias: bias, name: query}
    - head_norm: {heads: heads, size: size, repeat: norm}
    - rotary: {size: size, repeat: rotary, name: q}
    - linear: {from: input, features: kv_heads * size, bias: bias, name: key}
    - head_norm: {heads: kv_heads, size: size, repeat: norm}
    - rotary: {size: size, repeat: rotary, name: k}
    - linear: {from: input, features: kv_heads * size, bias: bias, name: value}
    - scaled_dot_product_attention: {heads: heads, kv_heads: kv_heads, causal: causal, window: window,
                                     dropout: dropout, fused: fused, reads: {query: q, key: k, value: value}}
    - linear: {features: out, bias: bias, name: projection}
# Multi-head latent attention (DeepSeek-AI, "DeepSeek-V2", arXiv 2405.04434): queries from a product of
# rank `query_rank`, keys and values from one of rank `rank`, of heads of `size` features without and
# `rotated` with positions, which all keys share, and values of `value` features.
latent_attention:
  with: {heads: required, query_rank: required, rank: required, size: required, rotated: required,
         value: required, out: required, fused: pytorch_2}
  layers:
    - linear: {from: input, features: query_rank, bias: false, name: query_latent}
    - rms_norm
    - linear: {features: heads * (size + rotated), bias: false, name: query}
    - rotary: {size: size + rotated, rotated: rotated, name: q}
    - linear: {from: input, features: rank + rotated, bias: false, name: latent}
    - slice: rotated
    - rotary: rotated
    - repeat_features: {times: heads, name: positions}
    - slice: {from: latent, features: rank}
    - rms_norm
    - linear: {features: heads * (size + value), bias: false, name: key_value}
    - slice: {features: heads * size, name: plain}
    - concat: {parts: [plain, positions], name: k}
    - slice: {from: key_value, features: heads * value, name: v}
    - scaled_dot_product_attention: {heads: heads, kv_heads: heads, causal: true, fused: fused,
                                     reads: {query: q, key: k, value: v}}
    - linear: {features: out, bias: false, name: projection}
# RMSNorm (B. Zhang, R. Sennrich, NeurIPS 2019), fused or composed.
rms_norm:
  with: {affine: true, fused: pytorch_2}
  layers:
    - fused_rms_norm: {affine: affine, repeat: fused}
    - pow: {repeat: 1 - fused}
    - row_mean: {repeat: 1 - fused}
    - shift: {repeat: 1 - fused}
    - rsqrt: {repeat: 1 - fused, name: deviation}
    - multiply: {from: input, by: deviation, repeat: 1 - fused}
    - gain: {elements: in, repeat: affine * (1 - fused)}
# That of each of `heads` heads of `size` features.
head_norm:
  with: {heads: required, size: required, fused: pytorch_2}
  layers:
    - rows: size
    - rms_norm: {fused: fused}
    - rows: heads * size
# Rotary positions (J. Su et al., "RoFormer", arXiv 2104.09864): of each head of `size` features (0: all
# are one) the last `rotated` turn (0: all); composed of two products, a concatenation and a sum.
rotary:
  with: {size: 0, rotated: 0, fused: pytorch_2}
  layers:
    - fused_rotary: {size: size, rotated: rotated, repeat: fused}
    - scale: {kept: false, repeat: 1 - fused, name: along}
    - rotate_half: {from: input, size: size, rotated: rotated, repeat: 1 - fused}
    - scale: {kept: false, repeat: 1 - fused}
    - add: {skip: along, repeat: 1 - fused}
# A gated MLP (N. Shazeer, arXiv 2002.05202): SwiGLU, or with `gelu` GeGLU, of `features` features, back
# to `out`; with `fused` gate and product are one operator.
gated_mlp:
  with: {features: required, out: required, gelu: false, bias: false, fused: false}
  layers:
    - linear: {features: features, bias: bias, name: up}
    - linear: {from: input, features: features, bias: bias, name: gate}
    - swiglu: {by: up, repeat: (1 - gelu) * fused}
    - geglu: {by: up, repeat: gelu * fused}
    - silu: {repeat: (1 - gelu) * (1 - fused)}
    - gelu: {repeat: gelu * (1 - fused)}
    - multiply: {by: up, repeat: 1 - fused}
    - linear: {features: out, bias: bias, name: down}
# A mixture of experts, gated MLPs, of which each position takes `top_k`: those of the largest
# probabilities, by a softmax or with `sigmoid` one by one, which then sum up to 1.
mixture:
  with: {experts: required, top_k: required, features: required, out: required, capacity: 0, held: 0,
         load: 100, sigmoid: false, fused: false}
  layers:
    - linear: {features: experts, bias: false}
    - sigmoid: {repeat: sigmoid}
    - softmax: {repeat: 1 - sigmoid}
    - top_k: {k: top_k, name: chosen}
    - row_sum: {name: total}
    - div: {from: chosen, by: total, name: weights}
    - dispatch: {from: input, experts: experts, top_k: top_k, capacity: capacity, held: held, load: load,
                 name: rows}
    - expert_linear: {features: features, experts: experts, held: held, name: up}
    - expert_linear: {from: rows, features: features, experts: experts, held: held}
    - swiglu: {by: up, repeat: fused}
    - silu: {repeat: 1 - fused}
    - multiply: {by: up, repeat: 1 - fused}
    - expert_linear: {features: out, experts: experts, held: held}
    - combine_rows: {by: weights, fused: fused}
)";

}  // namespace plimsoll
