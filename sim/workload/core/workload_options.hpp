/// What a scenario states about a workload beside its file.
#pragma once

#include "base/format.hpp"
#include "platform/core/platform.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace plimsoll {

enum class Optimizer : std::uint8_t {
  none,
  sgd,
  sgd_momentum,
  adam,
  adamw,
  adamw_hf,
  bert_adam,
  adadelta,
  adam_8bit,
  adamw_8bit,
  adafactor,
  lion,
  muon
};
enum class Loss : std::uint8_t {
  cross_entropy,
  fused_cross_entropy,
  bce_with_logits,
  mse,
  sum,
  none
};

/// Whose operators a network consists of, where standard blocks differ by it
/// (workload/network/standard_blocks.hpp).
enum class Framework : std::uint8_t { pytorch_1_13, pytorch_2 };

/// State in fp32, as multiples of the parameters: momentum; first and second moment. Nothing where
/// it follows from the parameters' shapes (optimizer_rules.hpp).
[[nodiscard]] std::optional<std::int64_t> states_of(Optimizer optimizer);

/// Which parameters of a layer are trained.
struct Trained {
  enum class What : std::uint8_t { all, bias, none };
  What what = What::all;
  /// Of the output channels of its weight, rounded up; all other parameters are trained whole.
  Ratio share = kWhole;
};

/// Widths of a layer's elements in bits, where they are not those of the network's type.
struct ElementBits {
  std::optional<std::int64_t>
      activations;                        ///< of what it makes, and keeps beside inputs and output
  std::optional<std::int64_t> weights;    ///< of its parameters
  std::optional<std::int64_t> gradients;  ///< of those of what it makes and of its parameters

  [[nodiscard]] bool are_given() const { return activations || weights || gradients; }
  /// These, and where they say nothing what `outer` says.
  [[nodiscard]] ElementBits within(const ElementBits& outer) const {
    return {activations ? activations : outer.activations, weights ? weights : outer.weights,
            gradients ? gradients : outer.gradients};
  }
};

/// E. Hu et al., "LoRA: low-rank adaptation of large language models", ICLR 2022: beside each linear
/// layer of these names, whose own parameters are frozen, one to `rank` features and one back, times
/// a number. Nothing else is trained that does not say so.
struct LowRank {
  Located<std::int64_t> rank;
  std::vector<Located<std::string>> of;  ///< names of layers, `*` for any characters
};

/// How values are scaled to fp8 (operators/fp8.hpp).
enum class Fp8Recipe : std::uint8_t {
  none,     ///< as if nothing were said of fp8
  delayed,  ///< a scale for each tensor, from the largest values of earlier steps
  current,  ///< a scale for each tensor, from its own largest value
  block,    ///< a scale for 128 values in a row, of weights for 128 x 128
  mxfp8     ///< a scale of 1 byte for 32 values in a row
};

/// Dense layers in fp8, as Transformer Engine runs them (operators/fp8.hpp).
struct Fp8 {
  Fp8Recipe recipe = Fp8Recipe::delayed;
  std::int64_t history = 1024;  ///< of `delayed`: steps whose largest values are kept
  /// Whether one copy of each weight in fp8 serves all microbatches of a step.
  bool caches_weights = true;
};

/// The ranks that divide each layer of a network among them.
struct TensorAxis {
  Location where;
  std::int64_t ranks = 1;
  /// Where it is said that they divide the positions of what is whole on each otherwise.
  std::optional<Location> sequence;
  /// Exchanges of backwards run beside the products for gradients of weights (training_step.hpp).
  bool overlaps = false;
};

/// A number of a network that a scenario overrides: `with: {width: 8}`.
using NamedIntegers = std::vector<std::pair<Located<std::string>, std::int64_t>>;

