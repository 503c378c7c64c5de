#include "workload/step/training_step.hpp"

#include "engine/wide.hpp"
#include "workload/network/frozen_products.hpp"
#include "workload/operators/fp8.hpp"
#include "workload/operators/muon.hpp"
#include "workload/step/exchange_operators.hpp"
#include "workload/step/optimizer_step.hpp"
#include "workload/step/ring_operators.hpp"

#include <algorithm>
#include <utility>

namespace plimsoll {
namespace {

/// Turns a network into the operators of a step.
class StepBuilder {
 public:
  StepBuilder(const std::string& name, const Network& network, const StepOptions& options)
      : step_(name, network, options),
        gradients_(step_),
        copies_(step_, gradients_),
        fp8_(step_, gradients_),
        exchanges_(step_, gradients_, copies_, fp8_),
        ring_(step_, gradients_) {}

  Workload build() {
    for (std::size_t s = 0; s < step_.storages.size(); ++s)
      if (const NetworkStorage& storage = step_.network.storages[s]; storage.is_input)
        step_.storages[s] =
            step_.add_tensor(storage.name, storage.bytes, TensorClass::activation, Lifetime::input);
    step_.layers.resize(step_.network.operators.size());
    for (std::size_t i = 0; i < step_.layers.size(); ++i) add_forward(i);
    for (std::size_t i = step_.layers.size(); i-- > 0;) add_backward(i);
    if (step_.options.optimizer != Optimizer::none) add_optimizer();
    Workload workload = step_.builder.freeze();
    classify(workload);
    workload.parameters = step_.network.all_parameters.value_or(parameters_).count();
    workload.macs = step_.network.share_of_macs.value_or(macs_).count();
    workload.frozen_macs =
        step_.network.share_of_frozen_macs.value_or(frozen_macs(step_.network)).count();
    workload.tokens = tokens_of_sample();
    return workload;
  }

 private:
  /// Positions of the longest input of token ids.
  [[nodiscard]] std::int64_t tokens_of_sample() const {
    std::int64_t tokens = 0;
    for (const NetworkValue& value : step_.network.values)
      if (value.indices && step_.network.storages[value.storage].is_input)
        tokens = std::max(tokens, elements_of(value.dims).count());
    return tokens * step_.network.ranks_of_positions;
  }

  void add_parameters(const NetworkOperator& op, StepLayer& layer) {
    if (op.tied != kNoValue) {
      layer.used.push_back(step_.layers[op.tied].own.front());
      step_.parameters[layer.used.front()].is_shared = true;
    }
    for (std::size_t p = 0; p < op.trained.size(); ++p) {
      const auto& [suffix, dims] = op.effect.parameters[p];
      const std::string name = op.name + "." + suffix;
      StepParameter parameter;
      parameter.dims = dims;
      parameter.is_bias = is_bias(suffix);
      parameter.trained = op.trained[p];
      parameter.whole = op.whole.empty() ? op.trained[p] : op.whole[p];
      parameter.is_in_int8 =
          op.bits.weights.value_or(32) <= 8 && op.bits.gradients.value_or(32) <= 8;
      parameter.tensor = step_.builder.add(Tensor{
          name, bytes_of(elements_of(dims), step_.network.dtype, op.bits.weights),
          TensorClass::parameter, Lifetime::resident, kNoTensor, false, false, op.divides_experts});
      if (!parameter.trained.empty()) add_gradient_of(op, name, parameter);
      layer.used.push_back(step_.parameters.size());
      layer.own.push_back(step_.parameters.size());
      parameters_ += elements_of(dims);
      step_.parameters.push_back(std::move(parameter));
    }
  }

  void add_gradient_of(const NetworkOperator& op, const std::string& name,
                       StepParameter& parameter) {
    const Elements trained{parameter.elements()};
    const Bytes bytes = step_.options.master_weights
                            ? kMasterElement * trained.count()
                            : bytes_of(trained, step_.network.dtype, op.bits.gradients);
    parameter.trained_bytes = bytes_of(trained, step_.network.dtype, op.bits.weights);
    parameter.gradient = step_.builder.add(Tensor{name + ".gradient", bytes, TensorClass::gradient,
                                                  Lifetime::accumulated, kNoTensor, false,
                                                  op.makes_partial_gradients, op.divides_experts});
  }

