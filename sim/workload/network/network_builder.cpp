#include "workload/network/network_builder.hpp"

#include "workload/operators/layer_error.hpp"

#include <algorithm>

namespace plimsoll {
namespace {

constexpr std::int64_t kBitsOfByte = 8;
constexpr std::int64_t kMaxDimension = 1'000'000'000'000;

void check_dims(const Dims& dims) {
  for (const std::int64_t dim : dims)
    if (dim < 1 || dim > kMaxDimension)
      throw LayerError("a shape of " + to_text(dims) + ", but dimensions are from 1 to 1e12");
}

/// Rounded up.
std::int64_t share_of(std::int64_t channels, Ratio share) {
  __extension__ using Product = __int128;
  const Product parts = Product{channels} * share.count() + kWhole.count() - 1;
  return static_cast<std::int64_t>(parts / kWhole.count());
}

/// No dimensions where nothing is trained. A share is one of the first dimension: the output
/// channels of a weight.
Dims trained_part(const std::string& parameter, const Dims& dims, const Trained& trained) {
  if (trained.what == Trained::What::none) return {};
  if (is_bias(parameter)) return dims;
  if (trained.what == Trained::What::bias) return {};
  Dims part = dims;
  if (dims.size() > 1) part.front() = share_of(dims.front(), trained.share);
  return part;
}

}  // namespace

bool is_bias(const std::string& parameter) {
  return parameter.starts_with("bias");
}

bool trains_weight(const Network& network, const NetworkOperator& op) {
  if (op.tied != kNoValue && !network.operators[op.tied].trained.front().empty()) return true;
  for (std::size_t p = 0; p < op.trained.size(); ++p)
    if (!is_bias(op.effect.parameters[p].first) && !op.trained[p].empty()) return true;
  return false;
}

Bytes bytes_of(Elements elements, DType type, const std::optional<std::int64_t>& bits) {
  if (!bits) return Bytes{bytes_per_element(type)} * elements.count();
  return Bytes{(Elements{*bits} * elements.count() + Elements{7}).count() / 8};
}

Bytes kept_bytes(const NetworkOperator& op, const KeptExtra& extra) {
  if (extra.type == ElementType::value && op.bits.activations)
    return bytes_of(elements_of(extra.dims), op.type, op.bits.activations);
  return bytes(extra, bytes_per_element(op.type));
}

Fp8Weight fp8_weight(const Network& network, const NetworkOperator& op, const Dims& weight) {
  const bool passes_back = network.gradients[network.values[op.inputs.front()].gradient].is_made;
  // Experts have one each.
  const Dims dims(weight.end() - 2, weight.end());
  Fp8Matrix matrix = fp8_matrix_of(dims, 1);
  matrix.count = elements_of(weight).count() / elements_of(dims).count();
  const auto bytes = [&](Fp8Layouts layouts) {
    return fp8_bytes(network.fp8->recipe, Quantized::weight, matrix, layouts);
  };
  return {bytes({true, passes_back}), bytes({true, false})};
}

bool keeps_fp8_weight(const Network& network, const NetworkOperator& op) {
  return op.is_in_fp8 && !network.fp8->caches_weights &&
         network.gradients[network.values[op.inputs.front()].gradient].is_made;
}

bool is_in_int8(const NetworkOperator& op, bool is_backward) {
  const auto is_narrow = [](const std::optional<std::int64_t>& bits) { return bits && *bits <= 8; };
  const bool has_weights = !op.effect.parameters.empty() || op.tied != kNoValue;
  return is_narrow(op.bits.activations) && (!has_weights || is_narrow(op.bits.weights)) &&
         (!is_backward || is_narrow(op.bits.gradients));
}

NetworkBuilder::NetworkBuilder(std::int64_t batch, const ValueTypes& types) : types_(types) {
  network_.batch = batch;
  network_.dtype = types.full;
}

std::uint32_t NetworkBuilder::add_value(NetworkValue value) {
  network_.values.push_back(std::move(value));
  return static_cast<std::uint32_t>(network_.values.size() - 1);
}

std::uint32_t NetworkBuilder::add_gradient(Bytes bytes, bool is_made) {
  network_.gradients.push_back({bytes, is_made});
  return static_cast<std::uint32_t>(network_.gradients.size() - 1);
}

std::uint32_t NetworkBuilder::add_input(std::string name, Dims dims, bool indices) {
  check_dims(dims);
  NetworkStorage storage;
  storage.name = std::move(name);
  storage.is_input = true;
  const Elements elements = elements_of(dims) * network_.batch;
  storage.bytes = indices ? Bytes{bytes_of(ElementType::index, 0)} * elements.count()
                          : bytes_of(elements, network_.dtype, bits_.activations);
  const auto index = static_cast<std::uint32_t>(network_.storages.size());
  const std::uint32_t gradient = add_gradient(storage.bytes, false);
  network_.storages.push_back(std::move(storage));
  NetworkValue value{std::move(dims), index, gradient, 0, network_.dtype, indices};
  if (!indices) value.bits = bits_.activations;
  return add_value(std::move(value));
}

std::uint32_t NetworkBuilder::view(std::uint32_t value, Dims dims) {
  check_dims(dims);
  NetworkValue seen = network_.values[value];
  seen.part = seen.part || elements_of(dims) < elements_of(seen.dims);
  seen.dims = std::move(dims);
  seen.is_view = true;
  return add_value(std::move(seen));
}

std::uint32_t NetworkBuilder::part(std::uint32_t value, Dims dims) {
  const std::uint32_t seen = view(value, std::move(dims));
  network_.values[seen].is_split = true;
  return seen;
}

std::uint32_t NetworkBuilder::apply(const OperatorRule& rule, RuleArguments arguments,
                                    std::vector<std::uint32_t> inputs, const std::string& name,
                                    std::uint32_t link) {
  NetworkOperator op;
  op.name = name;
  op.rule = &rule;
  op.inputs = std::move(inputs);
  (rule.traits.link == kPool ? op.pool : op.tied) = link;
  op.type = type_of(op);
  op.bits = bits_;
  if (calls_ != nullptr)
    calls_->push_back(
        {&rule, arguments, op.inputs, name, link, trained_, kNoValue, kNoValue, adapter_});
  op.is_in_fp8 = in_fp8_;
  if (in_fp8_)
    op.inputs.front() = quantized(op.inputs.front(), name);
  else
    cast_inputs(op);
  const std::uint32_t before = operators();
  const std::uint32_t output = add_operator(std::move(op), std::move(arguments));
  if (calls_ != nullptr) {
    calls_->back().output = output;
    if (operators() > before) calls_->back().op = before;
  }
  return output;
}

std::uint32_t NetworkBuilder::exchange(const OperatorRule& rule, RuleArguments arguments,
                                       std::uint32_t value, const std::string& name,
                                       const std::string& part) {
  NetworkOperator op;
  op.name = name;
  op.part = part;
  op.rule = &rule;
  op.inputs = {value};
  op.type = type_of(op);
  if (op.type == DType::fp8) op.bits.gradients = network_.values[value].gradient_bits;
  return add_operator(std::move(op), std::move(arguments));
}

std::uint32_t NetworkBuilder::quantized(std::uint32_t value, const std::string& reader) {
  if (network_.values[value].type == DType::fp8) return value;
  in_fp8_of_.resize(network_.values.size(), kNoValue);
  if (in_fp8_of_[value] != kNoValue) return in_fp8_of_[value];
  NetworkOperator op;
  op.name = reader;
  op.part = "quantize";
  op.rule = &quantize_rule();
  op.inputs = {value};
  op.type = DType::fp8;
  const std::uint32_t made = add_operator(std::move(op), {});
  network_.values[made].quantized_by = operators() - 1;
  return in_fp8_of_[value] = made;
}

Bytes NetworkBuilder::quantized_bytes(const Dims& dims, Fp8Layouts layouts) const {
  return fp8_bytes(network_.fp8->recipe, Quantized::values, fp8_matrix_of(dims, network_.batch),
                   layouts);
}

/// For the first product whose backward reads them.
std::uint32_t NetworkBuilder::columns_of(std::uint32_t quantized) {
  NetworkOperator& op = network_.operators[network_.values[quantized].quantized_by];
  if (op.columns != kNoValue) return op.columns;
  NetworkValue columns = network_.values[quantized];
  NetworkStorage storage;
  storage.name = network_.storages[columns.storage].name + ".columns";
  storage.bytes = quantized_bytes(columns.dims, {false, true});
  columns.storage = static_cast<std::uint32_t>(network_.storages.size());
  network_.storages.push_back(std::move(storage));
  return op.columns = add_value(std::move(columns));
}

DType NetworkBuilder::type_of(const NetworkOperator& op) const {
  if (has_type_of_loss(op)) return *types_.loss;
  if (op.rule->autocast == Autocast::unknown && types_.low != types_.full)
    throw LayerError("autocast: how a library copies its weights to " + to_text(types_.low) +
                     " is not known");
  std::vector<DType> types;
  for (const std::uint32_t input : op.inputs) types.push_back(network_.values[input].type);
  return type_under(op.rule->autocast, types_, types);
}

void NetworkBuilder::set_whole(const std::vector<std::pair<std::string, Dims>>& parameters) {
  NetworkOperator& op = network_.operators.back();
  for (std::size_t p = 0; p < op.trained.size(); ++p) {
    auto [name, dims] = parameters[p];
    if (dims.size() > 2) dims.front() = op.effect.parameters[p].second.front();
    op.whole.push_back(trained_part(name, dims, trained_));
  }
}

bool NetworkBuilder::is_cast_for(const OperatorRule& rule, std::uint32_t value) const {
  const DType type[] = {network_.values[value].type};
  return casts(rule.autocast, type[0], type_under(rule.autocast, types_, type));
}

std::uint32_t NetworkBuilder::cast_for(const OperatorRule& rule, std::uint32_t value,
                                       const std::string& reader) {
  NetworkOperator op;
  op.name = reader;
  op.rule = &rule;
  op.inputs = {value};
  op.type = type_of(op);
  cast_inputs(op);
  return op.inputs.front();
}

void NetworkBuilder::cast_inputs(NetworkOperator& op) {
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const DType type = network_.values[op.inputs[i]].type;
    if (has_type_of_loss(op) ? type == op.type : !casts(op.rule->autocast, type, op.type)) continue;
    NetworkOperator cast;
    cast.name = op.name;
    cast.part = i == 0 ? "cast_input" : "cast_input_" + std::to_string(i + 1);
    cast.rule = &cast_rule();
    cast.inputs = {op.inputs[i]};
    cast.type = op.type;
    op.inputs[i] = add_operator(std::move(cast), {});
  }
}

