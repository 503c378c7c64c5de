#include "workload/training_step.hpp"

#include "workload/workload_builder.hpp"

#include <algorithm>

namespace plimsoll {
namespace {

constexpr std::int64_t kStateBytes = 4;

/// FLOPs of one optimizer step, for each element.
std::int64_t update_flops(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::none:
      return 0;
    case Optimizer::sgd:
      return 2;
    case Optimizer::sgd_momentum:
      return 4;
    case Optimizer::adam:
      return 12;
    case Optimizer::adamw:
      return 14;
  }
  return 0;
}

/// Turns a network into the operators of a step.
class StepBuilder {
 public:
  StepBuilder(const std::string& name, const Network& network, Optimizer optimizer, bool split)
      : network_(network),
        optimizer_(optimizer),
        split_(split),
        builder_(name),
        storages_(network.storages.size(), kNoTensor),
        gradients_(network.gradients.size(), kNoTensor),
        trains_(network.gradients.size()) {}

  Workload build() {
    for (std::size_t s = 0; s < storages_.size(); ++s)
      if (const NetworkStorage& storage = network_.storages[s]; storage.is_input)
        storages_[s] =
            add_tensor(storage.name, storage.bytes, TensorClass::activation, Lifetime::input);
    layers_.resize(network_.operators.size());
    for (std::size_t i = 0; i < layers_.size(); ++i) add_forward(i);
    for (std::size_t i = layers_.size(); i-- > 0;) add_backward(i);
    if (optimizer_ != Optimizer::none)
      for (std::size_t i = 0; i < layers_.size(); ++i) add_update(i);
    Workload workload = builder_.freeze();
    classify(workload);
    workload.parameters = parameters_.count();
    workload.macs = macs_.count();
    return workload;
  }

 private:
  struct Parameter {
    TensorId tensor = kNoTensor, gradient = kNoTensor;
    Elements elements;
    bool has_gradient = false;
  };
  struct Layer {
    OperatorId forward = kNoOperator;
    std::vector<TensorId> extras;
    std::vector<std::size_t> used;  ///< parameters that it reads, a tied one first
    std::vector<std::size_t> own;   ///< parameters that it brought
  };

  [[nodiscard]] TensorId storage_of(std::uint32_t value) const {
    return storages_[network_.values[value].storage];
  }
  [[nodiscard]] std::uint32_t gradient_of(std::uint32_t value) const {
    return network_.values[value].gradient;
  }
  [[nodiscard]] Bytes gradient_bytes(std::uint32_t value) const {
    return network_.gradients[gradient_of(value)];
  }

  TensorId add_tensor(std::string name, Bytes bytes, TensorClass tensor_class, Lifetime lifetime) {
    return builder_.add(Tensor{std::move(name), bytes, tensor_class, lifetime, kNoTensor});
  }

  void add_parameters(const NetworkOperator& op, Layer& layer) {
    if (op.tied != kNoValue) layer.used.push_back(layers_[op.tied].own.front());
    for (const auto& [suffix, elements] : op.effect.parameters) {
      const std::string name = op.name + "." + suffix;
      const Bytes bytes = Bytes{network_.element} * elements.count();
      Parameter parameter;
      parameter.elements = elements;
      parameter.tensor = add_tensor(name, bytes, TensorClass::parameter, Lifetime::resident);
      parameter.gradient =
          add_tensor(name + ".gradient", bytes, TensorClass::gradient, Lifetime::accumulated);
      layer.used.push_back(parameters_of_.size());
      layer.own.push_back(parameters_of_.size());
      parameters_of_.push_back(parameter);
      parameters_ += elements;
    }
  }