  void add_forward(std::size_t i) {
    using Form = OperatorEffect::Form;
    const NetworkOperator& op = step_.network.operators[i];
    StepLayer& layer = step_.layers[i];
    exchanges_.note(i);
    if (op.effect.exchange) return exchanges_.add_forward(op, layer);
    macs_ += op.effect.macs;
    if (op.effect.ring) return ring_.add_forward(op, layer);
    add_parameters(op, layer);
    if (op.copies_parameters) copies_.copy_parameters(op, layer);
    if (op.is_in_fp8) fp8_.quantize_weights(op, layer);
    OperatorSpec spec = step_.layer_spec(op, Phase::forward);
    spec.flops = op.effect.forward_flops;
    spec.workspace = op.effect.forward_workspace;
    spec.scratch = op.effect.forward_scratch;
    spec.kernel = op.effect.kernel;
    for (const std::uint32_t input : op.inputs) add_once(spec.reads, step_.storage_of(input));
    if (op.pool != kNoValue) spec.reads.push_back(step_.layers[op.pool].extras.front());
    if (op.effect.form == Form::in_place) spec.updates = {step_.storage_of(op.inputs.front())};
    if (op.effect.form == Form::fresh) step_.make_output(op, spec);
    if (op.rule == &quantize_rule()) fp8_.add_quantization(op, spec);
    step_.make_extras(op, layer, spec);
    if (op.is_undone) spec.bare.push_back(layer.extras.front());
    spec.traffic += step_.builder.moved(spec);
    for (const std::size_t p : layer.used) {
      spec.reads.push_back(read_of(op, p));
      spec.traffic += op.effect.sparse_parameters ? step_.gradient_bytes(op.output)
                                                  : step_.builder[spec.reads.back()].bytes;
      spec.traffic -= fp8_.unread_in_forward(op, p);
    }
    if (layer.fp8_state != kNoTensor) spec.reads.push_back(layer.fp8_state);
    // Weights of which copies in fp8 are cached stay beside these, also where nothing updates them.
    if (op.is_in_fp8 && step_.network.fp8->caches_weights)
      for (const std::size_t p : layer.used) add_once(spec.reads, step_.parameters[p].tensor);
    layer.forward = step_.builder.add(std::move(spec));
  }

  /// What the operator reads of a parameter.
  [[nodiscard]] TensorId read_of(const NetworkOperator& op, std::size_t p) const {
    const StepParameter& parameter = step_.parameters[p];
    if (op.is_in_fp8) return parameter.is_bias ? parameter.tensor : parameter.quantized;
    return op.copies_parameters ? parameter.copy : parameter.tensor;
  }

  void add_backward(std::size_t i) {
    const NetworkOperator& op = step_.network.operators[i];
    const StepLayer& layer = step_.layers[i];
    if (op.effect.exchange) return exchanges_.add_backward(i);
    OperatorSpec spec = step_.layer_spec(op, Phase::backward);
    spec.forward = layer.forward;
    spec.flops = op.effect.backward_flops;
    spec.workspace = op.effect.backward_workspace;
    spec.kernel = op.effect.kernel;
    if (!op.has_backward) return;
    ValueGradient incoming;
    if (op.output != kNoValue) {
      incoming = step_.gradients[step_.gradient_of(op.output)];
      spec.reads = incoming.tensors;
      if (spec.reads.empty() && i + 1 < step_.layers.size()) return;  // nothing reads its output
      if (spec.reads.empty()) incoming = gradients_.first(op, spec);
      if (!incoming.is_quantized)
        spec.traffic -= gradients_.rest_of(incoming, step_.gradient_bytes(op.output));
    }
    if (op.effect.ring) return ring_.add_backward(op, layer, incoming, spec);
    const std::int64_t inputs = std::ranges::count_if(
        op.inputs, [&](std::uint32_t input) { return step_.has_gradient(input); });
    if (op.is_in_fp8 && !incoming.is_quantized &&
        (inputs > 0 || trains_weight(step_.network, op))) {
      OperatorSpec quantize = step_.layer_spec(op, Phase::backward);
      std::swap(quantize.reads, spec.reads);
      std::swap(quantize.kept, spec.kept);
      std::swap(quantize.traffic, spec.traffic);
      incoming = fp8_.quantize_gradient(op, layer, incoming, std::move(quantize));
      spec.reads = incoming.tensors;
    }
    const bool is_halved = step_.options.split_backward || exchanges_.exchange_of(op) != kNoValue;
    if (is_halved && inputs > 0 && multiplies_weight(op, layer))
      return add_halves(i, incoming, inputs, std::move(spec));
    spec.scratch = scratch_of(op, inputs > 0);
    if (step_.options.split_backward)
      spec.phase = inputs > 0 ? Phase::backward_input : Phase::backward_weight;
    read_kept(op, layer, spec);
    gradients_.contribute(op, incoming, spec);
    for (const std::size_t p : layer.used) gradients_.contribute(op, step_.parameters[p], spec);
    spec.kernel.has_bias = trains_bias(op, layer);
    add_input_products(op, inputs, spec);
    add_weight_product(op, layer, spec);
    if (spec.kept.empty() && spec.workspace == Bytes{}) return;
    gradients_.join(op, incoming, spec);
    step_.add_whole(std::move(spec));
    copies_.add_casts_back(op, layer);
  }