RuleCall NetworkBuilder::call_of(const NetworkOperator& op, RuleArguments arguments) const {
  RuleCall call;
  call.arguments = std::move(arguments);
  for (const std::uint32_t input : op.inputs) {
    check_current(network_.values[input], *op.rule);
    call.inputs.push_back(network_.values[input].dims);
  }
  const NetworkStorage& first = network_.storages[storage_of(op.inputs.front())];
  const bool reads_twice =
      op.inputs.size() > 1 && storage_of(op.inputs.back()) == storage_of(op.inputs.front());
  const bool has_its_width = network_.values[op.inputs.front()].bits == op.bits.activations;
  call.can_update = !first.is_input && !first.kept && !reads_twice && has_its_width;
  call.batch = network_.batch;
  call.element = bytes_of(Elements{1}, op.type, op.bits.activations).count();
  return call;
}

std::uint32_t NetworkBuilder::add_operator(NetworkOperator op, RuleArguments arguments) {
  RuleCall call = call_of(op, std::move(arguments));
  if (op.pool != kNoValue) undo_pool(op, call);
  op.effect = op.rule->apply(call);
  check_dims(op.effect.output);
  if (op.is_in_fp8) check_fp8(op);
  copy_slices(network_.values[op.inputs.front()], call.bytes(op.effect.output), op.effect);
  if (op.tied != kNoValue) tie(op);
  for (const auto& [parameter, dims] : op.effect.parameters)
    op.trained.push_back(trained_part(parameter, dims, trained_));
  op.makes_partial_gradients = partial_;
  op.divides_experts = divides_experts_;
  find_kept(op);
  if (op.effect.form == OperatorEffect::Form::in_place && !call.can_update)
    throw LayerError("cannot work in place: `" +
                     network_.storages[storage_of(op.inputs.front())].name +
                     (network_.values[op.inputs.front()].bits == op.bits.activations
                          ? "` is needed elsewhere"
                          : "` has elements of another width"));
  add_output(op);
  const std::uint32_t output = op.output;
  if (op.effect.form != OperatorEffect::Form::view) network_.operators.push_back(std::move(op));
  return output;
}

