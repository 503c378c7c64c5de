#include "workload/network/training_step.hpp"

#include "engine/wide.hpp"
#include "workload/core/workload_builder.hpp"
#include "workload/network/frozen_products.hpp"
#include "workload/network/optimizer_step.hpp"
#include "workload/operators/autocast.hpp"
#include "workload/operators/fp8.hpp"
#include "workload/operators/muon.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace plimsoll {
namespace {

/// Turns a network into the operators of a step.
class StepBuilder {
 public:
  StepBuilder(const std::string& name, const Network& network, const StepOptions& options)
      : network_(network),
        options_(options),
        builder_(name),
        storages_(network.storages.size(), kNoTensor),
        gathered_again_(network.storages.size(), kNoTensor),
        gradients_(network.gradients.size()),
        exchanges_(network.gradients.size(), kNoValue) {}

  Workload build() {
    for (std::size_t s = 0; s < storages_.size(); ++s)
      if (const NetworkStorage& storage = network_.storages[s]; storage.is_input)
        storages_[s] =
            add_tensor(storage.name, storage.bytes, TensorClass::activation, Lifetime::input);
    layers_.resize(network_.operators.size());
    for (std::size_t i = 0; i < layers_.size(); ++i) add_forward(i);
    for (std::size_t i = layers_.size(); i-- > 0;) add_backward(i);
    if (options_.optimizer != Optimizer::none) add_optimizer();
    Workload workload = builder_.freeze();
    classify(workload);
    workload.parameters = network_.all_parameters.value_or(parameters_).count();
    workload.macs = network_.share_of_macs.value_or(macs_).count();
    workload.frozen_macs = network_.share_of_frozen_macs.value_or(frozen_macs(network_)).count();
    workload.tokens = tokens_of_sample();
    return workload;
  }

 private:
  struct Parameter {
    TensorId tensor = kNoTensor, gradient = kNoTensor;
    TensorId copy = kNoTensor, copy_gradient = kNoTensor;  ///< in the type of the last reader
    OperatorId cast = kNoOperator;                         ///< makes the copy
    TensorId quantized = kNoTensor;                        ///< the same in fp8
    Bytes quantized_rows;                                  ///< of it, what a forward reads
    Dims whole;           ///< what is trained of all ranks of a tensor axis
    Dims dims, trained;   ///< the part that is trained: no dimensions where none is
    Bytes trained_bytes;  ///< of that part
    bool is_bias = false;
    bool is_in_int8 = false;  ///< it and its gradient: the update is one kernel in place
    bool has_gradient = false;
    /// Other layers use it, too: on other devices, maybe, which then update it alone.
    bool is_shared = false;

    [[nodiscard]] std::int64_t elements() const { return elements_of(trained).count(); }
    /// Of a weight: one for each expert.
    [[nodiscard]] std::int64_t products() const { return dims.size() > 2 ? dims.front() : 1; }
  };
  struct Gradient {
    std::vector<TensorId> tensors;
    bool is_in_parts = false;   ///< each of another part of the value
    bool is_quantized = false;  ///< rows, where the input has a gradient, then columns
  };
  struct WeightHalf {
    std::size_t layer = 0;
    OperatorSpec spec;
  };
  struct Layer {
    OperatorId forward = kNoOperator;
    std::vector<TensorId> extras;
    std::vector<std::size_t> used;    ///< parameters that it reads, a tied one first
    std::vector<std::size_t> own;     ///< parameters that it brought
    std::vector<std::size_t> cast;    ///< of `used`, those of which it made the copy
    TensorId fp8_state = kNoTensor;   ///< what its quantizations leave for those of the next step
    TensorId last_block = kNoTensor;  ///< of a ring: the keys and values that came last
  };

  [[nodiscard]] TensorId storage_of(std::uint32_t value) const {
    return storages_[network_.values[value].storage];
  }
  [[nodiscard]] std::uint32_t gradient_of(std::uint32_t value) const {
    return network_.values[value].gradient;
  }
  [[nodiscard]] bool has_gradient(std::uint32_t value) const {
    return network_.gradients[gradient_of(value)].is_made;
  }
  [[nodiscard]] Bytes gradient_bytes(std::uint32_t value) const {
    return network_.gradients[gradient_of(value)].bytes;
  }

  /// Positions of the longest input of token ids.
  [[nodiscard]] std::int64_t tokens_of_sample() const {
    std::int64_t tokens = 0;
    for (const NetworkValue& value : network_.values)
      if (value.indices && network_.storages[value.storage].is_input)
        tokens = std::max(tokens, elements_of(value.dims).count());
    return tokens * network_.ranks_of_positions;
  }

  /// Bytes of an element of a parameter.
  [[nodiscard]] std::int64_t parameter_element() const { return bytes_per_element(network_.dtype); }

  TensorId add_tensor(std::string name, Bytes bytes, TensorClass tensor_class, Lifetime lifetime) {
    return builder_.add(Tensor{std::move(name), bytes, tensor_class, lifetime, kNoTensor});
  }

  void add_parameters(const NetworkOperator& op, Layer& layer) {
    if (op.tied != kNoValue) {
      layer.used.push_back(layers_[op.tied].own.front());
      parameters_of_[layer.used.front()].is_shared = true;
    }
    for (std::size_t p = 0; p < op.trained.size(); ++p) {
      const auto& [suffix, dims] = op.effect.parameters[p];
      const std::string name = op.name + "." + suffix;
      Parameter parameter;
      parameter.dims = dims;
      parameter.is_bias = is_bias(suffix);
      parameter.trained = op.trained[p];
      parameter.whole = op.whole.empty() ? op.trained[p] : op.whole[p];
      parameter.is_in_int8 =
          op.bits.weights.value_or(32) <= 8 && op.bits.gradients.value_or(32) <= 8;
      parameter.tensor = builder_.add(Tensor{
          name, bytes_of(elements_of(dims), network_.dtype, op.bits.weights),
          TensorClass::parameter, Lifetime::resident, kNoTensor, false, false, op.divides_experts});
      if (!parameter.trained.empty()) add_gradient_of(op, name, parameter);
      layer.used.push_back(parameters_of_.size());
      layer.own.push_back(parameters_of_.size());
      parameters_ += elements_of(dims);
      parameters_of_.push_back(std::move(parameter));
    }
  }

