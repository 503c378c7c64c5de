#include "workload/step/step_gradients.hpp"

#include <algorithm>

namespace plimsoll {

ValueGradient StepGradients::first(const NetworkOperator& op, OperatorSpec& spec) {
  return step_.gradients[step_.gradient_of(op.output)] = {
             {make(op.name, step_.gradient_bytes(op.output), spec)}};
}

TensorId StepGradients::make(const std::string& of, Bytes bytes, OperatorSpec& spec) {
  spec.kept.push_back(
      step_.add_tensor(of + ".gradient", bytes, TensorClass::gradient, Lifetime::step));
  return spec.kept.back();
}

Bytes StepGradients::rest_of(const ValueGradient& gradient, Bytes bytes) const {
  Bytes all;
  for (const TensorId id : gradient.tensors) all += step_.builder[id].bytes;
  return std::max(all - bytes, Bytes{});
}

void StepGradients::join(const NetworkOperator& op, const ValueGradient& incoming,
                         OperatorSpec& spec) const {
  if (!incoming.is_in_parts) return;
  Bytes made;
  for (const TensorId id : spec.kept) made += step_.builder[id].bytes;
  spec.workspace += std::max(Bytes{}, step_.gradient_bytes(op.output) - made);
}

void StepGradients::contribute(const NetworkOperator& op, std::size_t i,
                               const ValueGradient& incoming, OperatorSpec& spec) {
  const NetworkValue& value = step_.network.values[op.inputs[i]];
  const std::string& name = step_.network.storages[source_of(value).storage].name;
  ValueGradient& gradient = step_.gradients[value.gradient];
  const auto has_type = [&] {
    const NetworkValue& output = step_.network.values[op.output];
    return value.type == output.type && value.gradient_bits == output.gradient_bits;
  };
  if (op.effect.gradient == OperatorEffect::Gradient::pass && gradient.tensors.empty() &&
      has_type()) {
    gradient = incoming;
    return;
  }
  const bool made_here = std::ranges::any_of(gradient.tensors, [&](TensorId id) {
    return std::ranges::find(spec.kept, id) != spec.kept.end();
  });
  const bool is_there = !made_here && !gradient.tensors.empty();
  if (const Dims* part = part_of(op, i)) {
    const Bytes bytes =
        bytes_of(elements_of(*part) * step_.network.batch, value.type, value.gradient_bits);
    if (is_there && !gradient.is_in_parts) add_parts(step_.gradient_bytes(op.inputs[i]), spec);
    gradient.tensors.push_back(make(name, bytes, spec));
    gradient.is_in_parts = true;
    spec.traffic += bytes * 2;  // read and written once more, when the parts are joined
    return;
  }
  if (made_here && value.part) return;
  if (is_there) add_to(gradient, step_.gradient_bytes(op.inputs[i]), spec);
  gradient = {{make(name, step_.gradient_bytes(op.inputs[i]), spec)}};
}

void StepGradients::contribute(const NetworkOperator& op, const ValueGradient& incoming,
                               OperatorSpec& spec) {
  for (std::size_t i = 0; i < op.inputs.size(); ++i)
    if (step_.has_gradient(op.inputs[i])) contribute(op, i, incoming, spec);
}

void StepGradients::contribute(const NetworkOperator& op, StepParameter& parameter,
                               OperatorSpec& spec) {
  if (!op.copies_parameters) return contribute(parameter, spec, fuses_accumulation(op));
  if (parameter.gradient == kNoTensor) return;
  if (parameter.copy_gradient != kNoTensor) {
    add_once(spec.reads, parameter.copy_gradient);
    const Bytes bytes = step_.builder[parameter.copy_gradient].bytes;
    add(spec.additions, bytes * 3, bytes);
  }
  parameter.copy_gradient =
      step_.add_tensor(step_.builder[parameter.copy].name + ".gradient",
                       Bytes{bytes_per_element(op.type)} * parameter.elements(),
                       TensorClass::gradient, Lifetime::step);
  spec.kept.push_back(parameter.copy_gradient);
}

void StepGradients::contribute(StepParameter& parameter, OperatorSpec& spec, bool fused) {
  if (parameter.gradient == kNoTensor) return;
  const Bytes bytes = step_.builder[parameter.gradient].bytes;
  if (fused) {
    if (parameter.has_gradient) spec.traffic += bytes;
  } else if (step_.options.master_weights) {
    const Bytes made = Bytes{parameter_element()} * parameter.elements();
    spec.workspace += made;
    spec.traffic += made * 2;  // written, and read by the cast
    if (parameter.has_gradient) add_cast_to_sum(spec, bytes, made);
  } else if (parameter.has_gradient) {
    spec.workspace += bytes;
    add_to_sum(spec, bytes);
  }
  parameter.has_gradient = true;
  spec.kept.push_back(parameter.gradient);
}

/// What a value in fp8 was made of, whose gradient it has.
const NetworkValue& StepGradients::source_of(const NetworkValue& value) const {
  if (value.quantized_by == kNoValue) return value;
  return step_.network.values[step_.network.operators[value.quantized_by].inputs.front()];
}

/// Adds one of so many bytes to a gradient that is there already.
void StepGradients::add_to(const ValueGradient& gradient, Bytes bytes, OperatorSpec& spec) const {
  const Bytes rest = rest_of(gradient, bytes);
  Bytes read;
  for (const TensorId id : gradient.tensors)
    if (add_once(spec.reads, id)) read += step_.builder[id].bytes;
  // What comes in is read once; another part of what holds it is read besides.
  const bool is_another_part = read == Bytes{} && rest > Bytes{};
  const Bytes counted = is_another_part ? bytes : std::max(read - rest, Bytes{});
  spec.traffic += counted - read;
  add(spec.additions, bytes * 3, counted);
}

/// Adds parts, which are joined first, to a gradient of so many bytes that is there already.
void StepGradients::add_parts(Bytes bytes, OperatorSpec& spec) {
  spec.traffic += bytes;
  add(spec.additions, bytes * 3, bytes);
}

/// What the operator reads of an input that is split into parts; nullptr: all of it.
const Dims* StepGradients::part_of(const NetworkOperator& op, std::size_t i) const {
  if (i < op.effect.read_parts.size() && !op.effect.read_parts[i].empty())
    return &op.effect.read_parts[i];
  const NetworkValue& value = step_.network.values[op.inputs[i]];
  return value.is_split ? &value.dims : nullptr;
}

bool StepGradients::fuses_accumulation(const NetworkOperator& op) const {
  return step_.options.fused_accumulation && op.rule->operator_class == OperatorClass::matmul;
}

/// Bytes of an element of a parameter.
std::int64_t StepGradients::parameter_element() const {
  return bytes_per_element(step_.network.dtype);
}

}  // namespace plimsoll
