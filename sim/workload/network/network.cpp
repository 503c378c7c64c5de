#include "workload/network/network.hpp"

#include "base/names_hint.hpp"
#include "workload/network/divided_network.hpp"
#include "workload/network/fp8_layers.hpp"
#include "workload/network/framework_defaults.hpp"
#include "workload/network/low_rank_adapters.hpp"
#include "workload/network/network_builder.hpp"
#include "workload/network/standard_blocks.hpp"
#include "workload/network/trained_layers.hpp"
#include "workload/operators/layer_error.hpp"

#include <algorithm>
#include <map>

namespace plimsoll {
namespace {

constexpr std::int64_t kMaxNumber = 1'000'000'000;
constexpr std::size_t kMaxName = 200;

using Numbers = std::map<std::string, std::int64_t, std::less<>>;

/// What names mean at one place: the numbers, the values, and the prefix of operators' names.
struct Scope {
  std::string prefix;
  Numbers numbers;
  std::map<std::string, std::uint32_t> values;     ///< named values
  std::map<std::string, std::uint32_t> operators;  ///< named operators, for links
  std::map<std::string, std::uint32_t> counts;     ///< layers so far, by kind
  std::optional<Trained> trained;                  ///< said by a block around it
  ElementBits bits;                                ///< likewise, or by the scenario
};

class Expander {
 public:
  Expander(const LayersSpec& layers, const WorkloadOptions& options)
      : layers_(layers),
        options_(options),
        builder_(options.microbatch.value_or(options.batch.value_or(layers.batch.value_or(1))),
                 value_types(options, DType::fp32)),
        trained_(options) {
    loss_ = options.loss ? options.loss : layers.loss;
    framework_ = options.framework ? options.framework->value
                                   : layers.framework.value_or(Framework::pytorch_1_13);
    if (options.lora) adapters_.emplace(*options.lora, framework_);
    set_constants(options.with);
    constants_[std::string(kIsPyTorch2)] = framework_ == Framework::pytorch_2 ? 1 : 0;
  }

  /// `calls`: where all that is applied is recorded, or nullptr. `in_fp8`: by call, or nullptr.
  Network expand(std::vector<NetworkCall>* calls, const std::vector<bool>* in_fp8 = nullptr) {
    if (calls != nullptr) builder_.record(*calls);
    calls_ = calls;
    if (in_fp8 != nullptr) builder_.set_fp8(options_.fp8->value);
    in_fp8_ = in_fp8;
    Scope scope;
    scope.numbers = constants_;
    if (options_.bits) {
      check_bits(options_.bits->where);
      scope.bits = options_.bits->value;
    }
    builder_.set_bits(scope.bits);
    current_ = add_input();
    scope.values.emplace(kBlockInput, current_);
    add_layers(layers_.layers, scope);
    const Loss loss = loss_of_all();
    builder_.set_bits(scope.bits);
    at(layers_.where, "the loss", [&] { builder_.add_loss(loss, current_, scope.prefix); });
    for (const Located<std::string>& name : layers_.auxiliary)
      at(name.where, "the loss of `" + name.value + "`",
         [&] { builder_.add_loss(loss, scope.values.at(name.value), name.value + "/", true); });
    trained_.check();
    if (adapters_) adapters_->check();
    return builder_.take();
  }

 private:
  /// Types that change within a network have widths of their own.
  void check_bits(const Location& where) const {
    const char* other = options_.autocast         ? "autocast"
                        : options_.master_weights ? "master_weights"
                        : options_.tensor         ? "parallel.tensor"
                        : options_.context        ? "parallel.context"
                        : options_.expert         ? "parallel.expert"
                                                  : nullptr;
    if (other != nullptr)
      fail(where, "`bits` do not go with `" + std::string(other) + "`; expected one of the two");
  }

  ElementBits bits_of(const LayerSpec& layer, const Scope& scope) const {
    if (!layer.bits) return scope.bits;
    check_bits(layer.bits->where);
    return layer.bits->value.within(scope.bits);
  }

  /// None behind a layer that is one.
  [[nodiscard]] Loss loss_of_all() const {
    if (ends_in_.empty()) return loss_.value_or(Loss::cross_entropy);
    if (loss_.value_or(Loss::none) != Loss::none)
      fail(layers_.where, "`" + ends_in_ + "` is a loss already; expected `loss: none`");
    return Loss::none;
  }

