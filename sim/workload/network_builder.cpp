#include "workload/network_builder.hpp"

#include "workload/layer_error.hpp"

namespace plimsoll {
namespace {

constexpr std::int64_t kMaxDimension = 1'000'000'000'000;

void check_dims(const Dims& dims) {
  for (const std::int64_t dim : dims)
    if (dim < 1 || dim > kMaxDimension)
      throw LayerError("a shape of " + to_text(dims) + ", but dimensions are from 1 to 1e12");
}

}  // namespace

NetworkBuilder::NetworkBuilder(std::int64_t batch, std::int64_t element) {
  network_.batch = batch;
  network_.element = element;
}

std::uint32_t NetworkBuilder::add_value(NetworkValue value) {
  network_.values.push_back(std::move(value));
  return static_cast<std::uint32_t>(network_.values.size() - 1);
}

std::uint32_t NetworkBuilder::add_gradient(Bytes bytes) {
  network_.gradients.push_back(bytes);
  return static_cast<std::uint32_t>(network_.gradients.size() - 1);
}

std::uint32_t NetworkBuilder::add_input(std::string name, Dims dims, bool indices) {
  check_dims(dims);
  NetworkStorage storage;
  storage.name = std::move(name);
  storage.is_input = true;
  const ElementType type = indices ? ElementType::index : ElementType::value;
  storage.bytes =
      Bytes{bytes_of(type, network_.element)} * network_.batch * elements_of(dims).count();
  const auto index = static_cast<std::uint32_t>(network_.storages.size());
  const std::uint32_t gradient = add_gradient(storage.bytes);
  network_.storages.push_back(std::move(storage));
  return add_value({std::move(dims), index, gradient, 0, indices});
}

std::uint32_t NetworkBuilder::view(std::uint32_t value, Dims dims) {
  check_dims(dims);
  NetworkValue seen = network_.values[value];
  seen.part = seen.part || elements_of(dims) < elements_of(seen.dims);
  seen.dims = std::move(dims);
  return add_value(std::move(seen));
}

std::uint32_t NetworkBuilder::apply(const OperatorRule& rule, RuleArguments arguments,
                                    std::vector<std::uint32_t> inputs, const std::string& name,
                                    std::uint32_t tied) {
  RuleCall call;
  call.arguments = std::move(arguments);
  for (const std::uint32_t input : inputs) {
    check_current(network_.values[input], rule);
    call.inputs.push_back(network_.values[input].dims);
  }
  const NetworkStorage& first = network_.storages[storage_of(inputs.front())];
  const bool reads_twice =
      inputs.size() > 1 && storage_of(inputs.back()) == storage_of(inputs.front());
  call.can_update = !first.is_input && !first.kept && !reads_twice;
  call.batch = network_.batch;
  call.element = network_.element;
  NetworkOperator op{name, &rule, rule.apply(call), std::move(inputs), kNoValue, tied};
  check_dims(op.effect.output);
  if (tied != kNoValue) tie(op);
  if (op.effect.form == OperatorEffect::Form::in_place && !call.can_update)
    throw LayerError("cannot work in place: `" + first.name + "` is needed elsewhere");
  add_output(op, call.bytes(op.effect.output));
  const std::uint32_t output = op.output;
  if (op.effect.form != OperatorEffect::Form::view) network_.operators.push_back(std::move(op));
  return output;
}

void NetworkBuilder::check_current(const NetworkValue& value, const OperatorRule& rule) const {
  const NetworkStorage& storage = network_.storages[value.storage];
  if (value.version != storage.version)
    throw LayerError("it reads `" + storage.name + "` as it was before `" + storage.changed_by +
                     "` changed it in place; write `in_place: false` there");
  if (value.indices && !rule.reads_indices)
    throw LayerError("it cannot read indices; an `embedding` can");
  if (!value.indices && rule.reads_indices)
    throw LayerError("it reads indices (`input: {shape: ..., type: indices}`), found values");
}

/// The weight of the tied layer replaces the operator's own.
void NetworkBuilder::tie(NetworkOperator& op) const {
  const auto& theirs = network_.operators[op.tied].effect.parameters;
  auto& ours = op.effect.parameters;
  if (theirs.empty() || theirs.front().second != ours.front().second)
    throw LayerError("`tied`: the weight of `" + network_.operators[op.tied].name +
                     "` has another number of elements");
  ours.erase(ours.begin());
}

void NetworkBuilder::add_output(NetworkOperator& op, Bytes bytes) {
  using Form = OperatorEffect::Form;
  const NetworkValue first = network_.values[op.inputs.front()];
  NetworkValue output{op.effect.output, first.storage, first.gradient,
                      first.version,    false,         first.part};
  if (op.effect.form == Form::no_output) {
    keep_inputs(op);
    return;
  }
  if (op.effect.form != Form::view) output.gradient = add_gradient(bytes);
  if (op.effect.form == Form::fresh) {
    output.part = false;
    output.storage = static_cast<std::uint32_t>(network_.storages.size());
    output.version = 0;
    NetworkStorage storage;
    storage.name = op.name;
    storage.bytes = bytes;
    network_.storages.push_back(std::move(storage));
  }
  if (op.effect.form == Form::in_place) {
    NetworkStorage& storage = network_.storages[output.storage];
    output.version = ++storage.version;
    storage.changed_by = op.name;
  }
  keep_inputs(op);
  if (op.effect.keeps_output) network_.storages[output.storage].kept = true;
  op.output = add_value(std::move(output));
}

void NetworkBuilder::keep_inputs(const NetworkOperator& op) {
  if (!op.effect.keeps_inputs) return;
  for (const std::uint32_t input : op.inputs)
    network_.storages[network_.values[input].storage].kept = true;
}

void NetworkBuilder::add_loss(Loss loss, std::uint32_t value, const std::string& prefix,
                              bool weighted) {
  const auto add = [&](std::string_view kind) {
    const OperatorRule& rule = *find_rule(kind);
    RuleArguments arguments = default_arguments(rule);
    if (rule.is_loss) arguments.front().second = weighted ? 1 : 0;
    return apply(rule, std::move(arguments), {value}, prefix + std::string(kind));
  };
  switch (loss) {
    case Loss::cross_entropy:
      value = add("log_softmax");
      add("nll_loss");
      return;
    case Loss::bce_with_logits:
      add("bce_with_logits_loss");
      return;
    case Loss::mse:
      add("mse_loss");
      return;
    case Loss::sum:
      add("sum_loss");
      return;
    case Loss::none:
      return;
  }
}

}  // namespace plimsoll
