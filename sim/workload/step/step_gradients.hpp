/// The gradients that a backward makes, of what its forward read and of parameters, and how several of the same add up
/// (training_step.hpp). Internal to this folder.
#pragma once

#include "workload/step/partial_step.hpp"

#include <string>

namespace plimsoll {

class StepGradients {
 public:
  explicit StepGradients(PartialStep& step) : step_(step) {}

  /// The gradient of the network's output, where no loss makes it.
  ValueGradient first(const NetworkOperator& op, OperatorSpec& spec);
  TensorId make(const std::string& of, Bytes bytes, OperatorSpec& spec);
  /// Of what holds a gradient of so many bytes, what is others': of a concatenation's, say.
  [[nodiscard]] Bytes rest_of(const ValueGradient& gradient, Bytes bytes) const;
  /// The parts of the incoming gradient before anything is made; the whole then takes their room.
  void join(const NetworkOperator& op, const ValueGradient& incoming, OperatorSpec& spec) const;
  /// What the operator adds to the gradient of one of its inputs.
  void contribute(const NetworkOperator& op, std::size_t i, const ValueGradient& incoming,
                  OperatorSpec& spec);
  void contribute(const NetworkOperator& op, const ValueGradient& incoming, OperatorSpec& spec);
  /// To the gradient of what the operator reads of a parameter.
  void contribute(const NetworkOperator& op, StepParameter& parameter, OperatorSpec& spec);
  /// A second gradient of the same parameter, or one in another type, is added to the first; `fused`:
  /// by the product that makes it.
  void contribute(StepParameter& parameter, OperatorSpec& spec, bool fused = false);

 private:
  [[nodiscard]] const NetworkValue& source_of(const NetworkValue& value) const;
  void add_to(const ValueGradient& gradient, Bytes bytes, OperatorSpec& spec) const;
  static void add_parts(Bytes bytes, OperatorSpec& spec);
  [[nodiscard]] const Dims* part_of(const NetworkOperator& op, std::size_t i) const;
  [[nodiscard]] bool fuses_accumulation(const NetworkOperator& op) const;
  [[nodiscard]] std::int64_t parameter_element() const;

  PartialStep& step_;
};

}  // namespace plimsoll
