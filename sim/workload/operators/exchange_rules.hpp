/// What ranks that divide layers among them exchange between layers, as operators of a network; no
/// layer of a file is one. After M. Shoeybi et al., "Megatron-LM: Training multi-billion parameter
/// language models using model parallelism", arXiv 1909.08053, section 3 (`f` and `g`), and V.
/// Korthikanti et al., "Reducing activation recomputation in large transformer models", arXiv
/// 2205.05198, section 4.2 (the same with divided positions).
///
///                     forward                        backward
///   copy to ranks     nothing: each rank has x       all-reduce of the gradient
///   sum of ranks      all-reduce of x, in place      nothing
///   gather positions  all-gather                     reduce-scatter
///   scatter positions reduce-scatter                 all-gather
///
/// Ranks that divide the experts of a mixture hand each other the rows for these, and the results back
/// (D. Lepikhin et al., "GShard: Scaling giant models with conditional computation and automatic
/// sharding", ICLR 2021, section 3.3):
///
///   swap rows         all-to-all                     all-to-all
#pragma once

#include "workload/operators/operator_rules.hpp"

namespace plimsoll {

[[nodiscard]] const OperatorRule& copy_to_ranks_rule();
[[nodiscard]] const OperatorRule& sum_of_ranks_rule();
/// Argument: `ranks`.
[[nodiscard]] const OperatorRule& gather_positions_rule();
[[nodiscard]] const OperatorRule& scatter_positions_rule();

/// Of rows in equal parts for the ranks of the expert axis those that are for this one.
[[nodiscard]] const OperatorRule& swap_rows_rule();

/// Attention of query, key and value of which each rank has a part of the positions: blocks of keys and
/// values pass round all ranks while each computes with the one before (H. Liu, M. Zaharia, P. Abbeel,
/// "Ring attention with blockwise transformers for near-infinite context", ICLR 2024, section 3). The
/// arguments of `dot_product_attention`, and `ranks`.
[[nodiscard]] const OperatorRule& ring_attention_rule();

/// What a rank knows of each row of its part of the logits, a number of 4 bytes. Its maximum, the
/// sum of its exponentials and the logit of its label are each made of those of all ranks.
[[nodiscard]] const OperatorRule& row_statistic_rule();
inline constexpr int kRowStatistics = 3;

}  // namespace plimsoll