  [[nodiscard]] KernelScratch scratch_of(const NetworkOperator& op, bool of_input) const {
    if (!of_input) return op.effect.weight_scratch;
    return trains_weight(step_.network, op) ? op.effect.backward_scratch : op.effect.input_scratch;
  }

  /// Whether the output is a product of inputs and weight, so that each gradient is one of the
  /// incoming gradient and the other factor.
  [[nodiscard]] bool multiplies_weight(const NetworkOperator& op, const StepLayer& layer) const {
    return !layer.used.empty() && op.effect.macs != Elements{} && !op.effect.keeps_output &&
           op.effect.extras.empty() && trains_weight(step_.network, op);
  }

  /// The bias of a convolution is its last parameter.
  [[nodiscard]] bool trains_bias(const NetworkOperator& op, const StepLayer& layer) const {
    return op.effect.kernel.has_bias && !step_.parameters[layer.used.back()].trained.empty();
  }

  /// What both halves read is traffic of the first. The second follows at once, or when the exchange
  /// has been issued that the first is for.
  void add_halves(std::size_t i, const ValueGradient& incoming, std::int64_t inputs,
                  OperatorSpec input) {
    const NetworkOperator& op = step_.network.operators[i];
    const StepLayer& layer = step_.layers[i];
    OperatorSpec weight = step_.layer_spec(
        op, step_.options.split_backward ? Phase::backward_weight : Phase::backward);
    weight.name = op.name + ".backward_weight";
    weight.forward = layer.forward;
    weight.reads = incoming.tensors;
    if (op.is_in_fp8) {
      weight.reads = {incoming.tensors.back()};
      input.reads = {incoming.tensors.front()};
    }
    weight.scratch = op.effect.weight_scratch;
    weight.kernel = input.kernel;
    for (const std::uint32_t read : op.kept)
      add_once(weight.reads, exchanges_.kept_of(op, layer, read));
    for (const std::size_t p : layer.used) gradients_.contribute(op, step_.parameters[p], weight);
    weight.kernel.has_bias = trains_bias(op, layer);
    input.kernel.has_bias = false;
    add_weight_product(op, layer, weight);

    input.name = op.name + ".backward_input";
    if (step_.options.split_backward) input.phase = Phase::backward_input;
    input.scratch = op.effect.input_scratch;
    read_weights(op, layer, input);
    gradients_.contribute(op, incoming, input);
    add_input_products(op, inputs, input);
    weight.traffic += step_.builder.moved(weight);
    if (!op.is_in_fp8)
      for (const TensorId id : incoming.tensors) weight.traffic -= step_.builder[id].bytes;
    gradients_.join(op, incoming, input);
    step_.add_whole(std::move(input));
    weight.bare = weight.kept;
    exchanges_.add_weight_half(i, std::move(weight));
  }

  /// Of copies the weight's only, where autograd keeps it.
  [[nodiscard]] bool backward_reads(const NetworkOperator& op, std::size_t p) const {
    if (op.is_in_fp8) return !step_.parameters[p].is_bias && step_.has_gradient(op.inputs.front());
    if (!op.copies_parameters) return true;
    return op.keeps_weight_copy && !step_.parameters[p].is_bias;
  }

  static void add_input_products(const NetworkOperator& op, std::int64_t products,
                                 OperatorSpec& spec) {
    if (op.effect.macs == Elements{} || op.effect.backward_is_whole) return;
    spec.flops += Flops{2} * op.effect.macs.count() * products;
    spec.kernel.of_input = products > 0;
  }