  /// What is wrong within a standard block is reported where the user's file names the block.
  [[noreturn]] void fail(const Location& where, const std::string& message,
                         const std::string& hint = {}) const {
    Diagnostics diagnostics;
    if (standard_ == nullptr)
      diagnostics.error(where, message, hint);
    else
      diagnostics.error(standard_->where, "`" + standard_->kind + "`: " + message, hint);
    diagnostics.throw_if_errors();
    throw InputError({});
  }

  void set_constants(const NamedIntegers& with) {
    std::vector<std::string> known;
    for (const auto& [name, value] : layers_.with) {
      constants_[name.value] = value;
      known.push_back(name.value);
    }
    for (const auto& [name, value] : with) {
      if (!constants_.contains(name.value))
        fail(name.where, "workload `" + layers_.name + "` has no number `" + name.value + "`",
             hint_of_names(name.value, known));
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
    std::uint32_t value = kNoValue;
    at(layers_.where, "input", [&] {
      value = builder_.add_input(std::string(kBlockInput), std::move(dims), layers_.input.indices);
    });
    return value;
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
        scope.numbers[std::string(kChannelsIn)] = channels_of(builder_.dims(source));
        repeat = number(*layer.repeat, scope.numbers);
      });
    return repeat;
  }

  /// Bounds the work of hostile files: layers that are left out and inputs count, too.
  void count_steps(const LayerSpec& layer) {
    steps_ += 1 + layer.parts.size() + layer.reads.size();
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
    if (!ends_in_.empty()) fail(layer.where, "no layer comes after the loss `" + ends_in_ + "`");
    at(layer.where, "`" + layer.kind + "`", [&] { add_operator(layer, scope, name); });
  }

  void add_block(const BlockSpec& block, const LayerSpec& layer, Scope& outer,
                 const std::string& name) {
    Scope scope;
    scope.prefix = name + "/";
    scope.trained = layer.trained ? layer.trained : outer.trained;
    scope.bits = bits_of(layer, outer);
    scope.numbers = constants_;
    outer.numbers[std::string(kChannelsIn)] = channels_of(builder_.dims(current_));
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
    for (const auto& [inside, outside] : layer.reads)
      scope.values.emplace(inside.value, outer.values.at(outside.value));
    const LayerSpec* const around = standard_;
    if (block.where.origin == kStandardOrigin && around == nullptr) standard_ = &layer;
    add_layers(block.layers, scope);
    standard_ = around;
  }

  void add_operator(const LayerSpec& layer, Scope& scope, const std::string& name) {
    const OperatorRule& rule = *find_rule(layer.kind);
    std::vector<std::uint32_t> inputs = {current_};
    if (layer.second_input) inputs.push_back(scope.values.at(layer.second_input->value));
    if (!layer.parts.empty()) {
      inputs.clear();
      for (const auto& part : layer.parts) inputs.push_back(scope.values.at(part.value));
    }
    scope.numbers[std::string(kChannelsIn)] = channels_of(builder_.dims(inputs.front()));
    RuleArguments arguments = default_arguments(rule, framework_);
    for (const Argument& argument : layer.arguments) {
      const auto slot =
          argument.name.empty()
              ? arguments.begin()
              : std::ranges::find(arguments, argument.name, [](const auto& a) { return a.first; });
      slot->second = number(argument, scope.numbers);
    }
    std::uint32_t link = kNoValue;
    if (layer.link) link = linked_operator(rule, *layer.link, scope);
    const bool is_adapted =
        adapters_ && rule.kind == LowRankAdapters::kAdapted && adapters_->take(name);
    const Trained trained = trained_.of(name, layer.trained ? layer.trained : scope.trained);
    builder_.train(is_adapted ? Trained{Trained::What::none, kWhole} : trained);
    builder_.set_bits(bits_of(layer, scope));
    const std::uint32_t input = inputs.front();
    const std::uint32_t before = builder_.operators();
    if (in_fp8_ != nullptr) builder_.compute_in_fp8((*in_fp8_)[calls_->size()]);
    const std::uint32_t output =
        builder_.apply(rule, std::move(arguments), std::move(inputs), name, link);
    builder_.compute_in_fp8(false);
    // Behind casts of its inputs; before an adapter.
    if (!layer.name.empty() && builder_.operators() > before)
      scope.operators[layer.name] = builder_.operators() - 1;
    if (output == kNoValue)
      ends_in_ = name;
    else
      current_ = is_adapted ? adapters_->add(builder_, input, output, name) : output;
  }

