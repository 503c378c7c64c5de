/// What layers in fp8 run beside their products (operators/fp8.hpp): quantizations and transpositions. Internal to this
/// folder.
#pragma once

#include "workload/operators/fp8.hpp"
#include "workload/step/step_gradients.hpp"

#include <string>
#include <vector>

namespace plimsoll {

class Fp8Operators {
 public:
  Fp8Operators(PartialStep& step, StepGradients& gradients) : step_(step), gradients_(gradients) {}

  /// Of each weight one copy, for all that tie to it.
  void quantize_weights(const NetworkOperator& op, StepLayer& layer);
  /// The second layout, and what making both costs beside reading the value and writing them.
  void add_quantization(const NetworkOperator& op, OperatorSpec& spec);
  /// Of the copy of a weight, which has both layouts.
  [[nodiscard]] Bytes unread_in_forward(const NetworkOperator& op, std::size_t p) const;
  /// The incoming gradient in fp8; `spec` reads it.
  ValueGradient quantize_gradient(const NetworkOperator& op, const StepLayer& layer,
                                  const ValueGradient& incoming, OperatorSpec spec);
  /// Which layouts of its incoming gradient the backward of a layer reads: rows for the gradient of the
  /// input, columns for that of the weight.
  [[nodiscard]] Fp8Layouts gradient_layouts(const NetworkOperator& op) const;
  [[nodiscard]] Phase phase_of_gradient(Fp8Layouts layouts) const;
  /// In fp8, of the layer `op` and so many rows, the layouts each by itself: rows first.
  std::vector<TensorId> add_quantized_gradient(const NetworkOperator& op, const Dims& dims,
                                               Fp8Layouts layouts, const char* suffix);
  /// With `current`: a kernel that reads the value, and one that makes the scale of the result.
  void find_largest(Bytes of, OperatorSpec& spec) const;
  /// What was gathered by rows, by columns.
  TensorId transposed(const NetworkOperator& op, const StepLayer& layer, TensorId rows);
  /// After the updates, for all microbatches of the next step.
  void quantize_updated_weights();

 private:
  [[nodiscard]] Tensor whole_tensor(std::string name, Bytes bytes, const NetworkOperator& op) const;
  void add_weight_quantization(const StepParameter& parameter, OperatorSpec& spec) const;

  PartialStep& step_;
  StepGradients& gradients_;
};

}  // namespace plimsoll
