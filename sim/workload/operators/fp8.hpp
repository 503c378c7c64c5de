/// Dense layers in fp8 as NVIDIA's Transformer Engine 2 runs them under PyTorch (its sources, Apache 2.0:
/// transformer_engine/pytorch/module/linear.py and base.py, tensor/float8_tensor.py,
/// tensor/float8_blockwise_tensor.py, tensor/mxfp8_tensor.py).
///
/// Everything between products is in 16 bits. Before a product its input, its weight and, in the
/// backward, the incoming gradient are quantized: values of 1 byte (E4M3; gradients E5M2, but E4M3 in
/// `block` and `mxfp8`) and scales. Tensor cores multiply rows by rows, so that each of the three is
/// made in two layouts: by rows, and by columns for the other product that reads it.
///
///   input     rows for the forward, which then go; columns for the gradient of the weight, which are
///             what a layer keeps. Layers that read the same value share one copy, as the fused
///             modules do (LayerNormLinear, LayerNormMLP)
///   weight    rows for the forward, columns for the gradient of the input; both stay until the
///             backward, or throughout where copies are cached (`is_first_microbatch`)
///   gradient  rows for the gradient of the input, columns for that of the weight
///
/// Products make 16 bits again, gradients of weights what they are without fp8. Biases are not
/// quantized. A quantization is one kernel that reads the value and writes both layouts; with `current`
/// two more come before it, of which one reads the value for its largest element.
///
/// What ranks of the tensor axis gather is quantized before. With a scale for each tensor, a rank keeps
/// the rows of its part, and transposes what it gathers again in the backward. Likewise of incoming
/// gradients (grad_output_preprocess() in base.py): rows are gathered and transposed, or both layouts.
///
/// Left out: that a norm or an activation writes fp8 itself, which saves a pass over its output; the
/// exchange of largest values between ranks, one number a tensor; how rows of experts are filled up, and
/// that each expert's have scales of their own.
#pragma once

#include "workload/core/workload_options.hpp"
#include "workload/operators/operator_rules.hpp"

namespace plimsoll {

enum class Quantized : std::uint8_t { values, weight };

/// Which of the two there are.
struct Fp8Layouts {
  bool rows = false, columns = false;
};

struct Fp8Matrix {
  std::int64_t rows = 1, columns = 1;
  std::int64_t count = 1;  ///< of such matrices: a weight for each expert
};

/// All dimensions but the last are rows, over the batch where there is one.
[[nodiscard]] Fp8Matrix fp8_matrix_of(const Dims& dims, std::int64_t batch);

/// With scales: one of 4 bytes for each tensor, or those of blocks, padded as the products read them.
[[nodiscard]] Bytes fp8_bytes(Fp8Recipe recipe, Quantized what, const Fp8Matrix& matrix,
                              Fp8Layouts layouts);

/// What a layer of so many products keeps from step to step: for each of input, weight, output, and
/// gradient of output and input, a scale and the largest values of `history` steps (`delayed`), or the
/// scale and the largest value of the last quantization (`current`).
[[nodiscard]] Bytes fp8_state(const Fp8& fp8, std::int64_t products);

/// Whether a tensor has one scale.
[[nodiscard]] bool scales_tensors(Fp8Recipe recipe);

/// Throws LayerError where a product cannot read the matrix: features come in 16, rows in 8; both in 32
/// with `mxfp8`. How rows fall to experts is not known, and they are not checked.
void check_fp8_matrix(Fp8Recipe recipe, const Fp8Matrix& matrix, bool is_of_experts);

/// Whether layers of the kind may compute in fp8.
[[nodiscard]] bool may_be_in_fp8(const OperatorRule& rule);

/// As an operator of a network; no layer is one. Its gradient is that of what it reads.
[[nodiscard]] const OperatorRule& quantize_rule();

}  // namespace plimsoll