/// Its input is read by rows and by columns, and so are its weight and what it makes.
void NetworkBuilder::check_fp8(const NetworkOperator& op) const {
  const bool is_of_experts = op.effect.parameters.front().second.size() > 2;
  for (const Dims* dims : {&network_.values[op.inputs.front()].dims, &op.effect.output})
    check_fp8_matrix(network_.fp8->recipe, fp8_matrix_of(*dims, network_.batch), is_of_experts);
}

/// Where a view was changed in place, the backward copies the gradient of what it views, and the
/// part of it that was changed (CopySlices of PyTorch 1.13.1).
void NetworkBuilder::copy_slices(const NetworkValue& changed, Bytes bytes, OperatorEffect& effect) {
  if (effect.form == OperatorEffect::Form::in_place && changed.is_view &&
      effect.gradient == OperatorEffect::Gradient::fresh)
    effect.backward_workspace = bytes * 2;
}

/// The shapes of the pooling; its indices stay whether or not its own backward reads them.
void NetworkBuilder::undo_pool(const NetworkOperator& op, RuleCall& call) {
  NetworkOperator& pool = network_.operators[op.pool];
  if (pool.rule->kind != "max_pool")
    throw LayerError("`pool` names `" + pool.name + "`, which is a " +
                     std::string(pool.rule->kind) + "; expected a max_pool");
  pool.is_undone = true;
  call.pooled_from = network_.values[pool.inputs.front()].dims;
  call.pooled_to = pool.effect.output;
}