  void add_forward(std::size_t i) {
    using Form = OperatorEffect::Form;
    const NetworkOperator& op = network_.operators[i];
    Layer& layer = layers_[i];
    add_parameters(op, layer);
    OperatorSpec spec;
    spec.name = op.name + ".forward";
    spec.operator_class = op.rule->operator_class;
    spec.flops = op.effect.forward_flops;
    spec.workspace = op.effect.forward_workspace;
    bool trains = !layer.used.empty();
    for (const std::uint32_t input : op.inputs) {
      add_once(spec.reads, storage_of(input));
      trains = trains || trains_[gradient_of(input)];
    }
    if (op.effect.form == Form::in_place) spec.updates = {storage_of(op.inputs.front())};
    if (op.effect.form == Form::fresh) {
      const std::uint32_t storage = network_.values[op.output].storage;
      storages_[storage] = add_tensor(op.name, network_.storages[storage].bytes,
                                      TensorClass::activation, Lifetime::step);
      spec.bare = spec.kept = {storages_[storage]};
    }
    if (op.output != kNoValue) trains_[gradient_of(op.output)] = trains;
    for (const KeptExtra& extra : op.effect.extras)
      layer.extras.push_back(add_tensor(op.name + "." + extra.name, bytes(extra, network_.element),
                                        TensorClass::saved, Lifetime::step));
    spec.kept.insert(spec.kept.end(), layer.extras.begin(), layer.extras.end());
    spec.traffic = traffic(spec);
    for (const std::size_t p : layer.used) {
      spec.reads.push_back(parameters_of_[p].tensor);
      spec.traffic += op.effect.sparse_parameters ? gradient_bytes(op.output)
                                                  : builder_[parameters_of_[p].tensor].bytes;
    }
    macs_ += op.effect.macs;
    layer.forward = builder_.add(std::move(spec));
  }

  /// Bytes read, made, and changed.
  [[nodiscard]] Bytes traffic(const OperatorSpec& spec) const {
    Bytes sum;
    for (const auto* list : {&spec.reads, &spec.kept, &spec.updates})
      for (const TensorId id : *list) sum += builder_[id].bytes;
    return sum;
  }

  static void add_once(std::vector<TensorId>& list, TensorId id) {
    if (std::ranges::find(list, id) == list.end()) list.push_back(id);
  }

  void add_backward(std::size_t i) {
    const NetworkOperator& op = network_.operators[i];
    const Layer& layer = layers_[i];
    OperatorSpec spec;
    spec.name = op.name + ".backward";
    spec.phase = Phase::backward;
    spec.operator_class = op.rule->operator_class;
    spec.forward = layer.forward;
    spec.flops = op.effect.backward_flops;
    TensorId incoming = kNoTensor;
    if (op.output != kNoValue) {
      if (!trains_[gradient_of(op.output)]) return;
      incoming = gradients_[gradient_of(op.output)];
      if (incoming == kNoTensor && i + 1 < layers_.size()) return;  // nothing reads its output
      if (incoming == kNoTensor)
        incoming = first_gradient(op, spec);
      else
        spec.reads.push_back(incoming);
    }
    const std::int64_t inputs = std::ranges::count_if(
        op.inputs, [&](std::uint32_t input) { return trains_[gradient_of(input)]; });
    if (split_ && inputs > 0 && multiplies_weight(op, layer))
      return add_halves(op, layer, incoming, inputs, std::move(spec));
    if (split_) spec.phase = inputs > 0 ? Phase::backward_input : Phase::backward_weight;
    read_kept(op, layer, spec);
    contribute(op, incoming, spec);
    for (const std::size_t p : layer.used) contribute(parameters_of_[p], spec);
    add_products(op, inputs + (layer.used.empty() ? 0 : 1), spec);
    if (spec.kept.empty() && spec.workspace == Bytes{}) return;
    add_whole(std::move(spec));
  }

  /// Whether the output is a product of inputs and weight, so that each gradient is one of the
  /// incoming gradient and the other factor.
  static bool multiplies_weight(const NetworkOperator& op, const Layer& layer) {
    return !layer.used.empty() && op.effect.macs != Elements{} && !op.effect.keeps_output &&
           op.effect.extras.empty();
  }

  /// What both halves read is traffic of the first.
  void add_halves(const NetworkOperator& op, const Layer& layer, TensorId incoming,
                  std::int64_t inputs, OperatorSpec input) {
    OperatorSpec weight;
    weight.name = op.name + ".backward_weight";
    weight.phase = Phase::backward_weight;
    weight.operator_class = input.operator_class;
    weight.forward = layer.forward;
    weight.reads = {incoming};
    for (const std::uint32_t read : op.inputs) add_once(weight.reads, storage_of(read));
    for (const std::size_t p : layer.used) contribute(parameters_of_[p], weight);
    add_products(op, 1, weight);

    input.name = op.name + ".backward_input";
    input.phase = Phase::backward_input;
    for (const std::size_t p : layer.used) add_once(input.reads, parameters_of_[p].tensor);
    contribute(op, incoming, input);
    add_products(op, inputs, input);
    weight.traffic = traffic(weight) - builder_[incoming].bytes;
    add_whole(std::move(input));
    weight.bare = weight.kept;
    builder_.add(std::move(weight));
  }

