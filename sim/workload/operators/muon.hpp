/// Muon's orthogonalization of a matrix's momentum (K. Jordan and others, "Muon: An optimizer for
/// hidden layers in neural networks", 2024, and the authors' PyTorch code).
///
/// The momentum M of a hidden weight is brought near to the closest matrix of orthonormal rows or
/// columns by five steps of Newton and Schulz in bf16, X <- a X + (b A + c A A) X with A = X X',
/// where X has no more rows than columns. A step of a matrix of m rows and n >= m columns multiplies
/// twice m m n and once m m m elements, each a multiplication and an addition: 4 m m n + 2 m m m
/// FLOPs. A convolution's weight is one matrix, [out, all else]; stacked weights of experts are as
/// many matrices. Everything else - embeddings, the last layer's weight, biases, gains - is updated
/// by AdamW.
#pragma once

#include "workload/operators/operator_rules.hpp"

namespace plimsoll {

/// From the gradients of a tensor of such matrices to what their parameters are changed by.
struct Orthogonalization {
  Flops flops;
  Bytes traffic;    ///< the gradient and the moment, in fp32, among it
  Bytes workspace;  ///< X, and what a step makes beside it
  std::uint32_t kernels = 0;
};

/// The momentum alone, of so many elements: what is in between is its direction, in bf16.
struct MuonMomentum {
  Bytes traffic;  ///< of the gradient and the moment, in fp32, and the direction
  Bytes direction;
  std::uint32_t kernels = 0;
};

[[nodiscard]] MuonMomentum muon_momentum(Elements elements);

/// Whether Muon takes it: a weight of a layer that multiplies by it.
[[nodiscard]] bool is_orthogonalized(OperatorClass of_layer, const Dims& parameter);

/// Precondition: is_orthogonalized(). O(1). Throws QuantityOverflow.
[[nodiscard]] Orthogonalization orthogonalization_of(OperatorClass of_layer, const Dims& parameter);

/// The same of a direction, in place: what is left without the momentum.
[[nodiscard]] Orthogonalization orthogonalization_of_direction(OperatorClass of_layer,
                                                               const Dims& parameter);

}  // namespace plimsoll
