/// How the ranks of a tensor axis divide the layers of a network among them.
///
/// A dense layer that reads whole values may be divided by columns: each rank makes its part of the
/// features. One that reads such parts is divided by rows: each rank makes a part of every sum, and
/// the ranks add these up. Between the two, operators work on parts: attention on a rank's heads,
/// activations on its features. So a layer is divided by columns where all that reads its output, up
/// to the next dense layer or the loss, can work on parts. A table of embeddings is divided by
/// entries, as is the last layer, of which the loss then sees a rank's part of the vocabulary (M.
/// Shoeybi et al., "Megatron-LM", arXiv 1909.08053, section 3).
///
/// The few features between the two products of a low-rank adapter are on every rank: beside a layer
/// divided by columns the first product is whole and the second divided by columns, beside one divided by
/// rows the first by rows and the second is whole (LoraParallelLinear of Hugging Face's PEFT).
///
/// Everything else is whole on each rank, or, with `sequence`, there for a rank's part of the positions
/// (V. Korthikanti et al., arXiv 2205.05198, section 4.2).
#pragma once

#include "workload/network/network_builder.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace plimsoll {

/// What a rank holds of a value.
enum class Part : std::uint8_t {
  whole,
  copied,     ///< all of it, but a part of its gradient
  partial,    ///< a part of every sum
  positions,  ///< the first dimension of [positions, features]
  features,   ///< the last dimension
  heads,      ///< the first dimension of [heads, ..]
  rows        ///< the first dimension of [positions x heads, features]
};

/// What becomes of one call.
struct DividedCall {
  std::vector<std::string_view> divided;  ///< arguments of which a rank has a part
  std::vector<bool> reads_copied;         ///< by input: it must be Part::copied
  Part output = Part::whole;
  bool sums_output = false;  ///< Part::partial, made whole
  bool sums_rows = false;    ///< a loss of rows that are divided
  bool makes_partial_gradients = false;
};

/// 0 where the call has no such argument.
[[nodiscard]] std::int64_t argument_of(const NetworkCall& call, std::string_view name);

/// Whether an operator of the kind works on each position alone, or on rows of them.
[[nodiscard]] bool works_on_positions(std::string_view kind);

/// By call. Throws InputError at the axis, with what it does not divide and the numbers that divide all. O(calls + inputs).
[[nodiscard]] std::vector<DividedCall> divide(const Network& network,
                                              std::span<const NetworkCall> calls,
                                              const TensorAxis& axis);

}  // namespace plimsoll