  void add_whole(OperatorSpec spec) {
    spec.bare = spec.kept;
    spec.traffic = traffic(spec);
    builder_.add(std::move(spec));
  }

  static void add_products(const NetworkOperator& op, std::int64_t products, OperatorSpec& spec) {
    if (op.effect.macs != Elements{}) spec.flops += Flops{2} * op.effect.macs.count() * products;
  }

  /// The gradient of the network's output, where no loss makes it.
  TensorId first_gradient(const NetworkOperator& op, OperatorSpec& spec) {
    const TensorId gradient = add_tensor(op.name + ".gradient", gradient_bytes(op.output),
                                         TensorClass::gradient, Lifetime::step);
    gradients_[gradient_of(op.output)] = gradient;
    spec.kept.push_back(gradient);
    return gradient;
  }

  void read_kept(const NetworkOperator& op, const Layer& layer, OperatorSpec& spec) const {
    if (op.effect.keeps_inputs)
      for (const std::uint32_t input : op.inputs) add_once(spec.reads, storage_of(input));
    if (op.effect.keeps_output) add_once(spec.reads, storage_of(op.output));
    for (const TensorId extra : layer.extras) add_once(spec.reads, extra);
    if (op.effect.backward_reads_parameters)
      for (const std::size_t p : layer.used) add_once(spec.reads, parameters_of_[p].tensor);
  }

  void contribute(const NetworkOperator& op, TensorId incoming, OperatorSpec& spec) {
    for (const std::uint32_t input : op.inputs)
      if (trains_[gradient_of(input)]) contribute(op, input, incoming, spec);
  }

  /// The operator's part of the gradient of one of its inputs.
  void contribute(const NetworkOperator& op, std::uint32_t input, TensorId incoming,
                  OperatorSpec& spec) {
    TensorId& gradient = gradients_[gradient_of(input)];
    if (op.effect.gradient == OperatorEffect::Gradient::pass && gradient == kNoTensor) {
      gradient = incoming;
      return;
    }
    const bool made_here =
        gradient != kNoTensor && std::ranges::find(spec.kept, gradient) != spec.kept.end();
    if (made_here && network_.values[input].part) return;
    if (gradient != kNoTensor && !made_here) add_once(spec.reads, gradient);
    gradient = add_tensor(network_.storages[network_.values[input].storage].name + ".gradient",
                          gradient_bytes(input), TensorClass::gradient, Lifetime::step);
    spec.kept.push_back(gradient);
  }

  void contribute(Parameter& parameter, OperatorSpec& spec) {
    if (parameter.has_gradient) spec.workspace += builder_[parameter.gradient].bytes;
    parameter.has_gradient = true;
    spec.kept.push_back(parameter.gradient);
  }

  void add_update(std::size_t i) {
    OperatorSpec spec;
    spec.name = network_.operators[i].name + ".update";
    spec.phase = Phase::optimizer;
    spec.operator_class = OperatorClass::optimizer;
    for (const std::size_t p : layers_[i].own) {
      const Parameter& parameter = parameters_of_[p];
      if (!parameter.has_gradient) continue;
      spec.reads.push_back(parameter.gradient);
      spec.updates.push_back(parameter.tensor);
      for (std::int64_t state = 1; state <= states_of(optimizer_); ++state)
        spec.updates.push_back(
            add_tensor(builder_[parameter.tensor].name + ".state_" + std::to_string(state),
                       Bytes{kStateBytes} * parameter.elements.count(),
                       TensorClass::optimizer_state, Lifetime::resident));
      spec.flops += Flops{update_flops(optimizer_)} * parameter.elements.count();
    }
    if (spec.updates.empty()) return;
    spec.reads.insert(spec.reads.end(), spec.updates.begin(), spec.updates.end());
    spec.traffic = traffic(spec);
    builder_.add(std::move(spec));
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

  const Network& network_;
  Optimizer optimizer_;
  bool split_;
  WorkloadBuilder builder_;
  std::vector<TensorId> storages_;   ///< by storage
  std::vector<TensorId> gradients_;  ///< by number of gradient
  std::vector<bool> trains_;         ///< by number of gradient: something before it is trained
  std::vector<Layer> layers_;
  std::vector<Parameter> parameters_of_;
  Elements parameters_, macs_;
};

}  // namespace

Workload build_step(const std::string& name, const Network& network, Optimizer optimizer,
                    bool split_backward) {
  return StepBuilder(name, network, optimizer, split_backward).build();
}

}  // namespace plimsoll
