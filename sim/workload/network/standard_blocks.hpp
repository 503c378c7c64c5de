/// Blocks that every network may use, written in the layer language.
#pragma once

#include <string_view>

namespace plimsoll {

/// Where they are from, as their locations say; no file of the user's.
inline constexpr std::string_view kStandardOrigin = "standard blocks";

inline constexpr std::string_view kStandardBlocks = R"(
# Multi-head self-attention as separate products: query, key and value from one dense layer, scores,
# scaling, mask, softmax, dropout, context, projection.
attention:
  with: {heads: required, causal: false, dropout: true}
  layers:
    - linear: {features: 3 * in, name: qkv}
    - attention_scores: heads
    - scale
    - causal_mask: {repeat: causal}
    - softmax
    - dropout: {repeat: dropout}
    - attention_context: {heads: heads, values: qkv}
    - copy
    - linear: in
# The same with one fused operator that never stores the scores.
fused_attention:
  with: {heads: required}
  layers:
    - linear: 3 * in
    - attention_core: heads
    - linear: in
)";

}  // namespace plimsoll
