#include "workload/network.hpp"

#include "workload/layer_error.hpp"
#include "workload/layers_workload.hpp"

#include <algorithm>
#include <map>

namespace plimsoll {
namespace {

constexpr std::int64_t kMaxNumber = 1'000'000'000;
constexpr std::int64_t kMaxDimension = 1'000'000'000'000;
constexpr std::int64_t kIndexBytes = 8;
constexpr std::size_t kMaxName = 200;

using Numbers = std::map<std::string, std::int64_t, std::less<>>;

/// What names mean at one place: the numbers, the values, and the prefix of operators' names.
struct Scope {
  std::string prefix;
  Numbers numbers;
  std::map<std::string, std::uint32_t> values;     ///< named values
  std::map<std::string, std::uint32_t> operators;  ///< named operators, for tied weights
  std::map<std::string, std::uint32_t> counts;     ///< layers so far, by kind
};

[[noreturn]] void fail(const Location& where, const std::string& message,
                       const std::string& hint = {}) {
  Diagnostics diagnostics;
  diagnostics.error(where, message, hint);
  diagnostics.throw_if_errors();
  throw InputError({});
}

class Expander {
 public:
  Expander(const LayersSpec& layers, const WorkloadOptions& options) : layers_(layers) {
    network_.batch = options.microbatch.value_or(options.batch.value_or(layers.batch.value_or(1)));
    network_.element = bytes_per_element(options.dtype.value_or(DType::fp32));
    loss_ = options.loss.value_or(layers.loss.value_or(Loss::cross_entropy));
    set_constants(options.with);
  }

  Network expand() {
    Scope scope;
    scope.numbers = constants_;
    current_ = add_input();
    scope.values.emplace(kBlockInput, current_);
    add_layers(layers_.layers, scope);
    at(layers_.where, "the loss", [&] { add_loss(scope); });
    return std::move(network_);
  }

 private:
  void set_constants(const NamedIntegers& with) {
    std::vector<std::string> known;
    for (const auto& [name, value] : layers_.with) {
      constants_[name.value] = value;
      known.push_back(name.value);
    }
    for (const auto& [name, value] : with) {
      if (!constants_.contains(name.value))
        fail(name.where, "workload `" + layers_.name + "` has no number `" + name.value + "`",
             did_you_mean(name.value, known));
      constants_[name.value] = value;
    }
  }

  /// Runs `work`; what goes wrong is reported at `where`.
  template <class Work>
  void at(const Location& where, const std::string& what, Work work) {
    try {
      work();
    } catch (const LayerError& error) {
      fail(where, what + ": " + error.what(), error.hint());
    } catch (const QuantityOverflow&) {
      fail(where, what + ": sizes out of range");
    }
  }

  std::uint32_t add_input() {
    Dims dims;
    for (const Argument& dim : layers_.input.shape)
      at(dim.where, "input", [&] { dims.push_back(number(dim, constants_)); });
    NetworkStorage storage;
    storage.name = kBlockInput;
    storage.is_input = true;
    const std::int64_t element = layers_.input.indices ? kIndexBytes : network_.element;
    at(layers_.where, "input", [&] {
      check_dims(dims);
      storage.bytes = Bytes{element} * network_.batch * elements_of(dims).count();
    });
    network_.storages.push_back(std::move(storage));
    return add_value({std::move(dims), 0, network_.gradients++, 0, layers_.input.indices});
  }

  std::uint32_t add_value(NetworkValue value) {
    network_.values.push_back(std::move(value));
    return static_cast<std::uint32_t>(network_.values.size() - 1);
  }

  static void check_dims(const Dims& dims) {
    for (const std::int64_t dim : dims)
      if (dim < 1 || dim > kMaxDimension)
        throw LayerError("a shape of " + to_text(dims) + ", but dimensions are from 1 to 1e12");
  }

  static std::int64_t number(const Argument& argument, const Numbers& numbers) {
    const std::int64_t value =
        argument.value.evaluate([&](std::string_view name) { return numbers.find(name)->second; });
    if (value < 0 || value > kMaxNumber)
      throw LayerError((argument.name.empty() ? "the number" : "`" + argument.name + "`") + " is " +
                       std::to_string(value) + ", but must be from 0 to 1e9");
    return value;
  }

