#include "workload/step/parameter_copies.hpp"

#include "workload/operators/autocast.hpp"

#include <utility>

namespace plimsoll {

void ParameterCopies::copy_parameters(const NetworkOperator& op, StepLayer& layer) {
  for (const std::size_t p : layer.used) {
    StepParameter& parameter = step_.parameters[p];
    if (parameter.copy != kNoTensor) continue;
    const bool is_cached = !parameter.trained.empty();
    const std::string& name = step_.builder[parameter.tensor].name;
    Tensor copy{name + ".copy",
                Bytes{bytes_per_element(op.type)} * elements_of(parameter.dims).count(),
                TensorClass::activation,
                Lifetime::step,
                kNoTensor,
                is_cached};
    parameter.copy = step_.builder.add(std::move(copy));
    OperatorSpec spec = cast_spec(op, parameter, Phase::forward);
    spec.reads = {parameter.tensor};
    spec.kept = {parameter.copy};
    layer.cast.push_back(p);
    parameter.cast = step_.add_whole(std::move(spec));
  }
}

void ParameterCopies::add_casts_back(const NetworkOperator& op, const StepLayer& layer) {
  for (const std::size_t p : layer.cast) {
    StepParameter& parameter = step_.parameters[p];
    if (parameter.copy_gradient == kNoTensor) continue;
    OperatorSpec spec = cast_spec(op, parameter, Phase::backward);
    if (step_.options.split_backward) spec.phase = Phase::backward_weight;
    spec.forward = parameter.cast;
    spec.reads = {parameter.copy_gradient};
    gradients_.contribute(parameter, spec);
    step_.add_whole(std::move(spec));
  }
}

OperatorSpec ParameterCopies::cast_spec(const NetworkOperator& op, const StepParameter& parameter,
                                        Phase phase) const {
  const std::string& name = step_.builder[parameter.tensor].name;
  OperatorSpec spec = step_.layer_spec(op, phase);
  spec.name += "_cast" + ("_" + name.substr(name.rfind('.') + 1));
  spec.operator_class = cast_rule().operator_class;
  spec.is_random = false;
  return spec;
}

}  // namespace plimsoll
