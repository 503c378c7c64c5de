/// torch.autocast: parameters, inputs, their gradients and the optimizer's state in fp32, products
/// in 16 bits.
///
/// Each operator is on one of the lists of Autocast, as PyTorch's are ("Autocast Op Reference" of
/// its documentation; aten/src/ATen/autocast_mode.cpp of 1.13.1). Where an input has another type
/// than the list asks for, an operator of its own casts it, and what the operator keeps is the
/// copy; every reader makes one. The backward of a cast is a cast: a gradient has the type of its
/// value. Parameters of `low` operators are cast as well (training_step.hpp). Kernels that mix
/// types (an addition) read them as they are; a gradient is then made in each input's own type.
#pragma once

#include "workload/core/workload_options.hpp"
#include "workload/operators/operator_rules.hpp"

#include <optional>
#include <span>

namespace plimsoll {

/// The types of a network's values.
struct ValueTypes {
  DType full = DType::fp32;                  ///< of inputs and parameters
  DType low = DType::fp32;                   ///< of products; the same without autocast
  std::optional<DType> loss = std::nullopt;  ///< of losses, where another one was asked for
};

/// `dtype`: of inputs and parameters, where the options do not say.
[[nodiscard]] ValueTypes value_types(const WorkloadOptions& options, DType dtype);

/// The type that an operator computes in, and makes, whose inputs are of these types.
[[nodiscard]] DType type_under(Autocast list, const ValueTypes& types,
                               std::span<const DType> inputs);

/// Whether an input of type `input` is cast before an operator computes in `type`.
[[nodiscard]] bool casts(Autocast list, DType input, DType type);

/// A cast, as an operator of a network; no layer is one.
[[nodiscard]] const OperatorRule& cast_rule();

}  // namespace plimsoll
