#include "workload/step/fp8_operators.hpp"

#include <algorithm>
#include <utility>

namespace plimsoll {

void Fp8Operators::quantize_weights(const NetworkOperator& op, StepLayer& layer) {
  const StepParameter& weight = step_.parameters[layer.used.front()];
  if (const Bytes state = fp8_state(*step_.network.fp8, weight.products()); state > Bytes{})
    layer.fp8_state = step_.builder.add(whole_tensor(op.name + ".fp8_state", state, op));
  for (const std::size_t p : layer.used) {
    StepParameter& parameter = step_.parameters[p];
    if (parameter.is_bias || parameter.quantized != kNoTensor) continue;
    const Fp8Weight its = fp8_weight(step_.network, op, parameter.dims);
    const std::string name = step_.builder[parameter.tensor].name + ".fp8";
    parameter.quantized_rows = its.rows;
    if (step_.network.fp8->caches_weights) {
      parameter.quantized = step_.builder.add(whole_tensor(name, its.bytes, op));
      continue;
    }
    parameter.quantized =
        step_.add_tensor(name, its.bytes, TensorClass::activation, Lifetime::step);
    OperatorSpec spec = step_.layer_spec(op, Phase::forward);
    spec.name += "_quantize_weight";
    add_weight_quantization(parameter, spec);
    spec.kept = {parameter.quantized};
    step_.add_whole(std::move(spec));
  }
}

void Fp8Operators::add_quantization(const NetworkOperator& op, OperatorSpec& spec) {
  if (op.columns != kNoValue) {
    const std::uint32_t storage = step_.network.values[op.columns].storage;
    step_.storages[storage] = step_.add_tensor(step_.network.storages[storage].name,
                                               step_.network.storages[storage].bytes,
                                               TensorClass::activation, Lifetime::step);
    spec.kept.push_back(step_.storages[storage]);
  }
  find_largest(step_.value_bytes(op.inputs.front()), spec);
}

Bytes Fp8Operators::unread_in_forward(const NetworkOperator& op, std::size_t p) const {
  const StepParameter& parameter = step_.parameters[p];
  if (!op.is_in_fp8 || parameter.is_bias) return Bytes{};
  return step_.builder[parameter.quantized].bytes - parameter.quantized_rows;
}

ValueGradient Fp8Operators::quantize_gradient(const NetworkOperator& op, const StepLayer& layer,
                                              const ValueGradient& incoming, OperatorSpec spec) {
  const Fp8Layouts layouts = gradient_layouts(op);
  spec.name += "_quantize";
  spec.operator_class = quantize_rule().operator_class;
  spec.phase = phase_of_gradient(layouts);
  spec.forward = layer.forward;
  const ValueGradient quantized{add_quantized_gradient(op, op.effect.output, layouts, ""), false,
                                true};
  spec.kept.insert(spec.kept.end(), quantized.tensors.begin(), quantized.tensors.end());
  find_largest(step_.gradient_bytes(op.output), spec);
  gradients_.join(op, incoming, spec);
  step_.add_whole(std::move(spec));
  return quantized;
}

Fp8Layouts Fp8Operators::gradient_layouts(const NetworkOperator& op) const {
  const bool has_input = std::ranges::any_of(
      op.inputs, [&](std::uint32_t input) { return step_.has_gradient(input); });
  return {has_input, trains_weight(step_.network, op)};
}

Phase Fp8Operators::phase_of_gradient(Fp8Layouts layouts) const {
  if (!step_.options.split_backward) return Phase::backward;
  return layouts.rows ? Phase::backward_input : Phase::backward_weight;
}

std::vector<TensorId> Fp8Operators::add_quantized_gradient(const NetworkOperator& op,
                                                           const Dims& dims, Fp8Layouts layouts,
                                                           const char* suffix) {
  std::vector<TensorId> made;
  const Fp8Matrix matrix = fp8_matrix_of(dims, step_.network.batch);
  const auto make = [&](const char* layout, Fp8Layouts one) {
    made.push_back(
        step_.add_tensor(op.name + ".gradient.fp8" + layout + suffix,
                         fp8_bytes(step_.network.fp8->recipe, Quantized::values, matrix, one),
                         TensorClass::gradient, Lifetime::step));
  };
  if (layouts.rows) make("", {true, false});
  if (layouts.columns) make(".columns", {false, true});
  return made;
}

void Fp8Operators::find_largest(Bytes of, OperatorSpec& spec) const {
  if (step_.network.fp8->recipe != Fp8Recipe::current) return;
  spec.traffic += of;
  spec.launches += 2;
}

TensorId Fp8Operators::transposed(const NetworkOperator& op, const StepLayer& layer,
                                  TensorId rows) {
  OperatorSpec spec = step_.layer_spec(op, Phase::backward);
  if (step_.options.split_backward) spec.phase = Phase::backward_weight;
  spec.name += "_transpose";
  spec.operator_class = quantize_rule().operator_class;
  spec.forward = layer.forward;
  spec.reads = {rows};
  const TensorId columns =
      step_.add_tensor(step_.builder[rows].name + ".columns", step_.builder[rows].bytes,
                       TensorClass::activation, Lifetime::step);
  spec.kept = {columns};
  step_.add_whole(std::move(spec));
  return columns;
}

void Fp8Operators::quantize_updated_weights() {
  for (std::size_t i = 0; i < step_.layers.size(); ++i)
    for (const std::size_t p : step_.layers[i].own) {
      const StepParameter& parameter = step_.parameters[p];
      if (parameter.quantized == kNoTensor || !parameter.has_gradient) continue;
      OperatorSpec spec;
      spec.name = step_.network.operators[i].name + ".quantize";
      spec.phase = Phase::optimizer;
      add_weight_quantization(parameter, spec);
      spec.updates = {parameter.quantized};
      spec.traffic += step_.builder.moved(spec);
      spec.reads.push_back(parameter.quantized);
      step_.builder.add(std::move(spec));
    }
}

/// On every rank, throughout.
Tensor Fp8Operators::whole_tensor(std::string name, Bytes bytes, const NetworkOperator& op) const {
  return {std::move(name),
          bytes,
          TensorClass::parameter,
          Lifetime::resident,
          kNoTensor,
          false,
          false,
          op.divides_experts,
          true};
}

void Fp8Operators::add_weight_quantization(const StepParameter& parameter,
                                           OperatorSpec& spec) const {
  spec.operator_class = quantize_rule().operator_class;
  spec.reads = {parameter.tensor};
  find_largest(step_.builder[parameter.tensor].bytes, spec);
}

}  // namespace plimsoll