  void add_layers(const std::vector<LayerSpec>& layers, Scope& scope) {
    for (const LayerSpec& layer : layers) {
      const std::uint32_t source = layer.from ? scope.values.at(layer.from->value) : current_;
      const std::int64_t repeat = repeats(layer, scope, source);
      count_steps(layer);
      if (repeat > 0) current_ = source;
      for (std::int64_t i = 0; i < repeat; ++i) add_layer(layer, scope);
      if (!layer.name.empty()) scope.values[layer.name] = current_;
    }
  }

  std::int64_t repeats(const LayerSpec& layer, Scope& scope, std::uint32_t source) {
    std::int64_t repeat = 1;
    if (layer.repeat)
      at(layer.repeat->where, "repeat", [&] {
        scope.numbers[std::string(kChannelsIn)] = channels_of(network_.values[source].dims);
        repeat = number(*layer.repeat, scope.numbers);
      });
    return repeat;
  }

  /// Bounds the work of hostile files: layers that are left out and inputs count, too.
  void count_steps(const LayerSpec& layer) {
    steps_ += 1 + layer.parts.size();
    if (steps_ > kMaxNetworkOperators)
      fail(layer.where,
           "the network has more than " + std::to_string(kMaxNetworkOperators) + " layers");
  }

  void add_layer(const LayerSpec& layer, Scope& scope) {
    count_steps(layer);
    const std::uint32_t ordinal = ++scope.counts[layer.kind];
    const std::string name = scope.prefix + (layer.name.empty() || layer.repeat
                                                 ? layer.kind + "_" + std::to_string(ordinal)
                                                 : layer.name);
    if (name.size() > kMaxName)
      fail(layer.where, "the names of nested blocks are longer than 200 characters in all");
    const auto block = layers_.blocks.find(layer.kind);
    if (block != layers_.blocks.end()) return add_block(block->second, layer, scope, name);
    const auto before = static_cast<std::uint32_t>(network_.operators.size());
    at(layer.where, "`" + layer.kind + "`", [&] { add_operator(layer, scope, name); });
    if (!layer.name.empty() && network_.operators.size() > before)
      scope.operators[layer.name] = before;
  }

  void add_block(const BlockSpec& block, const LayerSpec& layer, Scope& outer,
                 const std::string& name) {
    Scope scope;
    scope.prefix = name + "/";
    scope.numbers = constants_;
    outer.numbers[std::string(kChannelsIn)] = channels_of(network_.values[current_].dims);
    for (const auto& entry : block.with)
      if (entry.second)
        at(entry.second->where, "`" + entry.first.value + "`",
           [&] { scope.numbers[entry.first.value] = number(*entry.second, constants_); });
    for (const Argument& argument : layer.arguments)
      at(argument.where, "`" + layer.kind + "`", [&] {
        const std::string& key =
            argument.name.empty() ? block.with.front().first.value : argument.name;
        scope.numbers[key] = number(argument, outer.numbers);
      });
    scope.values.emplace(kBlockInput, current_);
    add_layers(block.layers, scope);
  }

  void add_operator(const LayerSpec& layer, Scope& scope, const std::string& name) {
    const OperatorRule& rule = *find_rule(layer.kind);
    std::vector<std::uint32_t> inputs = {current_};
    if (layer.second_input) inputs.push_back(scope.values.at(layer.second_input->value));
    if (!layer.parts.empty()) {
      inputs.clear();
      for (const auto& part : layer.parts) inputs.push_back(scope.values.at(part.value));
    }
    scope.numbers[std::string(kChannelsIn)] = channels_of(network_.values[inputs.front()].dims);
    RuleCall call;
    for (const Attribute& attribute : rule.attributes)
      call.arguments.emplace_back(attribute.name, attribute.fallback);
    for (const Argument& argument : layer.arguments) {
      const auto slot = argument.name.empty()
                            ? call.arguments.begin()
                            : std::ranges::find(call.arguments, argument.name,
                                                [](const auto& a) { return a.first; });
      slot->second = number(argument, scope.numbers);
    }
    std::uint32_t tied = kNoValue;
    if (layer.tied) tied = tied_operator(*layer.tied, scope);
    apply(rule, std::move(call), std::move(inputs), name, tied);
  }

