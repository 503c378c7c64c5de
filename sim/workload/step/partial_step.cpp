#include "workload/step/partial_step.hpp"

#include <algorithm>
#include <utility>

namespace plimsoll {

PartialStep::PartialStep(const std::string& name, const Network& of, const StepOptions& with)
    : network(of),
      options(with),
      builder(name),
      storages(of.storages.size(), kNoTensor),
      gradients(of.gradients.size()) {}

TensorId PartialStep::storage_of(std::uint32_t value) const {
  return storages[network.values[value].storage];
}

std::uint32_t PartialStep::gradient_of(std::uint32_t value) const {
  return network.values[value].gradient;
}

bool PartialStep::has_gradient(std::uint32_t value) const {
  return network.gradients[gradient_of(value)].is_made;
}

Bytes PartialStep::gradient_bytes(std::uint32_t value) const {
  return network.gradients[gradient_of(value)].bytes;
}

Bytes PartialStep::value_bytes(std::uint32_t value) const {
  const NetworkValue& it = network.values[value];
  return Bytes{bytes_per_element(it.type)} * network.batch * elements_of(it.dims).count();
}

TensorId PartialStep::add_tensor(std::string name, Bytes bytes, TensorClass tensor_class,
                                 Lifetime lifetime) {
  return builder.add(Tensor{std::move(name), bytes, tensor_class, lifetime, kNoTensor});
}

OperatorId PartialStep::add_whole(OperatorSpec spec) {
  spec.bare = spec.kept;
  spec.traffic += builder.moved(spec);
  return builder.add(std::move(spec));
}

OperatorSpec PartialStep::layer_spec(const NetworkOperator& op, Phase phase) const {
  OperatorSpec spec;
  spec.name = op.name + (phase == Phase::forward ? ".forward" : ".backward");
  if (!op.part.empty()) spec.name += "_" + op.part;
  spec.phase = phase;
  spec.operator_class = op.rule->operator_class;
  spec.is_random = op.rule->traits.is_random && phase == Phase::forward;
  spec.is_whole = op.is_whole;
  if (op.type != network.dtype) spec.dtype = op.type;
  if (op.is_in_fp8) spec.dtype = DType::fp8;
  if (is_in_int8(op, phase != Phase::forward)) spec.dtype = DType::int8;
  return spec;
}

void PartialStep::make_output(const NetworkOperator& op, OperatorSpec& spec) {
  const std::uint32_t storage = network.values[op.output].storage;
  storages[storage] = add_tensor(network.storages[storage].name, network.storages[storage].bytes,
                                 TensorClass::activation, Lifetime::step);
  spec.bare = spec.kept = {storages[storage]};
}

void PartialStep::make_extras(const NetworkOperator& op, StepLayer& layer, OperatorSpec& spec) {
  for (const KeptExtra& extra : op.effect.extras)
    layer.extras.push_back(
        add_tensor(op.name + "." + extra.name, kept_bytes(op, extra),
                   op.has_backward ? TensorClass::saved : TensorClass::activation, Lifetime::step));
  spec.kept.insert(spec.kept.end(), layer.extras.begin(), layer.extras.end());
}

bool add_once(std::vector<TensorId>& list, TensorId id) {
  if (std::ranges::find(list, id) != list.end()) return false;
  list.push_back(id);
  return true;
}

}  // namespace plimsoll
