/// Copies of parameters in the type in which an operator reads them, under autocast (operators/autocast.hpp). Internal to
/// this folder.
#pragma once

#include "workload/step/step_gradients.hpp"

namespace plimsoll {

class ParameterCopies {
 public:
  ParameterCopies(PartialStep& step, StepGradients& gradients)
      : step_(step), gradients_(gradients) {}

  /// One cast for each. The copy of what is trained is cached until the forwards end, and read by
  /// all that tie to it.
  void copy_parameters(const NetworkOperator& op, StepLayer& layer);
  /// The gradients of copies that the layer made, in the parameters' type.
  void add_casts_back(const NetworkOperator& op, const StepLayer& layer);

 private:
  OperatorSpec cast_spec(const NetworkOperator& op, const StepParameter& parameter,
                         Phase phase) const;

  PartialStep& step_;
  StepGradients& gradients_;
};

}  // namespace plimsoll
