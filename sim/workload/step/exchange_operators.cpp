#include "workload/step/exchange_operators.hpp"

#include "workload/operators/autocast.hpp"

#include <algorithm>
#include <utility>

namespace plimsoll {

void ExchangeOperators::note(std::size_t i) {
  const NetworkOperator& op = step_.network.operators[i];
  if (!step_.options.overlaps_exchanges || op.output == kNoValue) return;
  std::uint32_t& exchange = exchanges_[step_.gradient_of(op.output)];
  if (sums_gradient(op)) exchange = static_cast<std::uint32_t>(i);
  if (op.rule == &cast_rule()) exchange = exchanges_[step_.gradient_of(op.inputs.front())];
}

void ExchangeOperators::add_forward(const NetworkOperator& op, StepLayer& layer) {
  using Form = OperatorEffect::Form;
  const TensorId from = step_.storage_of(op.inputs.front());
  if (op.effect.form == Form::same) return;  // no operator
  OperatorSpec spec = exchange_spec(op, Phase::forward, op.effect.exchange->forward);
  spec.reads = {from};
  if (op.effect.form == Form::in_place) spec.updates = {from};
  if (op.effect.form == Form::fresh) step_.make_output(op, spec);
  layer.forward = step_.builder.add(std::move(spec));
}

std::uint32_t ExchangeOperators::exchange_of(const NetworkOperator& op) const {
  return exchanges_[step_.gradient_of(op.inputs.front())];
}

void ExchangeOperators::add_backward(std::size_t i) {
  const NetworkOperator& op = step_.network.operators[i];
  const OperatorId forward = forward_of_exchange(i);
  ValueGradient its =
      op.has_backward ? step_.gradients[step_.gradient_of(op.output)] : ValueGradient{};
  if (its.tensors.empty()) return;
  const CollectiveKind kind = op.effect.exchange->backward;
  if (const std::uint32_t reader = quantizes_before(i); reader != kNoValue) {
    its = gather_quantized(i, reader, its);
  } else if (kind != CollectiveKind::none) {
    OperatorSpec spec = exchange_spec(op, Phase::backward, kind);
    spec.forward = forward;
    spec.reads = its.tensors;
    if (kind == CollectiveKind::all_reduce) {
      spec.updates = spec.reads;
    } else {
      its = {{gradients_.make(op.name, step_.gradient_bytes(op.inputs.front()), spec)}};
      spec.bare = spec.kept;
    }
    step_.builder.add(std::move(spec));
  }
  for (WeightHalf& half : postponed_[static_cast<std::uint32_t>(i)])
    add_now(half.layer, std::move(half.spec));
  pass_back(op, forward, std::move(its));
}

void ExchangeOperators::add_weight_half(std::size_t i, OperatorSpec weight) {
  const std::uint32_t exchange = exchange_of(step_.network.operators[i]);
  if (exchange == kNoValue) return add_now(i, std::move(weight));
  postponed_[exchange].push_back({i, std::move(weight)});
}

void ExchangeOperators::add_now(std::size_t i, OperatorSpec weight) {
  step_.builder.add(std::move(weight));
  copies_.add_casts_back(step_.network.operators[i], step_.layers[i]);
}

TensorId ExchangeOperators::kept_of(const NetworkOperator& op, const StepLayer& layer,
                                    std::uint32_t value) {
  for (const std::uint32_t input : op.inputs) {
    const std::uint32_t storage = step_.network.values[input].storage;
    if (step_.network.storages[storage].gathered_from != value) continue;
    TensorId& again = gathered_again_[storage];
    if (again != kNoTensor) return again;
    const NetworkStorage& whole = step_.network.storages[storage];
    OperatorSpec spec = step_.layer_spec(op, Phase::backward);
    if (step_.options.split_backward) spec.phase = Phase::backward_weight;
    spec.name += "_all_gather";
    spec.operator_class = OperatorClass::other;
    spec.given_time = Time{};
    spec.collective = {CollectiveKind::all_gather, MeshAxis::tensor};
    spec.forward = layer.forward;
    spec.reads = {step_.storage_of(value)};
    again = step_.add_tensor(whole.name + ".again", whole.bytes, TensorClass::activation,
                             Lifetime::step);
    spec.bare = spec.kept = {again};
    step_.builder.add(std::move(spec));
    if (op.is_in_fp8 && scales_tensors(step_.network.fp8->recipe))
      again = fp8_.transposed(op, layer, again);
    return again;
  }
  return step_.storage_of(value);
}

bool ExchangeOperators::sums_gradient(const NetworkOperator& op) {
  const auto& exchange = op.effect.exchange;
  return exchange && (exchange->backward == CollectiveKind::all_reduce ||
                      exchange->backward == CollectiveKind::reduce_scatter);
}

/// The layer in fp8 whose output ranks add up and divide by positions: they quantize their parts of
/// its gradient before they gather it. kNoValue: none.
std::uint32_t ExchangeOperators::quantizes_before(std::size_t exchange) const {
  const NetworkOperator& op = step_.network.operators[exchange];
  if (op.effect.exchange->backward != CollectiveKind::all_gather || exchange == 0) return kNoValue;
  const NetworkOperator& layer = step_.network.operators[exchange - 1];
  const Fp8Layouts layouts = fp8_.gradient_layouts(layer);
  const bool is_its =
      layer.is_in_fp8 && layer.output == op.inputs.front() && (layouts.rows || layouts.columns);
  return is_its ? static_cast<std::uint32_t>(exchange - 1) : kNoValue;
}

/// Of what has a scale for each tensor, rows alone are gathered, and transposed behind that.
ValueGradient ExchangeOperators::gather_quantized(std::size_t exchange, std::uint32_t i,
                                                  const ValueGradient& incoming) {
  const NetworkOperator& op = step_.network.operators[exchange];
  const NetworkOperator& reader = step_.network.operators[i];
  const Fp8Layouts layouts = fp8_.gradient_layouts(reader);
  const bool transposes = scales_tensors(step_.network.fp8->recipe) && layouts.columns;
  const Fp8Layouts sent = transposes ? Fp8Layouts{true, false} : layouts;
  const OperatorId forward = forward_of_exchange(exchange);

  const auto spec_of = [&](const char* suffix) {
    OperatorSpec spec = step_.layer_spec(reader, Phase::backward);
    spec.name += suffix;
    spec.operator_class = quantize_rule().operator_class;
    spec.phase = fp8_.phase_of_gradient(layouts);
    spec.forward = forward;
    return spec;
  };
  OperatorSpec quantize = spec_of("_quantize");
  quantize.reads = incoming.tensors;
  quantize.traffic -= gradients_.rest_of(incoming, step_.gradient_bytes(op.output));
  quantize.kept =
      fp8_.add_quantized_gradient(reader, step_.network.values[op.output].dims, sent, ".part");
  fp8_.find_largest(step_.gradient_bytes(op.output), quantize);
  gradients_.join(op, incoming, quantize);
  const std::vector<TensorId> parts = quantize.kept;
  step_.add_whole(std::move(quantize));

  OperatorSpec gather = exchange_spec(op, Phase::backward, CollectiveKind::all_gather);
  gather.phase = fp8_.phase_of_gradient(layouts);
  gather.forward = forward;
  gather.reads = parts;
  gather.kept = fp8_.add_quantized_gradient(reader, reader.effect.output, sent, "");
  gather.bare = gather.kept;
  ValueGradient whole{gather.kept, false, true};
  step_.builder.add(std::move(gather));
  if (!transposes) return whole;

  OperatorSpec transpose = spec_of("_transpose_gradient");
  transpose.reads = whole.tensors;
  transpose.kept = fp8_.add_quantized_gradient(reader, reader.effect.output, {false, true}, "");
  if (!layouts.rows) whole.tensors.clear();
  whole.tensors.push_back(transpose.kept.front());
  step_.add_whole(std::move(transpose));
  return whole;
}

OperatorSpec ExchangeOperators::exchange_spec(const NetworkOperator& op, Phase phase,
                                              CollectiveKind kind) const {
  OperatorSpec spec = step_.layer_spec(op, phase);
  spec.given_time = Time{};
  spec.collective = {kind, op.effect.exchange->axis};
  if (phase != Phase::forward && step_.options.split_backward) spec.phase = Phase::backward_input;
  return spec;
}

/// The forward that an exchange is for: its own, or where it has none that of the first layer that
/// reads the value so. Others may read the value before; so it is not the one that made it.
OperatorId ExchangeOperators::forward_of_exchange(std::size_t i) const {
  while (step_.layers[i].forward == kNoOperator) ++i;
  return step_.layers[i].forward;
}

/// What ranks have exchanged is the gradient of the input, or is added to it.
void ExchangeOperators::pass_back(const NetworkOperator& op, OperatorId forward,
                                  ValueGradient its) {
  const std::uint32_t input = op.inputs.front();
  ValueGradient& gradient = step_.gradients[step_.gradient_of(input)];
  if (gradient.tensors.empty()) {
    gradient = std::move(its);
    return;
  }
  OperatorSpec spec = step_.layer_spec(op, Phase::backward);
  if (step_.options.split_backward) spec.phase = Phase::backward_input;
  spec.name += "_sum";
  spec.operator_class = OperatorClass::elementwise;
  spec.forward = forward;
  spec.reads = its.tensors;
  for (const TensorId id : gradient.tensors) add_once(spec.reads, id);
  gradient = {{gradients_.make(op.name, step_.gradient_bytes(input), spec)}};
  step_.add_whole(std::move(spec));
}

}  // namespace plimsoll