/// What the backward reads follows from what is trained before the operator, and in it.
void NetworkBuilder::find_kept(NetworkOperator& op) {
  using Inputs = OperatorEffect::Inputs;
  OperatorEffect& effect = op.effect;
  if (effect.gradient == OperatorEffect::Gradient::same) return;
  const bool trains_weights = trains_weight(network_, op);
  const bool passes_on =
      !effect.is_constant &&
      std::ranges::any_of(op.inputs, [&](std::uint32_t input) { return has_gradient(input); });
  const bool has_parameters = !effect.parameters.empty() || op.tied != kNoValue;
  op.copies_parameters =
      has_parameters && op.rule->autocast == Autocast::low && op.type != network_.dtype;
  op.has_backward = trains_weights || passes_on ||
                    std::ranges::any_of(op.trained, [](const Dims& dims) { return !dims.empty(); });
  if (!op.has_backward) return;
  const bool reads = effect.inputs != Inputs::weight || trains_weights;
  op.keeps_output = effect.keeps_output;
  if (!trains_weights) std::erase_if(effect.extras, &KeptExtra::for_weight);
  op.keeps_weight_copy = op.copies_parameters && (passes_on || effect.keeps_weight);
  if (effect.keeps_inputs && reads) keep_inputs_of(op);
}

void NetworkBuilder::keep_inputs_of(NetworkOperator& op) {
  using Inputs = OperatorEffect::Inputs;
  const OperatorEffect& effect = op.effect;
  const std::size_t read = effect.inputs == Inputs::first ? 1 : op.inputs.size();
  for (std::size_t i = 0; i < read; ++i) {
    bool is_read = effect.inputs != Inputs::partner;
    for (std::size_t j = 0; j < op.inputs.size(); ++j)
      is_read = is_read || (j != i && has_gradient(op.inputs[j]));
    if (!is_read) continue;
    const std::uint32_t part = network_.storages[storage_of(op.inputs[i])].gathered_from;
    const bool is_quantized = network_.values[op.inputs[i]].quantized_by != kNoValue;
    op.kept.push_back(part != kNoValue ? part
                      : is_quantized   ? columns_of(op.inputs[i])
                                       : op.inputs[i]);
  }
}

void NetworkBuilder::check_current(const NetworkValue& value, const OperatorRule& rule) const {
  const NetworkStorage& storage = network_.storages[value.storage];
  if (value.version != storage.version)
    throw LayerError("it reads `" + storage.name + "` as it was before `" + storage.changed_by +
                     "` changed it in place; write `in_place: false` there");
  if (value.indices && !rule.traits.reads_indices)
    throw LayerError("it cannot read indices; an `embedding` can");
  if (!value.indices && rule.traits.reads_indices)
    throw LayerError("it reads indices (`input: {shape: ..., type: indices}`), found values");
}