  /// Of a share of the weight's rows that share of the product.
  void add_weight_product(const NetworkOperator& op, const StepLayer& layer,
                          OperatorSpec& spec) const {
    if (op.effect.macs == Elements{} || op.effect.backward_is_whole || layer.used.empty()) return;
    const StepParameter& weight = step_.parameters[layer.used.front()];
    if (weight.trained.empty()) return;
    const Signed128 share =
        Signed128{op.effect.macs.count()} * weight.trained.front() / weight.dims.front();
    spec.flops += Flops{2} * static_cast<std::int64_t>(share);
    spec.kernel.of_weight = true;
  }

  void read_kept(const NetworkOperator& op, const StepLayer& layer, OperatorSpec& spec) {
    for (const std::uint32_t input : op.kept)
      add_once(spec.reads, exchanges_.kept_of(op, layer, input));
    if (op.keeps_output) add_once(spec.reads, step_.storage_of(op.output));
    for (const TensorId extra : layer.extras) add_once(spec.reads, extra);
    if (op.pool != kNoValue) add_once(spec.reads, step_.layers[op.pool].extras.front());
    if (op.effect.backward_reads_parameters) read_weights(op, layer, spec);
  }

  /// Of a copy in fp8 the rows are not read.
  void read_weights(const NetworkOperator& op, const StepLayer& layer, OperatorSpec& spec) const {
    for (const std::size_t p : layer.used)
      if (backward_reads(op, p) && add_once(spec.reads, read_of(op, p)) && op.is_in_fp8)
        spec.traffic -= step_.parameters[p].quantized_rows;
  }

  /// The last layer that multiplies by a weight: what it makes is no hidden value.
  [[nodiscard]] std::size_t last_product() const {
    std::size_t i = step_.layers.size();
    while (i > 0 && (step_.layers[i - 1].used.empty() ||
                     step_.network.operators[i - 1].effect.macs == Elements{}))
      --i;
    return i == 0 ? 0 : i - 1;
  }

  void add_optimizer() {
    std::vector<UpdatedLayer> updated;
    const std::size_t last = last_product();
    for (std::size_t i = 0; i < step_.layers.size(); ++i) {
      const OperatorClass of_class = step_.network.operators[i].rule->operator_class;
      UpdatedLayer layer{step_.network.operators[i].name, of_class, {}};
      for (const std::size_t p : step_.layers[i].own) {
        const StepParameter& it = step_.parameters[p];
        if (!it.has_gradient) continue;
        const bool is_hidden = i != last && !it.is_bias && is_orthogonalized(of_class, it.dims);
        const UpdatedParameter parameter{it.tensor,     it.gradient, it.trained, it.trained_bytes,
                                         it.is_in_int8, is_hidden,   it.whole};
        if (it.is_shared && step_.layers[i].own.size() > 1)
          updated.push_back({step_.builder[it.tensor].name, of_class, {parameter}});
        else
          layer.parameters.push_back(parameter);
      }
      if (!layer.parameters.empty()) updated.push_back(std::move(layer));
    }
    add_optimizer_step(step_.builder, updated, step_.options);
    if (step_.network.fp8 && step_.network.fp8->caches_weights) fp8_.quantize_updated_weights();
  }

  /// Values that a backward reads are `saved`, the others `activation`.
  static void classify(Workload& workload) {
    for (std::uint32_t b = workload.forwards; b < workload.optimizer_begin; ++b)
      for (const TensorId id : workload.list(workload.operators[b].reads)) {
        Tensor& tensor = workload.tensors[static_cast<std::size_t>(id)];
        if (tensor.tensor_class == TensorClass::activation && tensor.lifetime == Lifetime::step)
          tensor.tensor_class = TensorClass::saved;
      }
  }

  PartialStep step_;
  StepGradients gradients_;
  ParameterCopies copies_;
  Fp8Operators fp8_;
  ExchangeOperators exchanges_;
  RingOperators ring_;
  Elements parameters_, macs_;
};

}  // namespace

StepOptions step_options(const WorkloadOptions& options, Optimizer optimizer, DType dtype) {
  const bool is_scaled = options.autocast || options.master_weights;
  return {optimizer,
          options.split_backward,
          options.master_weights,
          is_scaled && options.autocast.value_or(dtype) == DType::fp16,
          options.fuses_optimizer.has_value(),
          options.clips_gradients.has_value(),
          options.fuses_accumulation.has_value(),
          Bytes{bytes_per_element(options.state_dtype ? options.state_dtype->value : DType::fp32)},
          options.tensor && options.tensor->overlaps && !options.split_backward,
          options.momentum_is_apart};
}

Workload build_step(const std::string& name, const Network& network, const StepOptions& options) {
  return StepBuilder(name, network, options).build();
}

}  // namespace plimsoll
