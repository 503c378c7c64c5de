/// What every optimizer keeps for a parameter, and holds while it updates one.
///
/// State is fp32 but where said otherwise; where a scenario states another type (`state_dtype`), moments,
/// and what is held for a while, are of that. Parameters are updated one after the other, by the
/// operators of PyTorch 1.13.1 (torch/optim, `_single_tensor_*`), each of which reads and writes
/// its operands: 8 passes over a parameter's elements by 3 kernels for sgd-momentum, 20 by 8 for
/// adam, 22 by 9 for adamw. Its `foreach` makes as many passes, and would hold the temporaries of
/// all parameters at once. The 8-bit ones are one kernel each, without temporaries, and so are the
/// others where the optimizer is fused (PyTorch's `fused`, apex): all that is read and written is
/// then, once.
///
///   sgd, sgd-momentum  no state; one value a parameter
///   adam, adamw        D. Kingma, J. Ba, ICLR 2015; I. Loshchilov, F. Hutter, ICLR 2019: two
///                      moments; a root and a quotient are held
///   adamw-hf           adamw as Hugging Face's Transformers had it until 2024, the default of its
///                      Trainer, at the decay of weights that this sets, 0; 18 passes by 7 kernels;
///                      a root is held
///   bert-adam          J. Devlin and others, NAACL 2019, as BertAdam of NVIDIA's examples has it:
///                      adamw without correction of its moments' bias, which clips each tensor's
///                      gradient; 32 passes by 14 kernels, and three values are held
///   adadelta           M. Zeiler, arXiv 1212.5701: means of squared gradients and of squared
///                      updates; 27 passes by 11 kernels; a root and the update are held
///   adam-8bit,         T. Dettmers, M. Lewis, S. Shleifer, L. Zettlemoyer, "8-bit optimizers via
///   adamw-8bit         block-wise quantization", ICLR 2022: two moments of 1 byte, and the largest
///                      magnitude of every block of 2,048 in fp32. As in the authors' library,
///                      tensors of less than 4,096 elements keep fp32 moments; its two maps of 256
///                      values for all parameters together are left out
///   adafactor          N. Shazeer, M. Stern, ICML 2018, without momentum: of a vector the second
///                      moment; of all else its means over the last dimension, and over the last
///                      but one. The squared gradient and the update are held.
///                      How tensors of more than two dimensions are factored the paper leaves open:
///                      as in the PyTorch implementations; 21 passes in that of Hugging Face, by 24
///                      kernels, or 16 for a vector
///   lion               X. Chen and others, "Symbolic discovery of optimization algorithms", NeurIPS
///                      2023, as the authors' PyTorch code has it: one moment; 19 passes by 8
///                      kernels; both terms of the update and their sum are held
///   muon               one moment of the matrices that it makes orthogonal (muon.hpp); then 5 passes
///                      by 2 kernels. All other parameters have adamw
#pragma once

#include "workload/core/workload_options.hpp"
#include "workload/operators/operator_rules.hpp"

#include <string>
#include <utility>
#include <vector>

namespace plimsoll {

/// The tensors that stay, by name; `element`: of a moment that is neither quantized nor factored.
/// Throws QuantityOverflow.
[[nodiscard]] std::vector<std::pair<std::string, Bytes>> optimizer_state(Optimizer optimizer,
                                                                         const Dims& parameter,
                                                                         Bytes element = Bytes{4});
/// Held while a tensor of so many elements is updated.
[[nodiscard]] Bytes optimizer_temporaries(Optimizer optimizer, Elements parameter,
                                          Bytes element = Bytes{4});
/// Read and written of a tensor of so many elements beyond each of its values and states once.
[[nodiscard]] Bytes repeated_passes(Optimizer optimizer, Elements parameter,
                                    Bytes element = Bytes{4});
/// What Muon has made orthogonal, in bf16.
[[nodiscard]] Bytes orthogonal_bytes(Elements parameter);
/// That update it, where the optimizer is not fused.
[[nodiscard]] std::uint32_t update_kernels(Optimizer optimizer, const Dims& parameter);
/// FLOPs of one step, for each element.
[[nodiscard]] std::int64_t update_flops(Optimizer optimizer);

}  // namespace plimsoll