  void add_gradient_of(const NetworkOperator& op, const std::string& name, Parameter& parameter) {
    const Elements trained{parameter.elements()};
    const Bytes bytes = options_.master_weights
                            ? kMasterElement * trained.count()
                            : bytes_of(trained, network_.dtype, op.bits.gradients);
    parameter.trained_bytes = bytes_of(trained, network_.dtype, op.bits.weights);
    parameter.gradient =
        builder_.add(Tensor{name + ".gradient", bytes, TensorClass::gradient, Lifetime::accumulated,
                            kNoTensor, false, op.makes_partial_gradients, op.divides_experts});
  }

  void add_forward(std::size_t i) {
    using Form = OperatorEffect::Form;
    const NetworkOperator& op = network_.operators[i];
    Layer& layer = layers_[i];
    note_exchange(i);
    if (op.effect.exchange) return add_exchange(op, layer);
    if (op.effect.ring) return add_ring(op, layer);
    add_parameters(op, layer);
    if (op.copies_parameters) copy_parameters(op, layer);
    if (op.is_in_fp8) quantize_weights(op, layer);
    OperatorSpec spec = layer_spec(op, Phase::forward);
    spec.flops = op.effect.forward_flops;
    spec.workspace = op.effect.forward_workspace;
    spec.scratch = op.effect.forward_scratch;
    spec.kernel = op.effect.kernel;
    for (const std::uint32_t input : op.inputs) add_once(spec.reads, storage_of(input));
    if (op.pool != kNoValue) spec.reads.push_back(layers_[op.pool].extras.front());
    if (op.effect.form == Form::in_place) spec.updates = {storage_of(op.inputs.front())};
    if (op.effect.form == Form::fresh) make_output(op, spec);
    if (op.rule == &quantize_rule()) add_quantization(op, spec);
    make_extras(op, layer, spec);
    if (op.is_undone) spec.bare.push_back(layer.extras.front());
    spec.traffic += builder_.moved(spec);
    for (const std::size_t p : layer.used) {
      spec.reads.push_back(read_of(op, p));
      spec.traffic += op.effect.sparse_parameters ? gradient_bytes(op.output)
                                                  : builder_[spec.reads.back()].bytes;
      spec.traffic -= unread_in_forward(op, p);
    }
    if (layer.fp8_state != kNoTensor) spec.reads.push_back(layer.fp8_state);
    macs_ += op.effect.macs;
    layer.forward = builder_.add(std::move(spec));
  }

  /// A storage of its own for the output of `op`, made by `spec`.
  void make_output(const NetworkOperator& op, OperatorSpec& spec) {
    const std::uint32_t storage = network_.values[op.output].storage;
    storages_[storage] =
        add_tensor(network_.storages[storage].name, network_.storages[storage].bytes,
                   TensorClass::activation, Lifetime::step);
    spec.bare = spec.kept = {storages_[storage]};
  }

  void make_extras(const NetworkOperator& op, Layer& layer, OperatorSpec& spec) {
    for (const KeptExtra& extra : op.effect.extras)
      layer.extras.push_back(add_tensor(
          op.name + "." + extra.name, kept_bytes(op, extra),
          op.has_backward ? TensorClass::saved : TensorClass::activation, Lifetime::step));
    spec.kept.insert(spec.kept.end(), layer.extras.begin(), layer.extras.end());
  }

  // ---- attention to blocks that pass round (ring_attention_rule()) ----

  /// With each block while the next one comes; what they give is merged in place. The last block is
  /// kept for the backward.
  void add_ring(const NetworkOperator& op, Layer& layer) {
    const OperatorEffect::Ring& ring = *op.effect.ring;
    layer.last_block = add_first_block(op);
    for (std::int64_t r = 0; r < ring.ranks; ++r) {
      std::vector<TensorId> next{layer.last_block};
      if (r + 1 < ring.ranks) next = add_pass(op, layer, Phase::forward, r, next);
      OperatorSpec spec = layer_spec(op, Phase::forward);
      if (r > 0) spec.name += "_" + std::to_string(r + 1);
      spec.flops = r == 0 ? ring.own_forward : ring.forward;
      spec.kernel = op.effect.kernel;
      spec.reads = {storage_of(op.inputs.front()), layer.last_block};
      if (r == 0) {
        make_output(op, spec);
        make_extras(op, layer, spec);
        spec.bare = spec.kept;
      } else {
        spec.updates = {storage_of(op.output)};
        spec.updates.insert(spec.updates.end(), layer.extras.begin(), layer.extras.end());
        spec.reads.insert(spec.reads.end(), spec.updates.begin(), spec.updates.end());
      }
      spec.traffic = builder_.moved(spec);
      layer.forward = builder_.add(std::move(spec));
      layer.last_block = next.front();
    }
    macs_ += op.effect.macs;
  }

  /// The rank's keys and values in one storage.
  TensorId add_first_block(const NetworkOperator& op) {
    const Bytes bytes = value_bytes(op.inputs[1]) + value_bytes(op.inputs[2]);
    OperatorSpec spec = layer_spec(op, Phase::forward);
    spec.name += "_block";
    spec.operator_class = OperatorClass::elementwise;
    for (const std::uint32_t input : {op.inputs[1], op.inputs[2]})
      add_once(spec.reads, storage_of(input));
    spec.kept = {add_tensor(op.name + ".block", bytes, TensorClass::activation, Lifetime::step)};
    spec.bare = spec.kept;
    spec.traffic = bytes * 2;
    const TensorId block = spec.kept.front();
    builder_.add(std::move(spec));
    return block;
  }

  [[nodiscard]] Bytes value_bytes(std::uint32_t value) const {
    const NetworkValue& it = network_.values[value];
    return Bytes{bytes_per_element(it.type)} * network_.batch * elements_of(it.dims).count();
  }

