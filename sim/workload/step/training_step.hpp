/// From a network to a training step.
///
/// Forward: one operator a layer (views are none). Backward, in reverse order: one operator for
/// each forward operator that has something to do, as autograd's nodes:
///   - it reads its output's gradient and what its forward kept, and makes the gradients of its
///     inputs and parameters; the network's input has none;
///   - additions and concatenations hand the same gradient on, views have nothing to do;
///   - where a gradient has arrived already, the new contribution takes it in, and the old storage
///     goes: the same bytes at every moment as adding into the first one, and every gradient has
///     one maker;
///   - of a value that is split into parts (query, key and value from one product) each reader
///     makes the gradient of its part; they are joined when the backward of what made the value
///     needs them, which PyTorch does in a node of its own;
///   - gradients of parameters stay, a second one for the same (a tied weight) is a workspace that
///     is added.
/// Optimizer: one operator for each layer with parameters (optimizer_rules.hpp). Where gradients
/// are clipped (R. Pascanu, T. Mikolov, Y. Bengio, ICML 2013; torch.nn.utils.clip_grad_norm_), one
/// before for each that sums the squares of its gradients, then one for each that scales them in
/// place: two kernels a tensor, or one each of a layer where the optimizer is fused (apex). The
/// norm itself, a number a tensor, is left out, and so is the sum of norms over devices.
///
/// What is not trained has no gradient, no state and no update; nothing is kept for it, and the
/// backward ends where nothing before it is trained. Of a weight of which a share is trained, the
/// product for its gradient is that share of the whole.
///
/// With `split_backward` the backward of a convolution or a linear layer is two operators:
/// `backward_input` makes the gradients of its inputs from the weight, `backward_weight`, right
/// after it, those of its parameters from its inputs, which are kept until then; so is the incoming
/// gradient, which both read. Either has the multiply-adds of its own products. What has nothing to
/// multiply a weight with is whole: with the gradients of inputs where it makes any (a
/// normalization makes those of its parameters in the same pass), else with those of weights (the
/// first layer, an embedding).
///
/// With `overlaps_exchanges` likewise that of a layer of which ranks exchange the gradient of the input:
/// they do so while the gradients of weights are made, of all layers that read the same value
/// (Megatron-LM's LinearWithGradAccumulationAndAsyncCommunication). Where a value was gathered, it is
/// gathered again while the gradients of inputs are made.
///
/// Types: values, parameters and gradients are all of `dtype`, optimizer state is fp32 (PyTorch's
/// optimizers keep theirs in the dtype of the parameters; a scenario in fp16 without master weights
/// is the older form of mixed precision, with an optimizer that computes in fp32). With
/// `master_weights` as Megatron-LM does it, 18 bytes a parameter with Adam (V. Korthikanti et al.,
/// "Reducing activation recomputation in large transformer models", 2022): parameters and values of
/// 2 bytes; a gradient of 4, to which each backward adds the one that it has made in `dtype`, or with
/// `fused_accumulation` matrix products add what they make (Megatron-LM's wgrad_gemm_accum_fp32);
/// master copies of 4, with the optimizer's state. In fp16 the loss is scaled: before the first
/// update all gradients are divided by the scale, in place, and checked. bf16 needs no scale.
///
/// With autocast (autocast.hpp) what a network's operators read and make is in two types. A
/// parameter that an operator reads in 16 bits is cast by an operator right before it, into a copy
/// of 2 bytes beside the 4; that of a trained one is cached, as PyTorch does, for all its readers
/// and until the forwards end. Backwards read the copy of a weight, not that of a bias, and make a
/// gradient of 2 bytes, which a cast adds to that of 4. The loss is scaled as above.
#pragma once

#include "workload/core/workload.hpp"
#include "workload/core/workload_options.hpp"
#include "workload/network/network.hpp"

#include <string>

namespace plimsoll {

struct StepOptions {
  Optimizer optimizer = Optimizer::none;
  bool split_backward = false;
  bool master_weights = false;  ///< of 16 bits to be ones of 32, with the optimizer
  bool scales_loss = false;     ///< and gradients back before the optimizer
  bool fused_optimizer = false;
  bool clips_gradients = false;
  bool fused_accumulation = false;  ///< with master weights
  Bytes state_element{4};  ///< of what the optimizer keeps, and of what it holds for a while
  bool overlaps_exchanges = false;  ///< where the backward is not split anyway
  bool momentum_is_apart = false;   ///< see optimizer_step.hpp
};

/// `dtype`: of parameters.
[[nodiscard]] StepOptions step_options(const WorkloadOptions& options, Optimizer optimizer,
                                       DType dtype);

/// O(operators). Throws QuantityOverflow where sizes are out of range.
[[nodiscard]] Workload build_step(const std::string& name, const Network& network,
                                  const StepOptions& options);

}  // namespace plimsoll