/// What is not given is as in the file; where the file says nothing either: batch 1, the whole
/// batch as one microbatch, no optimizer, fp32, cross-entropy.
struct WorkloadOptions {
  std::optional<std::int64_t> batch;
  /// Samples of one microbatch. Networks are built at this size; what a chain or a graph gives is
  /// that of one microbatch already.
  std::optional<std::int64_t> microbatch;
  /// Microbatches that one processor runs one after the other before the optimizer; a step without
  /// it runs its mini-batch as one, and makes its gradients anew. build() makes one of them.
  std::optional<std::int64_t> accumulate;
  std::optional<DType> dtype;
  std::optional<Optimizer> optimizer;
  std::optional<Loss> loss;  ///< networks of layers only
  /// The type to which logits are cast before the loss; networks of layers in 16 bits only.
  std::optional<Located<DType>> loss_dtype;
  /// The type of the optimizer's state; networks of layers in 16 bits only, without fp32 copies.
  std::optional<Located<DType>> state_dtype;
  std::optional<Located<Framework>> framework;  ///< networks of layers only
  NamedIntegers with;                           ///< networks of layers only
  /// Of layers that do not say it themselves; networks only. Default: all of it.
  std::optional<Trained> trained;
  /// The first layer, or block, that is trained: all before it is frozen. Networks only.
  std::optional<Located<std::string>> trained_from;
  std::optional<LowRank> lora;  ///< networks of layers only
  /// Of layers that do not say it themselves; networks of layers only.
  std::optional<Located<ElementBits>> bits;
  /// Networks of layers in 16 bits only (operators/fp8.hpp).
  std::optional<Located<Fp8>> fp8;
  /// Networks of layers only (divided_network.hpp).
  std::optional<TensorAxis> tensor;
  /// Initializers of an ONNX file that are no parameters, `*` for any characters.
  std::vector<Located<std::string>> buffers;
  /// fp32 copies of parameters in fp16 or bf16; networks only (training_step.hpp).
  bool master_weights = false;
  /// fp16 or bf16: the type in which products run of a network in fp32 or tf32; networks only
  /// (autocast.hpp).
  std::optional<DType> autocast;
  /// Where it is said that each update is one kernel, without temporaries; networks only
  /// (optimizer_rules.hpp).
  std::optional<Location> fuses_optimizer;
  /// Where it is said that products add to the gradients of `master_weights` themselves
  /// (training_step.hpp).
  std::optional<Location> fuses_accumulation;
  /// Where it is said that gradients are scaled to a norm before the update; networks only
  /// (training_step.hpp).
  std::optional<Location> clips_gradients;
  bool split_backward = false;  ///< see chain_workload.hpp, training_step.hpp
  /// Muon's momentum is an operator of its own, as several ranks, or memories, have parts of it
  /// (optimizer_step.hpp).
  bool momentum_is_apart = false;
  /// What the host takes once a step, on every processor that works; chains may say it themselves.
  std::optional<Time> step_overhead;
  /// Ranks that divide the positions of every sample among them; networks of layers only.
  std::optional<Located<std::int64_t>> context;
  /// Ranks that divide the experts of mixtures among them; networks of layers only.
  std::optional<Located<std::int64_t>> expert;
};

inline constexpr std::int64_t kMaxBatch = 1'000'000'000;
inline constexpr const char* kStepOverheadText =
    "what the host takes once a step, after the optimizer, on every processor that works; default "
    "0 s";

[[nodiscard]] Format<std::int64_t> batch_format();
[[nodiscard]] Format<Optimizer> optimizer_format();
[[nodiscard]] Format<Loss> loss_format();
[[nodiscard]] Format<Framework> framework_format();
/// fp32, fp16 or bf16.
[[nodiscard]] Format<DType> dtype_format();
/// fp16 or bf16.
[[nodiscard]] Format<DType> autocast_format();
/// fp32.
[[nodiscard]] Format<DType> loss_dtype_format();
/// {rank: 16, of: [...]}
[[nodiscard]] Format<LowRank> lora_format();
/// `all`, `bias`, `none`, or a share: 25 %.
[[nodiscard]] Format<Trained> trained_format();
/// {activations: 8, weights: 8, gradients: 8}
[[nodiscard]] Format<ElementBits> bits_format();
/// A recipe, or {recipe: delayed, history: 1024, weights: cached}
[[nodiscard]] Format<Fp8> fp8_format();
[[nodiscard]] Format<NamedIntegers> with_format();

}  // namespace plimsoll