  /// What ranks have after the turn `r` in which they have `held`.
  std::vector<TensorId> add_pass(const NetworkOperator& op, const Layer& layer, Phase phase,
                                 std::int64_t r, const std::vector<TensorId>& held) {
    const bool is_forward = phase == Phase::forward;
    OperatorSpec spec = layer_spec(op, phase);
    const char* what =
        builder_[held.front()].tensor_class == TensorClass::gradient ? "_gradients" : "";
    spec.name += fmt::format("_pass{}_{}", what, r + 1);
    spec.operator_class = OperatorClass::other;
    spec.given_time = Time{};
    spec.collective = {is_forward ? CollectiveKind::pass_on : CollectiveKind::pass_back,
                       MeshAxis::context};
    if (!is_forward) spec.forward = layer.forward;
    if (!is_forward && options_.split_backward) spec.phase = Phase::backward_input;
    spec.reads = held;
    for (const TensorId id : held) {
      Tensor next = builder_[id];
      next.name = fmt::format("{}.{}", spec.name, spec.kept.size() + 1);
      spec.kept.push_back(builder_.add(std::move(next)));
    }
    spec.bare = spec.kept;
    std::vector<TensorId> kept = spec.kept;
    builder_.add(std::move(spec));
    return kept;
  }

  /// Blocks go back from rank to rank until each has its own; the gradients of a block go with it, and
  /// every rank adds its part while it computes the next. `spec`: of the whole backward.
  void add_ring_backward(const NetworkOperator& op, const Layer& layer, const Gradient& incoming,
                         const OperatorSpec& spec) {
    const OperatorEffect::Ring& ring = *op.effect.ring;
    TensorId block = layer.last_block;
    std::vector<TensorId> of_query, arrived;
    for (std::int64_t r = 0; r < ring.ranks; ++r) {
      const bool is_own = r + 1 == ring.ranks;
      const TensorId next =
          is_own ? kNoTensor : add_pass(op, layer, Phase::backward, r, {block}).front();
      OperatorSpec it = spec;
      if (r > 0) it.name += "_" + std::to_string(r + 1);
      it.flops = is_own ? ring.own_backward : ring.backward;
      if (options_.split_backward) it.phase = Phase::backward_input;
      for (const TensorId id : {storage_of(op.inputs.front()), block, storage_of(op.output)})
        add_once(it.reads, id);
      for (const TensorId extra : layer.extras) add_once(it.reads, extra);
      add_to_query(op, incoming, of_query, it);
      const std::vector<TensorId> made = make_block_gradients(op, incoming, is_own, it);
      join(op, incoming, it);
      add_whole(std::move(it));
      if (!arrived.empty()) add_arrived(op, layer, r, arrived, made);
      if (!is_own && !made.empty()) arrived = add_pass(op, layer, Phase::backward, r, made);
      block = next;
    }
  }

  /// The first block's backward makes the gradient of the query, the others add to it.
  void add_to_query(const NetworkOperator& op, const Gradient& incoming,
                    std::vector<TensorId>& of_query, OperatorSpec& it) {
    if (of_query.empty()) {
      if (has_gradient(op.inputs.front())) contribute(op, 0, incoming, it);
      of_query = it.kept;
      return;
    }
    it.updates = of_query;
    for (const TensorId id : of_query) add_once(it.reads, id);
  }

  /// Of keys and values: those of the rank's own are the operator's.
  std::vector<TensorId> make_block_gradients(const NetworkOperator& op, const Gradient& incoming,
                                             bool is_own, OperatorSpec& it) {
    const auto before = static_cast<std::ptrdiff_t>(it.kept.size());
    for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
      if (!has_gradient(op.inputs[i])) continue;
      if (is_own)
        contribute(op, i, incoming, it);
      else
        add_gradient(it.name, value_bytes(op.inputs[i]), it);
    }
    return {it.kept.begin() + before, it.kept.end()};
  }

  void add_arrived(const NetworkOperator& op, const Layer& layer, std::int64_t r,
                   const std::vector<TensorId>& arrived, const std::vector<TensorId>& made) {
    OperatorSpec spec = layer_spec(op, Phase::backward);
    if (options_.split_backward) spec.phase = Phase::backward_input;
    spec.name += fmt::format("_sum_{}", r + 1);
    spec.operator_class = OperatorClass::elementwise;
    spec.forward = layer.forward;
    spec.reads = arrived;
    spec.reads.insert(spec.reads.end(), made.begin(), made.end());
    spec.updates = made;
    add_whole(std::move(spec));
  }

  [[nodiscard]] static bool sums_gradient(const NetworkOperator& op) {
    const auto& exchange = op.effect.exchange;
    return exchange && (exchange->backward == CollectiveKind::all_reduce ||
                        exchange->backward == CollectiveKind::reduce_scatter);
  }

  /// Through which exchange the gradient of a value goes that layers multiply by their weights.
  void note_exchange(std::size_t i) {
    const NetworkOperator& op = network_.operators[i];
    if (!options_.overlaps_exchanges || op.output == kNoValue) return;
    std::uint32_t& exchange = exchanges_[gradient_of(op.output)];
    if (sums_gradient(op)) exchange = static_cast<std::uint32_t>(i);
    if (op.rule == &cast_rule()) exchange = exchanges_[gradient_of(op.inputs.front())];
  }

  /// What ranks exchange takes no time where it is issued (workload/core/collective.hpp).
  void add_exchange(const NetworkOperator& op, Layer& layer) {
    using Form = OperatorEffect::Form;
    const TensorId from = storage_of(op.inputs.front());
    if (op.effect.form == Form::same) return;  // no operator
    OperatorSpec spec = exchange_spec(op, Phase::forward, op.effect.exchange->forward);
    spec.reads = {from};
    if (op.effect.form == Form::in_place) spec.updates = {from};
    if (op.effect.form == Form::fresh) make_output(op, spec);
    layer.forward = builder_.add(std::move(spec));
  }

  [[nodiscard]] OperatorSpec exchange_spec(const NetworkOperator& op, Phase phase,
                                           CollectiveKind kind) const {
    OperatorSpec spec = layer_spec(op, phase);
    spec.given_time = Time{};
    spec.collective = {kind, op.effect.exchange->axis};
    if (phase != Phase::forward && options_.split_backward) spec.phase = Phase::backward_input;
    return spec;
  }

  /// An operator of a layer, named after it.
  OperatorSpec layer_spec(const NetworkOperator& op, Phase phase) const {
    OperatorSpec spec;
    spec.name = op.name + (phase == Phase::forward ? ".forward" : ".backward");
    if (!op.part.empty()) spec.name += "_" + op.part;
    spec.phase = phase;
    spec.operator_class = op.rule->operator_class;
    spec.is_random = op.rule->traits.is_random && phase == Phase::forward;
    if (op.type != network_.dtype) spec.dtype = op.type;
    if (op.is_in_fp8) spec.dtype = DType::fp8;
    if (is_in_int8(op, phase != Phase::forward)) spec.dtype = DType::int8;
    return spec;
  }