  static std::uint32_t tied_operator(const Located<std::string>& tied, const Scope& scope) {
    const auto owner = scope.operators.find(tied.value);
    if (owner == scope.operators.end())
      throw LayerError("`tied` names no earlier layer with a weight: `" + tied.value + "`");
    return owner->second;
  }

  /// Adds the operator, its output value and storage; `call` lacks only what the network knows.
  void apply(const OperatorRule& rule, RuleCall call, std::vector<std::uint32_t> inputs,
             const std::string& name, std::uint32_t tied = kNoValue) {
    for (const std::uint32_t input : inputs) {
      check_current(network_.values[input], rule);
      call.inputs.push_back(network_.values[input].dims);
    }
    const NetworkStorage& first = network_.storages[network_.values[inputs.front()].storage];
    const bool reads_twice = inputs.size() > 1 && network_.values[inputs.back()].storage ==
                                                      network_.values[inputs.front()].storage;
    call.can_update = !first.is_input && !first.kept && !reads_twice;
    call.batch = network_.batch;
    call.element = network_.element;
    NetworkOperator op{name, &rule, rule.apply(call), std::move(inputs), kNoValue, tied};
    check_dims(op.effect.output);
    if (tied != kNoValue) tie(op);
    if (op.effect.form == OperatorEffect::Form::in_place && !call.can_update)
      throw LayerError("cannot work in place: `" + first.name + "` is needed elsewhere");
    add_output(op, call.bytes(op.effect.output));
    if (op.effect.form != OperatorEffect::Form::view) network_.operators.push_back(std::move(op));
  }

  void check_current(const NetworkValue& value, const OperatorRule& rule) const {
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
  void tie(NetworkOperator& op) {
    const auto& theirs = network_.operators[op.tied].effect.parameters;
    auto& ours = op.effect.parameters;
    if (theirs.empty() || theirs.front().second != ours.front().second)
      throw LayerError("`tied`: the weight of `" + network_.operators[op.tied].name +
                       "` has another number of elements");
    ours.erase(ours.begin());
  }

  void add_output(NetworkOperator& op, Bytes bytes) {
    using Form = OperatorEffect::Form;
    const NetworkValue first = network_.values[op.inputs.front()];
    NetworkValue output{op.effect.output, first.storage, first.gradient, first.version, false};
    if (op.effect.form == Form::no_output) {
      keep_inputs(op);
      return;
    }
    if (op.effect.form != Form::view) output.gradient = network_.gradients++;
    if (op.effect.form == Form::fresh) {
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
    current_ = op.output = add_value(std::move(output));
  }

  void keep_inputs(const NetworkOperator& op) {
    if (!op.effect.keeps_inputs) return;
    for (const std::uint32_t input : op.inputs)
      network_.storages[network_.values[input].storage].kept = true;
  }

  void add_loss(const Scope& scope) {
    const auto add = [&](const char* kind) {
      apply(*find_rule(kind), RuleCall{}, {current_}, scope.prefix + kind);
    };
    switch (loss_) {
      case Loss::cross_entropy:
        add("log_softmax");
        add("nll_loss");
        return;
      case Loss::bce_with_logits:
        return add("bce_with_logits_loss");
      case Loss::mse:
        return add("mse_loss");
      case Loss::sum:
        return add("sum_loss");
      case Loss::none:
        return;
    }
  }

  const LayersSpec& layers_;
  Network network_;
  Numbers constants_;
  Loss loss_ = Loss::cross_entropy;
  std::uint32_t current_ = 0;
  std::size_t steps_ = 0;
};

}  // namespace

Network expand(const LayersSpec& layers, const WorkloadOptions& options) {
  return Expander(layers, options).expand();
}

}  // namespace plimsoll