/// The weight of the tied layer replaces the operator's own.
void NetworkBuilder::tie(NetworkOperator& op) const {
  const auto& theirs = network_.operators[op.tied].effect.parameters;
  auto& ours = op.effect.parameters;
  if (theirs.empty() || elements_of(theirs.front().second) != elements_of(ours.front().second))
    throw LayerError("`tied`: the weight of `" + network_.operators[op.tied].name +
                     "` has another number of elements");
  ours.erase(ours.begin());
}

void NetworkBuilder::add_output(NetworkOperator& op) {
  using Form = OperatorEffect::Form;
  const NetworkValue first = network_.values[op.inputs.front()];
  NetworkValue output{op.effect.output, first.storage, first.gradient, first.version,
                      first.type,       false,         first.part};
  output.part = output.part || (op.effect.form == Form::view &&
                                elements_of(op.effect.output) < elements_of(first.dims));
  output.is_split = op.effect.form == Form::view && first.is_split;
  output.is_view =
      op.effect.form == Form::view || op.effect.views_output ||
      ((op.effect.form == Form::in_place || op.effect.form == Form::same) && first.is_view);
  if (op.effect.form == Form::no_output) {
    keep_inputs(op);
    return;
  }
  const bool is_fresh = op.effect.form == Form::fresh;
  const bool is_view = op.effect.form == Form::view;
  if (is_fresh) output.type = op.type;
  output.bits = is_fresh ? op.bits.activations : first.bits;
  output.gradient_bits = is_view ? first.gradient_bits : op.bits.gradients;
  const Elements elements = elements_of(op.effect.output) * network_.batch;
  const bool has_its_gradient = op.effect.gradient == OperatorEffect::Gradient::same;
  if (has_its_gradient) output.gradient_bits = kBitsOfByte * bytes_per_element(first.type);
  if (!is_view && !has_its_gradient)
    output.gradient =
        add_gradient(bytes_of(elements, output.type, output.gradient_bits), op.has_backward);
  if (is_fresh) {
    const bool is_gathered =
        op.effect.exchange && op.effect.exchange->forward == CollectiveKind::all_gather;
    const std::uint32_t from = is_gathered ? gathered_again(op.inputs.front()) : kNoValue;
    output.part = false;
    output.storage = static_cast<std::uint32_t>(network_.storages.size());
    output.version = 0;
    NetworkStorage storage;
    storage.name = op.part.empty() ? op.name : op.name + "." + op.part;
    storage.bytes = output.type == DType::fp8 ? quantized_bytes(output.dims, {true, false})
                                              : bytes_of(elements, output.type, output.bits);
    storage.gathered_from = from;
    network_.storages.push_back(std::move(storage));
  }
  if (op.effect.form == Form::in_place) {
    NetworkStorage& storage = network_.storages[output.storage];
    output.version = ++storage.version;
    storage.changed_by = op.name;
  }
  keep_inputs(op);
  if (op.keeps_output) network_.storages[output.storage].kept = true;
  op.output = add_value(std::move(output));
}

/// The rank's part that is gathered in the backward: of what is in fp8 columns, where blocks have
/// scales.
std::uint32_t NetworkBuilder::gathered_again(std::uint32_t part) {
  const bool is_quantized = network_.values[part].quantized_by != kNoValue;
  if (!is_quantized || scales_tensors(network_.fp8->recipe)) return part;
  return columns_of(part);
}

void NetworkBuilder::keep_inputs(const NetworkOperator& op) {
  for (const std::uint32_t input : op.kept)
    network_.storages[network_.values[input].storage].kept = true;
}

void NetworkBuilder::add_loss(Loss loss, std::uint32_t value, const std::string& prefix,
                              bool weighted) {
  const auto add = [&](std::string_view kind) {
    const OperatorRule& rule = *find_rule(kind);
    RuleArguments arguments = default_arguments(rule);
    if (rule.traits.is_loss) arguments.front().second = weighted ? 1 : 0;
    return apply(rule, std::move(arguments), {value}, prefix + std::string(kind));
  };
  switch (loss) {
    case Loss::cross_entropy:
      value = add("log_softmax");
      add("nll_loss");
      return;
    case Loss::fused_cross_entropy:
      add("fused_cross_entropy_loss");
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