  /// What the operator reads of a parameter.
  [[nodiscard]] TensorId read_of(const NetworkOperator& op, std::size_t p) const {
    const Parameter& parameter = parameters_of_[p];
    if (op.is_in_fp8) return parameter.is_bias ? parameter.tensor : parameter.quantized;
    return op.copies_parameters ? parameter.copy : parameter.tensor;
  }

  /// One cast for each. The copy of what is trained is cached until the forwards end, and read by
  /// all that tie to it.
  void copy_parameters(const NetworkOperator& op, Layer& layer) {
    for (const std::size_t p : layer.used) {
      Parameter& parameter = parameters_of_[p];
      if (parameter.copy != kNoTensor) continue;
      const bool is_cached = !parameter.trained.empty();
      const std::string& name = builder_[parameter.tensor].name;
      Tensor copy{name + ".copy",
                  Bytes{bytes_per_element(op.type)} * elements_of(parameter.dims).count(),
                  TensorClass::activation,
                  Lifetime::step,
                  kNoTensor,
                  is_cached};
      parameter.copy = builder_.add(std::move(copy));
      OperatorSpec spec = cast_spec(op, parameter, Phase::forward);
      spec.reads = {parameter.tensor};
      spec.kept = {parameter.copy};
      layer.cast.push_back(p);
      parameter.cast = add_whole(std::move(spec));
    }
  }

  // ---- products in fp8 (operators/fp8.hpp) ----

  /// The second layout, and what making both costs beside reading the value and writing them.
  void add_quantization(const NetworkOperator& op, OperatorSpec& spec) {
    if (op.columns != kNoValue) {
      const std::uint32_t storage = network_.values[op.columns].storage;
      storages_[storage] =
          add_tensor(network_.storages[storage].name, network_.storages[storage].bytes,
                     TensorClass::activation, Lifetime::step);
      spec.kept.push_back(storages_[storage]);
    }
    find_largest(value_bytes(op.inputs.front()), spec);
  }

  /// With `current`: a kernel that reads the value, and one that makes the scale of the result.
  void find_largest(Bytes of, OperatorSpec& spec) const {
    if (network_.fp8->recipe != Fp8Recipe::current) return;
    spec.traffic += of;
    spec.launches += 2;
  }

  /// Of each weight one copy, for all that tie to it.
  void quantize_weights(const NetworkOperator& op, Layer& layer) {
    const Parameter& weight = parameters_of_[layer.used.front()];
    if (const Bytes state = fp8_state(*network_.fp8, weight.products()); state > Bytes{})
      layer.fp8_state = builder_.add(whole_tensor(op.name + ".fp8_state", state, op));
    for (const std::size_t p : layer.used) {
      Parameter& parameter = parameters_of_[p];
      if (parameter.is_bias || parameter.quantized != kNoTensor) continue;
      const Fp8Weight its = fp8_weight(network_, op, parameter.dims);
      const std::string name = builder_[parameter.tensor].name + ".fp8";
      parameter.quantized_rows = its.rows;
      if (network_.fp8->caches_weights) {
        parameter.quantized = builder_.add(whole_tensor(name, its.bytes, op));
        continue;
      }
      parameter.quantized = add_tensor(name, its.bytes, TensorClass::activation, Lifetime::step);
      OperatorSpec spec = layer_spec(op, Phase::forward);
      spec.name += "_quantize_weight";
      add_weight_quantization(parameter, spec);
      spec.kept = {parameter.quantized};
      add_whole(std::move(spec));
    }
  }