  static std::uint32_t linked_operator(const OperatorRule& rule, const Located<std::string>& link,
                                       const Scope& scope) {
    const auto found = scope.operators.find(link.value);
    if (found == scope.operators.end())
      throw LayerError("`" + std::string(rule.traits.link) + "` names no earlier layer " +
                       (rule.traits.link == kTied ? "with a weight" : "that pools") + ": `" +
                       link.value + "`");
    return found->second;
  }

  const LayersSpec& layers_;
  const WorkloadOptions& options_;
  NetworkBuilder builder_;
  TrainedLayers trained_;
  std::optional<LowRankAdapters> adapters_;
  Numbers constants_;
  Framework framework_ = Framework::pytorch_1_13;
  std::optional<Loss> loss_;
  std::string ends_in_;                  ///< a layer that is a loss; none comes after it
  const LayerSpec* standard_ = nullptr;  ///< the user's call of the one being added
  const std::vector<NetworkCall>* calls_ = nullptr;
  const std::vector<bool>* in_fp8_ = nullptr;  ///< by call
  std::uint32_t current_ = 0;
  std::size_t steps_ = 0;
};

/// Transformer Engine quantizes what is in 16 bits.
void check_fp8(const WorkloadOptions& options) {
  const char* other = options.autocast ? "autocast" : options.bits ? "bits" : nullptr;
  if (other != nullptr)
    refuse(options.fp8->where,
           "`fp8` does not go with `" + std::string(other) +
               "`; expected `dtype: bf16` beside it, where fp32 copies of parameters are wanted "
               "with `master_weights: true`");
  const DType dtype = options.dtype.value_or(DType::fp32);
  if (dtype != DType::bf16 && dtype != DType::fp16)
    refuse(options.fp8->where, "`fp8` quantizes what is in 16 bits, and `dtype` is " +
                                   to_text(dtype) + "; expected bf16 or fp16");
}

/// Types that autocast or widths change, the loss follows.
void check_loss_dtype(const WorkloadOptions& options) {
  const char* other = options.autocast ? "autocast" : options.bits ? "bits" : nullptr;
  if (other != nullptr)
    refuse(options.loss_dtype->where,
           "`loss_dtype` does not go with `" + std::string(other) + "`; expected one of the two");
  const DType dtype = options.dtype.value_or(DType::fp32);
  if (dtype != DType::bf16 && dtype != DType::fp16)
    refuse(options.loss_dtype->where, "`loss_dtype` casts logits of 16 bits, and `dtype` is " +
                                          to_text(dtype) + "; expected bf16 or fp16");
}

/// Moments that are neither quantized nor factored, of parameters in 16 bits.
void check_state_dtype(const WorkloadOptions& options, const std::optional<Optimizer>& optimizer) {
  const Located<DType>& state = *options.state_dtype;
  if (options.master_weights)
    refuse(state.where,
           "`state_dtype` does not go with `master_weights`, whose state is in fp32; "
           "expected one of the two");
  if (options.dtype.value_or(DType::fp32) != state.value)
    refuse(state.where, "state has the type of parameters or fp32; `dtype` is " +
                            to_text(options.dtype.value_or(DType::fp32)) + ", expected " +
                            to_text(state.value) + ", or no `state_dtype`");
  if (states_of(optimizer.value_or(Optimizer::none)).value_or(0) == 0)
    refuse(state.where,
           "`state_dtype` is the type of moments; expected an optimizer that keeps them "
           "as they are, such as `adamw`");
}

}  // namespace

Network expand(const LayersSpec& layers, const WorkloadOptions& options) {
  if (options.fp8) check_fp8(options);
  if (options.loss_dtype) check_loss_dtype(options);
  if (options.state_dtype)
    check_state_dtype(options, options.optimizer ? options.optimizer : layers.optimizer);
  const bool is_divided = options.tensor || options.context || options.expert;
  if (!is_divided && !options.fp8) return Expander(layers, options).expand(nullptr);
  std::vector<NetworkCall> calls;
  const Network whole = Expander(layers, options).expand(&calls);
  std::vector<bool> in_fp8(calls.size());
  if (options.fp8) in_fp8 = layers_in_fp8(whole, calls, *options.fp8);
  if (is_divided)
    return divided_network(whole, calls, in_fp8, value_types(options, DType::fp32), options);
  std::vector<NetworkCall> again;
  return Expander(layers, options).expand(&again, &in_fp8);
}

}  // namespace plimsoll
