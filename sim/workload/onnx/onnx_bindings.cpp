#include "workload/onnx/onnx_importer.hpp"
#include "workload/operators/layer_error.hpp"

#include <algorithm>

namespace plimsoll {

bool OnnxImporter::has_input(std::size_t i) const {
  return i < node_->inputs.size() && !node_->inputs[i].empty();
}

const OnnxValue& OnnxImporter::value(const std::string& name) const {
  return values_[names_.at(name)];
}

const OnnxValue& OnnxImporter::input(std::size_t i) const {
  if (!has_input(i)) throw LayerError("it lacks input " + std::to_string(i + 1));
  return value(node_->inputs[i]);
}

const OnnxValue& OnnxImporter::network_input(std::size_t i) const {
  const OnnxValue& found = input(i);
  if (!found.is_network())
    throw LayerError("its input `" + printable(node_->inputs[i]) +
                     "` does not depend on the graph's inputs; expected one that does");
  if (found.padding != 0 || found.padding_width != 0)
    throw LayerError("a Pad before it is supported for AveragePool only");
  return found;
}

const OnnxValue& OnnxImporter::weight_input(std::size_t i) const {
  const OnnxValue& found = input(i);
  if (found.weight == kNoName || found.rows_of != 0)
    throw LayerError("its input `" + printable(node_->inputs[i]) +
                     "` is computed, or a buffer; expected a weight that is stored in the file");
  return found;
}

std::vector<std::int64_t> OnnxImporter::integers(std::size_t i, std::string_view name) const {
  if (!has_input(i)) {
    const OnnxAttribute* attribute = node_->attribute(name);
    return attribute == nullptr ? std::vector<std::int64_t>{} : attribute->integers;
  }
  const OnnxTensor& tensor = input(i).tensor;
  if (!input(i).is_constant() || !tensor.is_known || tensor.type != OnnxType::integer)
    throw LayerError("its input `" + printable(node_->inputs[i]) +
                     "` must be integers that are known before the run");
  return tensor.integers;
}

Dims OnnxImporter::sample_dims(const Dims& dims, std::size_t batch_axis) const {
  Dims sample = dims;
  std::int64_t& batch = sample[batch_axis];
  if (batch % file_batch_ != 0)
    throw LayerError("a value " + to_text(dims) + " does not have the batch of " +
                     std::to_string(file_batch_) + " in it");
  batch /= file_batch_;
  if (batch == 1 && sample.size() > 1)
    sample.erase(sample.begin() + static_cast<std::ptrdiff_t>(batch_axis));
  return sample;
}

Dims OnnxImporter::at_batch(Dims dims, std::size_t batch_axis) const {
  dims[batch_axis] = size_of({dims[batch_axis] / file_batch_, batch_});
  return dims;
}

bool OnnxImporter::is_free(const OnnxValue& value) const {
  return pending_[builder_.storage_of(value.id)] == 0;
}

std::uint32_t OnnxImporter::apply(std::string_view kind, const Arguments& given,
                                  std::vector<std::uint32_t> inputs, std::uint32_t weight) {
  const OperatorRule& rule = *find_rule(kind);
  RuleArguments arguments = default_arguments(rule);
  for (const auto& [name, number] : given)
    std::ranges::find(arguments, name, [](const auto& a) { return a.first; })->second = number;
  const auto owner = owners_.find(weight);
  const std::uint32_t tied = owner == owners_.end() ? kNoValue : owner->second;
  const std::string name = operator_name(*node_);
  builder_.train(trained_.of(name, std::nullopt));
  const std::uint32_t output =
      builder_.apply(rule, std::move(arguments), std::move(inputs), name, tied);
  if (weight != kNoName && tied == kNoValue) owners_.emplace(weight, builder_.operators() - 1);
  return output;
}

void OnnxImporter::bind(const std::string& name, OnnxValue value) {
  const std::uint32_t index = names_.at(name);
  if (name.empty()) return;
  if (values_[index].kind != OnnxValue::Kind::missing)
    throw LayerError("`" + printable(name) + "` is made twice");
  if (value.is_network()) {
    const std::uint32_t storage = builder_.storage_of(value.id);
    if (storage >= pending_.size()) pending_.resize(storage + 1, 0);
    pending_[storage] += static_cast<std::uint32_t>(readers_[index].size()) + outputs_[index];
    if (value.strides.empty())
      value.strides = contiguous_strides(at_batch(value.dims(), value.batch_axis));
  }
  values_[index] = std::move(value);
}

void OnnxImporter::bind_result(const std::string& name, std::uint32_t id, Dims dims,
                               std::size_t batch_axis) {
  Dims sample = sample_dims(dims, batch_axis);
  if (size_of(sample) != size_of(builder_.dims(id)))
    throw LayerError("its output is " + to_text(sample) +
                     " a sample, expected as many elements as " + to_text(builder_.dims(id)));
  OnnxValue value;
  value.kind = OnnxValue::Kind::network;
  value.tensor.type = OnnxType::fp32;
  value.tensor.dims = std::move(dims);
  value.batch_axis = batch_axis;
  value.id = sample == builder_.dims(id) ? id : builder_.view(id, std::move(sample));
  bind(name, std::move(value));
}

void OnnxImporter::bind_result(std::uint32_t id, Dims dims, std::size_t batch_axis) {
  bind_result(node_->outputs.front(), id, std::move(dims), batch_axis);
}

void OnnxImporter::bind_view(std::size_t output, const OnnxValue& from, Dims dims,
                             std::size_t batch_axis, std::vector<std::int64_t> strides) {
  OnnxValue value = from;
  value.id = builder_.view(from.id, sample_dims(dims, batch_axis));
  value.tensor.dims = std::move(dims);
  value.batch_axis = batch_axis;
  value.strides = std::move(strides);
  bind(node_->outputs[output], std::move(value));
}

void OnnxImporter::bind_constant_view(const OnnxValue& from, OnnxTensor tensor,
                                      std::uint32_t weight) {
  bind_constant(0, std::move(tensor), weight);
  values_[names_.at(node_->outputs.front())].is_stored = from.is_stored;
}

void OnnxImporter::bind_constant(std::size_t output, OnnxTensor tensor, std::uint32_t weight) {
  OnnxValue value;
  value.kind = OnnxValue::Kind::constant;
  value.tensor = std::move(tensor);
  value.weight = weight;
  bind(node_->outputs[output], std::move(value));
}

}  // namespace plimsoll