  /// On every rank, throughout.
  [[nodiscard]] Tensor whole_tensor(std::string name, Bytes bytes,
                                    const NetworkOperator& op) const {
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

  void add_weight_quantization(const Parameter& parameter, OperatorSpec& spec) const {
    spec.operator_class = quantize_rule().operator_class;
    spec.reads = {parameter.tensor};
    find_largest(builder_[parameter.tensor].bytes, spec);
  }

  /// After the updates, for all microbatches of the next step.
  void quantize_updated_weights() {
    for (std::size_t i = 0; i < layers_.size(); ++i)
      for (const std::size_t p : layers_[i].own) {
        const Parameter& parameter = parameters_of_[p];
        if (parameter.quantized == kNoTensor || !parameter.has_gradient) continue;
        OperatorSpec spec;
        spec.name = network_.operators[i].name + ".quantize";
        spec.phase = Phase::optimizer;
        add_weight_quantization(parameter, spec);
        spec.updates = {parameter.quantized};
        spec.traffic += builder_.moved(spec);
        spec.reads.push_back(parameter.quantized);
        builder_.add(std::move(spec));
      }
  }

  /// Of the copy of a weight, which has both layouts.
  [[nodiscard]] Bytes unread_in_forward(const NetworkOperator& op, std::size_t p) const {
    const Parameter& parameter = parameters_of_[p];
    if (!op.is_in_fp8 || parameter.is_bias) return Bytes{};
    return builder_[parameter.quantized].bytes - parameter.quantized_rows;
  }

  /// Which layouts of its incoming gradient the backward of a layer reads: rows for the gradient of the
  /// input, columns for that of the weight.
  [[nodiscard]] Fp8Layouts gradient_layouts(const NetworkOperator& op) const {
    const bool has_input =
        std::ranges::any_of(op.inputs, [&](std::uint32_t input) { return has_gradient(input); });
    return {has_input, trains_weight(network_, op)};
  }

  [[nodiscard]] Phase phase_of_gradient(Fp8Layouts layouts) const {
    if (!options_.split_backward) return Phase::backward;
    return layouts.rows ? Phase::backward_input : Phase::backward_weight;
  }

  /// In fp8, of the layer `op` and so many rows, the layouts each by itself: rows first.
  std::vector<TensorId> add_quantized_gradient(const NetworkOperator& op, const Dims& dims,
                                               Fp8Layouts layouts, const char* suffix) {
    std::vector<TensorId> made;
    const Fp8Matrix matrix = fp8_matrix_of(dims, network_.batch);
    const auto make = [&](const char* layout, Fp8Layouts one) {
      made.push_back(add_tensor(op.name + ".gradient.fp8" + layout + suffix,
                                fp8_bytes(network_.fp8->recipe, Quantized::values, matrix, one),
                                TensorClass::gradient, Lifetime::step));
    };
    if (layouts.rows) make("", {true, false});
    if (layouts.columns) make(".columns", {false, true});
    return made;
  }

  /// The incoming gradient in fp8; `spec` reads it.
  Gradient quantize_gradient(const NetworkOperator& op, const Layer& layer,
                             const Gradient& incoming, OperatorSpec spec) {
    const Fp8Layouts layouts = gradient_layouts(op);
    spec.name += "_quantize";
    spec.operator_class = quantize_rule().operator_class;
    spec.phase = phase_of_gradient(layouts);
    spec.forward = layer.forward;
    const Gradient quantized{add_quantized_gradient(op, op.effect.output, layouts, ""), false,
                             true};
    spec.kept.insert(spec.kept.end(), quantized.tensors.begin(), quantized.tensors.end());
    find_largest(gradient_bytes(op.output), spec);
    join(op, incoming, spec);
    add_whole(std::move(spec));
    return quantized;
  }

  /// The layer in fp8 whose output ranks add up and divide by positions: they quantize their parts of
  /// its gradient before they gather it. kNoValue: none.
  [[nodiscard]] std::uint32_t quantizes_before(std::size_t exchange) const {
    const NetworkOperator& op = network_.operators[exchange];
    if (op.effect.exchange->backward != CollectiveKind::all_gather || exchange == 0)
      return kNoValue;
    const NetworkOperator& layer = network_.operators[exchange - 1];
    const Fp8Layouts layouts = gradient_layouts(layer);
    const bool is_its =
        layer.is_in_fp8 && layer.output == op.inputs.front() && (layouts.rows || layouts.columns);
    return is_its ? static_cast<std::uint32_t>(exchange - 1) : kNoValue;
  }

  /// Of what has a scale for each tensor, rows alone are gathered, and transposed behind that.
  Gradient gather_quantized(std::size_t exchange, std::uint32_t i, const Gradient& incoming) {
    const NetworkOperator& op = network_.operators[exchange];
    const NetworkOperator& reader = network_.operators[i];
    const Fp8Layouts layouts = gradient_layouts(reader);
    const bool transposes = scales_tensors(network_.fp8->recipe) && layouts.columns;
    const Fp8Layouts sent = transposes ? Fp8Layouts{true, false} : layouts;
    const OperatorId forward = forward_of_exchange(exchange);

    const auto spec_of = [&](const char* suffix) {
      OperatorSpec spec = layer_spec(reader, Phase::backward);
      spec.name += suffix;
      spec.operator_class = quantize_rule().operator_class;
      spec.phase = phase_of_gradient(layouts);
      spec.forward = forward;
      return spec;
    };
    OperatorSpec quantize = spec_of("_quantize");
    quantize.reads = incoming.tensors;
    quantize.traffic -= rest_of(incoming, gradient_bytes(op.output));
    quantize.kept = add_quantized_gradient(reader, network_.values[op.output].dims, sent, ".part");
    find_largest(gradient_bytes(op.output), quantize);
    join(op, incoming, quantize);
    const std::vector<TensorId> parts = quantize.kept;
    add_whole(std::move(quantize));

    OperatorSpec gather = exchange_spec(op, Phase::backward, CollectiveKind::all_gather);
    gather.phase = phase_of_gradient(layouts);
    gather.forward = forward;
    gather.reads = parts;
    gather.kept = add_quantized_gradient(reader, reader.effect.output, sent, "");
    gather.bare = gather.kept;
    Gradient whole{gather.kept, false, true};
    builder_.add(std::move(gather));
    if (!transposes) return whole;

    OperatorSpec transpose = spec_of("_transpose_gradient");
    transpose.reads = whole.tensors;
    transpose.kept = add_quantized_gradient(reader, reader.effect.output, {false, true}, "");
    if (!layouts.rows) whole.tensors.clear();
    whole.tensors.push_back(transpose.kept.front());
    add_whole(std::move(transpose));
    return whole;
  }

  /// What was gathered by rows, by columns.
  TensorId transposed(const NetworkOperator& op, const Layer& layer, TensorId rows) {
    OperatorSpec spec = layer_spec(op, Phase::backward);
    if (options_.split_backward) spec.phase = Phase::backward_weight;
    spec.name += "_transpose";
    spec.operator_class = quantize_rule().operator_class;
    spec.forward = layer.forward;
    spec.reads = {rows};
    const TensorId columns = add_tensor(builder_[rows].name + ".columns", builder_[rows].bytes,
                                        TensorClass::activation, Lifetime::step);
    spec.kept = {columns};
    add_whole(std::move(spec));
    return columns;
  }

  OperatorSpec cast_spec(const NetworkOperator& op, const Parameter& parameter, Phase phase) const {
    const std::string& name = builder_[parameter.tensor].name;
    OperatorSpec spec = layer_spec(op, phase);
    spec.name += "_cast" + ("_" + name.substr(name.rfind('.') + 1));
    spec.operator_class = cast_rule().operator_class;
    spec.is_random = false;
    return spec;
  }

  /// Whether it was not there.
  static bool add_once(std::vector<TensorId>& list, TensorId id) {
    if (std::ranges::find(list, id) != list.end()) return false;
    list.push_back(id);
    return true;
  }

  void add_backward(std::size_t i) {
    const NetworkOperator& op = network_.operators[i];
    const Layer& layer = layers_[i];
    if (op.effect.exchange) return add_exchange_backward(i);
    OperatorSpec spec = layer_spec(op, Phase::backward);
    spec.forward = layer.forward;
    spec.flops = op.effect.backward_flops;
    spec.workspace = op.effect.backward_workspace;
    spec.kernel = op.effect.kernel;
    if (!op.has_backward) return;
    Gradient incoming;
    if (op.output != kNoValue) {
      incoming = gradients_[gradient_of(op.output)];
      spec.reads = incoming.tensors;
      if (spec.reads.empty() && i + 1 < layers_.size()) return;  // nothing reads its output
      if (spec.reads.empty()) incoming = first_gradient(op, spec);
      if (!incoming.is_quantized) spec.traffic -= rest_of(incoming, gradient_bytes(op.output));
    }
    if (op.effect.ring) return add_ring_backward(op, layer, incoming, spec);
    const std::int64_t inputs =
        std::ranges::count_if(op.inputs, [&](std::uint32_t input) { return has_gradient(input); });
    if (op.is_in_fp8 && !incoming.is_quantized && (inputs > 0 || trains_weight(network_, op))) {
      OperatorSpec quantize = layer_spec(op, Phase::backward);
      std::swap(quantize.reads, spec.reads);
      std::swap(quantize.kept, spec.kept);
      std::swap(quantize.traffic, spec.traffic);
      incoming = quantize_gradient(op, layer, incoming, std::move(quantize));
      spec.reads = incoming.tensors;
    }
    const bool is_halved = options_.split_backward || exchange_of(op) != kNoValue;
    if (is_halved && inputs > 0 && multiplies_weight(op, layer))
      return add_halves(i, incoming, inputs, std::move(spec));
    spec.scratch = scratch_of(op, inputs > 0);
    if (options_.split_backward)
      spec.phase = inputs > 0 ? Phase::backward_input : Phase::backward_weight;
    read_kept(op, layer, spec);
    contribute(op, incoming, spec);
    for (const std::size_t p : layer.used) contribute(op, parameters_of_[p], spec);
    spec.kernel.has_bias = trains_bias(op, layer);
    add_input_products(op, inputs, spec);
    add_weight_product(op, layer, spec);
    if (spec.kept.empty() && spec.workspace == Bytes{}) return;
    join(op, incoming, spec);
    add_whole(std::move(spec));
    add_casts_back(op, layer);
  }

  /// The forward that an exchange is for: its own, or where it has none that of the first layer that
  /// reads the value so. Others may read the value before; so it is not the one that made it.
  [[nodiscard]] OperatorId forward_of_exchange(std::size_t i) const {
    while (layers_[i].forward == kNoOperator) ++i;
    return layers_[i].forward;
  }

  /// Behind which the gradient of the weight of a layer is made; kNoValue: behind none.
  [[nodiscard]] std::uint32_t exchange_of(const NetworkOperator& op) const {
    return exchanges_[gradient_of(op.inputs.front())];
  }

  void add_exchange_backward(std::size_t i) {
    const NetworkOperator& op = network_.operators[i];
    const OperatorId forward = forward_of_exchange(i);
    Gradient its = op.has_backward ? gradients_[gradient_of(op.output)] : Gradient{};
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
        its = {{add_gradient(op.name, gradient_bytes(op.inputs.front()), spec)}};
        spec.bare = spec.kept;
      }
      builder_.add(std::move(spec));
    }
    for (WeightHalf& half : postponed_[static_cast<std::uint32_t>(i)])
      add_weight_half(half.layer, std::move(half.spec));
    pass_back(op, forward, std::move(its));
  }

  /// What ranks have exchanged is the gradient of the input, or is added to it.
  void pass_back(const NetworkOperator& op, OperatorId forward, Gradient its) {
    const std::uint32_t input = op.inputs.front();
    Gradient& gradient = gradients_[gradient_of(input)];
    if (gradient.tensors.empty()) {
      gradient = std::move(its);
      return;
    }
    OperatorSpec spec = layer_spec(op, Phase::backward);
    if (options_.split_backward) spec.phase = Phase::backward_input;
    spec.name += "_sum";
    spec.operator_class = OperatorClass::elementwise;
    spec.forward = forward;
    spec.reads = its.tensors;
    for (const TensorId id : gradient.tensors) add_once(spec.reads, id);
    gradient = {{add_gradient(op.name, gradient_bytes(input), spec)}};
    add_whole(std::move(spec));
  }

  /// What the backward of an operator reads of a value that it kept: of one that was gathered, all
  /// parts, gathered again before the first backward that reads them.
  TensorId kept_of(const NetworkOperator& op, const Layer& layer, std::uint32_t value) {
    for (const std::uint32_t input : op.inputs) {
      const std::uint32_t storage = network_.values[input].storage;
      if (network_.storages[storage].gathered_from != value) continue;
      TensorId& again = gathered_again_[storage];
      if (again != kNoTensor) return again;
      const NetworkStorage& whole = network_.storages[storage];
      OperatorSpec spec = layer_spec(op, Phase::backward);
      if (options_.split_backward) spec.phase = Phase::backward_weight;
      spec.name += "_all_gather";
      spec.operator_class = OperatorClass::other;
      spec.given_time = Time{};
      spec.collective = {CollectiveKind::all_gather, MeshAxis::tensor};
      spec.forward = layer.forward;
      spec.reads = {storage_of(value)};
      again =
          add_tensor(whole.name + ".again", whole.bytes, TensorClass::activation, Lifetime::step);
      spec.bare = spec.kept = {again};
      builder_.add(std::move(spec));
      if (op.is_in_fp8 && scales_tensors(network_.fp8->recipe))
        again = transposed(op, layer, again);
      return again;
    }
    return storage_of(value);
  }

  /// The gradients of copies that the layer made, in the parameters' type.
  void add_casts_back(const NetworkOperator& op, const Layer& layer) {
    for (const std::size_t p : layer.cast) {
      Parameter& parameter = parameters_of_[p];
      if (parameter.copy_gradient == kNoTensor) continue;
      OperatorSpec spec = cast_spec(op, parameter, Phase::backward);
      if (options_.split_backward) spec.phase = Phase::backward_weight;
      spec.forward = parameter.cast;
      spec.reads = {parameter.copy_gradient};
      contribute(parameter, spec);
      add_whole(std::move(spec));
    }
  }

  [[nodiscard]] KernelScratch scratch_of(const NetworkOperator& op, bool of_input) const {
    if (!of_input) return op.effect.weight_scratch;
    return trains_weight(network_, op) ? op.effect.backward_scratch : op.effect.input_scratch;
  }

  /// Whether the output is a product of inputs and weight, so that each gradient is one of the
  /// incoming gradient and the other factor.
  [[nodiscard]] bool multiplies_weight(const NetworkOperator& op, const Layer& layer) const {
    return !layer.used.empty() && op.effect.macs != Elements{} && !op.effect.keeps_output &&
           op.effect.extras.empty() && trains_weight(network_, op);
  }

  /// The bias of a convolution is its last parameter.
  [[nodiscard]] bool trains_bias(const NetworkOperator& op, const Layer& layer) const {
    return op.effect.kernel.has_bias && !parameters_of_[layer.used.back()].trained.empty();
  }

  /// What both halves read is traffic of the first. The second follows at once, or when the exchange
  /// has been issued that the first is for.
  void add_halves(std::size_t i, const Gradient& incoming, std::int64_t inputs,
                  OperatorSpec input) {
    const NetworkOperator& op = network_.operators[i];
    const Layer& layer = layers_[i];
    OperatorSpec weight =
        layer_spec(op, options_.split_backward ? Phase::backward_weight : Phase::backward);
    weight.name = op.name + ".backward_weight";
    weight.forward = layer.forward;
    weight.reads = incoming.tensors;
    if (op.is_in_fp8) {
      weight.reads = {incoming.tensors.back()};
      input.reads = {incoming.tensors.front()};
    }
    weight.scratch = op.effect.weight_scratch;
    weight.kernel = input.kernel;
    for (const std::uint32_t read : op.kept) add_once(weight.reads, kept_of(op, layer, read));
    for (const std::size_t p : layer.used) contribute(op, parameters_of_[p], weight);
    weight.kernel.has_bias = trains_bias(op, layer);
    input.kernel.has_bias = false;
    add_weight_product(op, layer, weight);

    input.name = op.name + ".backward_input";
    if (options_.split_backward) input.phase = Phase::backward_input;
    input.scratch = op.effect.input_scratch;
    read_weights(op, layer, input);
    contribute(op, incoming, input);
    add_input_products(op, inputs, input);
    weight.traffic += builder_.moved(weight);
    if (!op.is_in_fp8)
      for (const TensorId id : incoming.tensors) weight.traffic -= builder_[id].bytes;
    join(op, incoming, input);
    add_whole(std::move(input));
    weight.bare = weight.kept;
    const std::uint32_t exchange = exchange_of(op);
    if (exchange == kNoValue) return add_weight_half(i, std::move(weight));
    postponed_[exchange].push_back({i, std::move(weight)});
  }

  void add_weight_half(std::size_t i, OperatorSpec weight) {
    builder_.add(std::move(weight));
    add_casts_back(network_.operators[i], layers_[i]);
  }

  OperatorId add_whole(OperatorSpec spec) {
    spec.bare = spec.kept;
    spec.traffic += builder_.moved(spec);
    return builder_.add(std::move(spec));
  }

  /// Of copies the weight's only, where autograd keeps it.
  [[nodiscard]] bool backward_reads(const NetworkOperator& op, std::size_t p) const {
    if (op.is_in_fp8) return !parameters_of_[p].is_bias && has_gradient(op.inputs.front());
    if (!op.copies_parameters) return true;
    return op.keeps_weight_copy && !parameters_of_[p].is_bias;
  }

  static void add_input_products(const NetworkOperator& op, std::int64_t products,
                                 OperatorSpec& spec) {
    if (op.effect.macs == Elements{} || op.effect.backward_is_whole) return;
    spec.flops += Flops{2} * op.effect.macs.count() * products;
    spec.kernel.of_input = products > 0;
  }

  /// Of a share of the weight's rows that share of the product.
  void add_weight_product(const NetworkOperator& op, const Layer& layer, OperatorSpec& spec) const {
    if (op.effect.macs == Elements{} || op.effect.backward_is_whole || layer.used.empty()) return;
    const Parameter& weight = parameters_of_[layer.used.front()];
    if (weight.trained.empty()) return;
    const Signed128 share =
        Signed128{op.effect.macs.count()} * weight.trained.front() / weight.dims.front();
    spec.flops += Flops{2} * static_cast<std::int64_t>(share);
    spec.kernel.of_weight = true;
  }

  /// The gradient of the network's output, where no loss makes it.
  Gradient first_gradient(const NetworkOperator& op, OperatorSpec& spec) {
    return gradients_[gradient_of(op.output)] = {
               {add_gradient(op.name, gradient_bytes(op.output), spec)}};
  }

  TensorId add_gradient(const std::string& of, Bytes bytes, OperatorSpec& spec) {
    spec.kept.push_back(add_tensor(of + ".gradient", bytes, TensorClass::gradient, Lifetime::step));
    return spec.kept.back();
  }

  /// The parts of the incoming gradient before anything is made; the whole then takes their room.
  void join(const NetworkOperator& op, const Gradient& incoming, OperatorSpec& spec) const {
    if (!incoming.is_in_parts) return;
    Bytes made;
    for (const TensorId id : spec.kept) made += builder_[id].bytes;
    spec.workspace += std::max(Bytes{}, gradient_bytes(op.output) - made);
  }

  void read_kept(const NetworkOperator& op, const Layer& layer, OperatorSpec& spec) {
    for (const std::uint32_t input : op.kept) add_once(spec.reads, kept_of(op, layer, input));
    if (op.keeps_output) add_once(spec.reads, storage_of(op.output));
    for (const TensorId extra : layer.extras) add_once(spec.reads, extra);
    if (op.pool != kNoValue) add_once(spec.reads, layers_[op.pool].extras.front());
    if (op.effect.backward_reads_parameters) read_weights(op, layer, spec);
  }

  /// Of a copy in fp8 the rows are not read.
  void read_weights(const NetworkOperator& op, const Layer& layer, OperatorSpec& spec) const {
    for (const std::size_t p : layer.used)
      if (backward_reads(op, p) && add_once(spec.reads, read_of(op, p)) && op.is_in_fp8)
        spec.traffic -= parameters_of_[p].quantized_rows;
  }

  void contribute(const NetworkOperator& op, const Gradient& incoming, OperatorSpec& spec) {
    for (std::size_t i = 0; i < op.inputs.size(); ++i)
      if (has_gradient(op.inputs[i])) contribute(op, i, incoming, spec);
  }

  /// What the operator adds to the gradient of one of its inputs.
  void contribute(const NetworkOperator& op, std::size_t i, const Gradient& incoming,
                  OperatorSpec& spec) {
    const NetworkValue& value = network_.values[op.inputs[i]];
    const std::string& name = network_.storages[source_of(value).storage].name;
    Gradient& gradient = gradients_[value.gradient];
    const auto has_type = [&] {
      const NetworkValue& output = network_.values[op.output];
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
          bytes_of(elements_of(*part) * network_.batch, value.type, value.gradient_bits);
      if (is_there && !gradient.is_in_parts) add_parts(gradient_bytes(op.inputs[i]), spec);
      gradient.tensors.push_back(add_gradient(name, bytes, spec));
      gradient.is_in_parts = true;
      spec.traffic += bytes * 2;  // read and written once more, when the parts are joined
      return;
    }
    if (made_here && value.part) return;
    if (is_there) add_to(gradient, gradient_bytes(op.inputs[i]), spec);
    gradient = {{add_gradient(name, gradient_bytes(op.inputs[i]), spec)}};
  }

  /// What a value in fp8 was made of, whose gradient it has.
  [[nodiscard]] const NetworkValue& source_of(const NetworkValue& value) const {
    if (value.quantized_by == kNoValue) return value;
    return network_.values[network_.operators[value.quantized_by].inputs.front()];
  }

  /// Adds one of so many bytes to a gradient that is there already.
  void add_to(const Gradient& gradient, Bytes bytes, OperatorSpec& spec) const {
    const Bytes rest = rest_of(gradient, bytes);
    Bytes read;
    for (const TensorId id : gradient.tensors)
      if (add_once(spec.reads, id)) read += builder_[id].bytes;
    // What comes in is read once; another part of what holds it is read besides.
    const bool is_another_part = read == Bytes{} && rest > Bytes{};
    const Bytes counted = is_another_part ? bytes : std::max(read - rest, Bytes{});
    spec.traffic += counted - read;
    add(spec.additions, bytes * 3, counted);
  }

  /// Adds parts, which are joined first, to a gradient of so many bytes that is there already.
  static void add_parts(Bytes bytes, OperatorSpec& spec) {
    spec.traffic += bytes;
    add(spec.additions, bytes * 3, bytes);
  }

  /// Of what holds a gradient of so many bytes, what is others': of a concatenation's, say.
  [[nodiscard]] Bytes rest_of(const Gradient& gradient, Bytes bytes) const {
    Bytes all;
    for (const TensorId id : gradient.tensors) all += builder_[id].bytes;
    return std::max(all - bytes, Bytes{});
  }

  /// What the operator reads of an input that is split into parts; nullptr: all of it.
  [[nodiscard]] const Dims* part_of(const NetworkOperator& op, std::size_t i) const {
    if (i < op.effect.read_parts.size() && !op.effect.read_parts[i].empty())
      return &op.effect.read_parts[i];
    const NetworkValue& value = network_.values[op.inputs[i]];
    return value.is_split ? &value.dims : nullptr;
  }

  /// To the gradient of what the operator reads of a parameter.
  void contribute(const NetworkOperator& op, Parameter& parameter, OperatorSpec& spec) {
    if (!op.copies_parameters) return contribute(parameter, spec, fuses_accumulation(op));
    if (parameter.gradient == kNoTensor) return;
    if (parameter.copy_gradient != kNoTensor) {
      add_once(spec.reads, parameter.copy_gradient);
      const Bytes bytes = builder_[parameter.copy_gradient].bytes;
      add(spec.additions, bytes * 3, bytes);
    }
    parameter.copy_gradient = add_tensor(builder_[parameter.copy].name + ".gradient",
                                         Bytes{bytes_per_element(op.type)} * parameter.elements(),
                                         TensorClass::gradient, Lifetime::step);
    spec.kept.push_back(parameter.copy_gradient);
  }

  [[nodiscard]] bool fuses_accumulation(const NetworkOperator& op) const {
    return options_.fused_accumulation && op.rule->operator_class == OperatorClass::matmul;
  }

  /// A second gradient of the same parameter, or one in another type, is added to the first; `fused`:
  /// by the product that makes it.
  void contribute(Parameter& parameter, OperatorSpec& spec, bool fused = false) {
    if (parameter.gradient == kNoTensor) return;
    const Bytes bytes = builder_[parameter.gradient].bytes;
    if (fused) {
      if (parameter.has_gradient) spec.traffic += bytes;
    } else if (options_.master_weights) {
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

  /// The last layer that multiplies by a weight: what it makes is no hidden value.
  [[nodiscard]] std::size_t last_product() const {
    std::size_t i = layers_.size();
    while (i > 0 &&
           (layers_[i - 1].used.empty() || network_.operators[i - 1].effect.macs == Elements{}))
      --i;
    return i == 0 ? 0 : i - 1;
  }

  void add_optimizer() {
    std::vector<UpdatedLayer> updated;
    const std::size_t last = last_product();
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const OperatorClass of_class = network_.operators[i].rule->operator_class;
      UpdatedLayer layer{network_.operators[i].name, of_class, {}};
      for (const std::size_t p : layers_[i].own) {
        const Parameter& it = parameters_of_[p];
        if (!it.has_gradient) continue;
        const bool is_hidden = i != last && !it.is_bias && is_orthogonalized(of_class, it.dims);
        const UpdatedParameter parameter{it.tensor,     it.gradient, it.trained, it.trained_bytes,
                                         it.is_in_int8, is_hidden,   it.whole};
        if (it.is_shared && layers_[i].own.size() > 1)
          updated.push_back({builder_[it.tensor].name, of_class, {parameter}});
        else
          layer.parameters.push_back(parameter);
      }
      if (!layer.parameters.empty()) updated.push_back(std::move(layer));
    }
    add_optimizer_step(builder_, updated, options_);
    if (network_.fp8 && network_.fp8->caches_weights) quantize_updated_weights();
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
  StepOptions options_;
  WorkloadBuilder builder_;
  std::vector<TensorId> storages_;        ///< by storage
  std::vector<TensorId> gathered_again_;  ///< by storage: for backwards
  std::vector<Gradient> gradients_;       ///< by number of gradient
  std::vector<std::uint32_t> exchanges_;  ///< likewise: operators, where their backwards overlap
  std::map<std::uint32_t, std::vector<WeightHalf>> postponed_;  ///< by exchange
  std::vector<Layer> layers_;
  std::vector<Parameter> parameters_of_;
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
