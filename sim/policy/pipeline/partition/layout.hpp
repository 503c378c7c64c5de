/// Megatron-LM's layout strings (`pipeline_model_parallel_layout`, as its documentation describes
/// them): which layers each stage of a pipeline holds.
///
///   layout = { ( symbol | "(" layout ")" ) [ "*" number ] | "," }
///   symbol = "E" | "t" | "m" | "L" | "|"
///
/// E is the embedding, t a transformer layer, m a layer of multi-token prediction, L the head and
/// the loss; `|` ends a stage, commas only help the reader. `Et|(tt|)*2tL` are four stages: Et, tt,
/// tt, tL. They are the slots of the pipeline, in the order of the network.
///
/// On a network, the t and m are its blocks, which its operators' names tell (`block_3/...`): E
/// holds what comes before the first of them, L what comes after the last. As Megatron asks, E is
/// there once and first, L once and last, and every t comes before an m. On an abstract chain every
/// symbol is a stage of the chain, and neither E nor L need be there; the loss has neither time nor
/// memory, so that L may be left over. Megatron's empty stages, whose devices hand on what they
/// receive, are refused: every slot holds something here.
#pragma once

#include "policy/pipeline/partition/partition.hpp"

#include <string>
#include <vector>

namespace plimsoll {

/// The symbols of every stage. Throws InputError, with the place in the text.
[[nodiscard]] std::vector<std::string> parse_layout(const Located<std::string>& layout);

/// Where the chain stages of a network's symbols begin.
struct LayoutUnits {
  std::size_t before = 0;           ///< chain stages of E
  std::vector<std::size_t> layers;  ///< where each block begins
  std::size_t after = 0;            ///< where L begins
};

/// Blocks are runs of stages whose operators have one prefix. O(stages).
[[nodiscard]] LayoutUnits layout_units(const Workload& workload, const ChainView& chain);

/// The cuts of `layout`. Throws InputError where its stages are not `slots`, or its layers not
/// those of the workload. O(stages of the chain + length).
[[nodiscard]] Partition layout_partition(const Problem& problem, const Located<std::string>& layout,
                                         std::size_t slots);

}  // namespace plimsoll
