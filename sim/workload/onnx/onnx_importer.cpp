#include "workload/onnx/onnx_importer.hpp"

#include "base/names_hint.hpp"
#include "base/wildcard.hpp"
#include "workload/onnx/onnx_workload.hpp"
#include "workload/operators/layer_error.hpp"
#include "workload/step/training_step.hpp"

#include <algorithm>

namespace plimsoll {
namespace {

/// Whether they are the last of so many dimensions.
bool are_last(const std::vector<std::int64_t>& axes, std::size_t rank) {
  std::set<std::size_t> found;
  for (const std::int64_t axis : axes) found.insert(axis_of(axis, rank));
  return found.size() == axes.size() && !found.empty() && *found.begin() == rank - found.size();
}

/// Whether PyTorch's exporters found it among the parameters and buffers of a module: what they
/// folded they call `onnx::Mul_12`, `val_12` or `12`.
bool is_of_module(const std::string& name) {
  return !name.starts_with("onnx::") && !name.starts_with("val_") &&
         name.find_first_not_of("0123456789") != std::string::npos;
}

/// Whether nobody learns it: whole numbers, truth values, and a single number, but in files of
/// PyTorch one of a module.
bool is_fixed(const OnnxGraph& graph, const OnnxInitializer& initializer) {
  const OnnxTensor& tensor = initializer.tensor;
  if (tensor.type == OnnxType::integer || tensor.type == OnnxType::boolean) return true;
  return tensor.dims.size() <= 1 && size_of(tensor.dims) == 1 &&
         !(graph.is_of_pytorch && is_of_module(initializer.name));
}

bool is_default_domain(const std::string& domain) {
  return domain.empty() || domain == "ai.onnx";
}

}  // namespace

OnnxImporter::OnnxImporter(const OnnxGraph& graph, const WorkloadOptions& options)
    : graph_(graph),
      options_(options),
      done_(graph.nodes.size(), false),
      file_batch_(onnx_batch(graph)),
      batch_(options.microbatch.value_or(options.batch.value_or(file_batch_))),
      builder_(batch_, value_types(options, onnx_dtype(graph))),
      trained_(options) {}

Network OnnxImporter::import() {
  check_kinds();
  check_options();
  index_names();
  add_initializers();
  add_inputs();
  fold_constants();
  for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i)
    if (!done_[i]) run_node(i);
  add_losses();
  trained_.check();
  return builder_.take();
}

void OnnxImporter::fail(const std::string& message, const std::string& hint) const {
  Diagnostics diagnostics;
  diagnostics.error(graph_.where, message, hint);
  diagnostics.throw_if_errors();
  throw InputError({});
}

void OnnxImporter::fail_at_node(const std::string& message, const std::string& hint) const {
  const std::string& name =
      node_->name.empty() && !node_->outputs.empty() ? node_->outputs.front() : node_->name;
  fail("node `" + printable(name) + "` (" + printable(node_->kind) + "): " + message, hint);
}

OnnxImporter::Handler OnnxImporter::handler_of(const OnnxNode& node) {
  const bool is_contributed = node.domain == "com.microsoft";
  if (!is_contributed && !is_default_domain(node.domain)) return nullptr;
  const auto& table = is_contributed ? contributed_handlers() : handlers();
  const auto found = table.find(node.kind);
  return found == table.end() ? nullptr : found->second;
}

/// All operators that are not known, at once.
void OnnxImporter::check_kinds() const {
  struct Unknown {
    const OnnxNode* first = nullptr;
    std::size_t count = 0;
  };
  std::map<std::pair<std::string, std::string>, Unknown> unknown;
  for (const OnnxNode& node : graph_.nodes) {
    if (handler_of(node) != nullptr) continue;
    Unknown& entry = unknown[{node.domain, node.kind}];
    if (entry.count++ == 0) entry.first = &node;
  }
  std::vector<std::string> known;
  for (const auto* table : {&handlers(), &contributed_handlers()})
    for (const auto& [kind, handler] : *table) known.emplace_back(kind);
  Diagnostics diagnostics;
  for (const auto& [key, entry] : unknown) {
    const OnnxNode& node = *entry.first;
    const bool control = std::ranges::any_of(node.attributes, &OnnxAttribute::is_graph);
    const std::string domain = is_default_domain(key.first) ? "ai.onnx" : printable(key.first);
    const std::string what =
        control
            ? "control flow `" + printable(key.second) +
                  "`, whose branches are not known before the run; trace the model with a fixed "
                  "input"
            : "unsupported operator `" + printable(key.second) + "` (domain " + domain +
                  ", opset " + std::to_string(graph_.opset) +
                  "); write that part with a supported one, or the network as `layers:`";
    std::string hint = did_you_mean(key.second, known);
    diagnostics.error(graph_.where,
                      what + "; first at node `" + printable(node.name) + "`, " +
                          std::to_string(entry.count) + " in all",
                      hint);
  }
  diagnostics.throw_if_errors();
}

/// Only dimensions with a name can be given a number.
void OnnxImporter::check_options() const {
  std::vector<std::string> known;
  for (const OnnxInput& input : graph_.inputs)
    if (input.dims)
      for (const OnnxDimension& dim : *input.dims)
        if (!dim.name.empty()) known.push_back(printable(dim.name));
  Diagnostics diagnostics;
  for (const auto& [name, number] : options_.with)
    if (std::ranges::find(known, name.value) == known.end())
      diagnostics.error(name.where, "the ONNX file has no dimension named `" + name.value + "`",
                        hint_of_names(name.value, known));
  diagnostics.throw_if_errors();
}

std::uint32_t OnnxImporter::intern(const std::string& name) {
  const auto next = static_cast<std::uint32_t>(names_.size());
  return names_.try_emplace(name, next).first->second;
}

void OnnxImporter::index_names() {
  for (const OnnxInitializer& initializer : graph_.initializers) intern(initializer.name);
  for (const OnnxInput& input : graph_.inputs) intern(input.name);
  for (const std::string& output : graph_.outputs) intern(output);
  for (const OnnxNode& node : graph_.nodes)
    for (const auto* list : {&node.inputs, &node.outputs})
      for (const std::string& name : *list) intern(name);
  values_.resize(names_.size());
  readers_.resize(names_.size());
  outputs_.resize(names_.size(), 0);
  for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i)
    for (const std::string& name : graph_.nodes[i].inputs)
      if (!name.empty()) readers_[names_.at(name)].push_back(i);
  for (const std::string& output : graph_.outputs) ++outputs_[names_.at(output)];
}

/// Parameters, but for those that the scenario calls buffers, and what nobody learns: ONNX does not
/// tell.
void OnnxImporter::add_initializers() {
  std::vector<bool> is_used(options_.buffers.size(), false);
  const auto is_buffer = [&](const std::string& name) {
    bool found = false;
    for (std::size_t i = 0; i < is_used.size(); ++i)
      if (matches(options_.buffers[i].value, name)) found = is_used[i] = true;
    return found;
  };
  for (const OnnxInitializer& initializer : graph_.initializers) {
    const std::uint32_t name = names_.at(initializer.name);
    OnnxValue& value = values_[name];
    value.kind = OnnxValue::Kind::constant;
    value.tensor = initializer.tensor;
    value.is_stored = is_of_module(initializer.name);
    if (!is_buffer(printable(initializer.name)) && !is_fixed(graph_, initializer))
      value.weight = name;
  }
  check_buffers(is_used);
}

void OnnxImporter::check_buffers(const std::vector<bool>& is_used) const {
  std::vector<std::string> known;
  for (const OnnxInitializer& initializer : graph_.initializers)
    known.push_back(printable(initializer.name));
  Diagnostics diagnostics;
  for (std::size_t i = 0; i < is_used.size(); ++i)
    if (!is_used[i])
      diagnostics.error(options_.buffers[i].where,
                        "the ONNX file has no initializer `" + options_.buffers[i].value + "`",
                        hint_of_names(options_.buffers[i].value, known));
  diagnostics.throw_if_errors();
}

std::int64_t OnnxImporter::dimension(const OnnxInput& input, std::size_t axis) {
  const OnnxDimension& dim = (*input.dims)[axis];
  const std::string place =
      "input `" + printable(input.name) + "`: dimension " + std::to_string(axis);
  if (dim.size && (*dim.size < 1 || *dim.size > kMaxBatch))
    fail(place + " is " + std::to_string(*dim.size) + ", expected 1 to 1e9");
  if (dim.size) return *dim.size;
  for (const auto& [name, number] : options_.with)
    if (!dim.name.empty() && name.value == printable(dim.name)) {
      if (number < 1) fail(place + " is " + std::to_string(number) + ", expected at least 1");
      return number;
    }
  if (axis == 0) return file_batch_;
  if (dim.name.empty()) fail(place + " has no size; export the model with a fixed one");
  fail(place + " has the name `" + printable(dim.name) +
       "`, but no size; give it one with `with: {" + printable(dim.name) +
       ": N}`, or export the model with a fixed one");
}

void OnnxImporter::add_inputs() {
  if (graph_.inputs.empty()) fail("the graph has no input");
  for (const OnnxInput& input : graph_.inputs) {
    if (!input.dims || input.dims->empty())
      fail("input `" + printable(input.name) + "` has no shape; export the model with one");
    if (input.type == OnnxType::other || input.type == OnnxType::boolean)
      fail("input `" + printable(input.name) +
           "` has elements of an unsupported type; expected floats or integers");
    OnnxValue value;
    value.kind = OnnxValue::Kind::network;
    value.tensor.type = input.type;
    for (std::size_t axis = 0; axis < input.dims->size(); ++axis)
      value.tensor.dims.push_back(dimension(input, axis));
    try {
      value.id = builder_.add_input(printable(input.name), sample_dims(value.dims(), 0),
                                    input.type == OnnxType::integer);
      bind(input.name, std::move(value));
    } catch (const LayerError& error) {
      fail("input `" + printable(input.name) + "`: " + error.what());
    } catch (const QuantityOverflow&) {
      fail("input `" + printable(input.name) + "`: sizes out of range");
    }
  }
}

/// Exporters put constants where they are used; patterns are looked for before.
void OnnxImporter::fold_constants() {
  for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
    node_ = &graph_.nodes[i];
    try {
      if (node_->outputs.empty()) throw LayerError("it has no output");
      done_[i] = node_->kind == "Constant" || run_constant();
      if (node_->kind == "Constant") bind_constant(0, constant_of(*node_));
    } catch (const LayerError& error) {
      fail_at_node(error.what(), error.hint());
    } catch (const QuantityOverflow&) {
      fail_at_node("sizes out of range");
    }
  }
}

OnnxTensor OnnxImporter::constant_of(const OnnxNode& node) {
  const OnnxAttribute* value = node.attribute("value");
  if (value != nullptr && value->tensor) return *value->tensor;
  OnnxTensor tensor;
  if (const OnnxAttribute* list = node.attribute("value_ints")) {
    tensor.dims = {static_cast<std::int64_t>(list->integers.size())};
    tensor.integers = list->integers;
  } else if (const OnnxAttribute* number = node.attribute("value_int")) {
    tensor.integers = {number->integer};
  } else if (const OnnxAttribute* real = node.attribute("value_float")) {
    tensor.type = OnnxType::fp32;
    tensor.reals = {real->real};
  } else {
    throw LayerError("expected a tensor or a number as its value");
  }
  if (value == nullptr) tensor.is_known = true;
  if (value == nullptr && tensor.reals.empty()) tensor.type = OnnxType::integer;
  return tensor;
}

void OnnxImporter::run_node(std::uint32_t index) {
  node_ = &graph_.nodes[index];
  done_[index] = true;
  if (builder_.operators() > kMaxNetworkOperators)
    fail("the network has more than " + std::to_string(kMaxNetworkOperators) + " operators");
  try {
    if (node_->outputs.empty()) throw LayerError("it has no output");
    for (const std::string& name : node_->inputs)
      if (!name.empty() && value(name).kind == OnnxValue::Kind::missing)
        throw LayerError("its input `" + printable(name) + "` is made by nothing before it");
    if (run_fusion(index) || run_constant()) return;
    consume(*node_);
    (this->*handler_of(*node_))();
  } catch (const LayerError& error) {
    fail_at_node(error.what(), error.hint());
  } catch (const QuantityOverflow&) {
    fail_at_node("sizes out of range");
  }
}

bool OnnxImporter::run_fusion(std::uint32_t index) {
  const OnnxReaders readers{[&](const std::string& name) -> const std::vector<std::uint32_t>& {
                              static const std::vector<std::uint32_t> kOthers;
                              const std::uint32_t of = names_.at(name);
                              return outputs_[of] == 0 ? readers_[of] : kOthers;
                            },
                            [&](const std::string& name) {
                              return value(name).is_constant() ? value(name).scalar()
                                                               : std::nullopt;
                            },
                            [&](const std::string& name, double number) {
                              const OnnxTensor& tensor = value(name).tensor;
                              const auto is_it = [&](double real) { return real == number; };
                              return tensor.is_known && std::ranges::all_of(tensor.reals, is_it)
                                         ? static_cast<std::int64_t>(tensor.reals.size())
                                         : 0;
                            },
                            [&](const std::string& name) { return value(name).weight != kNoName; },
                            [&](const std::string& name) { return value(name).is_constant(); }};
  const std::optional<OnnxFusion> fusion = find_fusion(graph_, index, readers);
  if (!fusion || !value(fusion->x).is_network()) return false;
  if (!fusion->more.empty()) return run_attention(*fusion);
  const OnnxValue x = value(fusion->x);
  const std::optional<std::uint32_t> from = input_of(*fusion, x);
  if (!from) return false;
  replace(*fusion);
  const std::uint32_t y = apply(fusion->kind, fusion->arguments, {*from});
  bind_result(fusion->y, y, x.dims(), x.batch_axis);
  return true;
}

void OnnxImporter::replace(const OnnxFusion& fusion) {
  for (const std::uint32_t node : fusion.nodes) {
    done_[node] = true;
    consume(graph_.nodes[node]);
  }
}

/// Of query, key and value [batch, heads, positions, features]; the key may have its heads behind
/// its positions. What is made lies in the order of the query.
bool OnnxImporter::run_attention(const OnnxFusion& fusion) {
  const OnnxValue query = value(fusion.x), key = value(fusion.more[0]), v = value(fusion.more[1]);
  constexpr std::size_t kRank = 4;
  for (const OnnxValue* it : {&query, &key, &v})
    if (!it->is_network() || it->dims().size() != kRank || it->batch_axis != 0) return false;
  Dims dims = query.dims(), of_key = key.dims();
  dims.back() = v.dims().back();
  if (node_->attribute("perm")->integers[1] == 2) std::swap(of_key[1], of_key[2]);
  const std::uint32_t turned = builder_.view(key.id, sample_dims(of_key, 0));
  const std::uint32_t y = apply(fusion.kind, {}, {query.id, turned, v.id});
  replace(fusion);
  bind_result(fusion.y, y, dims, 0);
  values_[names_.at(fusion.y)].strides = dense_strides(at_batch(dims, 0), query.strides);
  return true;
}

/// The value in the shape that the rule takes it in, if it fits: the weight of a layer norm has the
/// last dimensions, that of a group norm [channels, 1, ...].
std::optional<std::uint32_t> OnnxImporter::input_of(const OnnxFusion& fusion, const OnnxValue& x) {
  const std::size_t rank = x.dims().size();
  if (fusion.kind == "layer_norm") {
    const std::size_t axis = rank - std::min(fusion.axes.size(), rank);
    if (!are_last(fusion.axes, rank) || axis <= x.batch_axis) return std::nullopt;
    const Dims last(x.dims().begin() + static_cast<std::ptrdiff_t>(axis), x.dims().end());
    if (!fusion.weights.empty() && value(fusion.weights.front()).dims() != last)
      return std::nullopt;
    return as_vectors(x, axis);
  }
  if (fusion.kind != "group_norm") return x.id;
  if (x.batch_axis != 0 || rank < 3) return std::nullopt;
  Dims each(rank - 1, 1);
  each.front() = x.dims()[1];
  if (value(fusion.weights.front()).dims() != each) return std::nullopt;
  return as_image(x);
}

/// Arithmetic on constants alone.
bool OnnxImporter::run_constant() {
  std::vector<const OnnxTensor*> inputs;
  for (const std::string& name : node_->inputs) {
    if (name.empty()) continue;
    if (!value(name).is_constant()) return false;
    inputs.push_back(&value(name).tensor);
  }
  std::optional<std::vector<OnnxTensor>> folded = fold(*node_, inputs);
  if (!folded) return false;
  const OnnxValue first = value(node_->inputs.front());
  const bool same =
      node_->kind == "Identity" || node_->kind == "Squeeze" || node_->kind == "Unsqueeze";
  bind_constant(0, std::move(folded->front()), same ? first.weight : kNoName);
  OnnxValue& made = values_[names_.at(node_->outputs.front())];
  made.is_stored = first.is_stored && (same || node_->kind == "Expand");
  if (node_->kind == "Gather" && first.weight != kNoName && first.dims().size() == 2 &&
      node_->integer("axis", 0) == 0) {
    made.weight = first.weight;
    made.rows_of = first.dims().front();
    made.has_stored_ids = input(1).is_stored;
  }
  made.is_repeated_weight = node_->kind == "Expand" && first.weight != kNoName;
  return true;
}

/// The reads of a node have happened.
void OnnxImporter::consume(const OnnxNode& node) {
  for (const std::string& name : node.inputs)
    if (!name.empty() && value(name).is_network()) --pending_[builder_.storage_of(value(name).id)];
}

void OnnxImporter::add_losses() {
  if (graph_.outputs.empty()) fail("the graph has no output");
  const Loss loss = options_.loss.value_or(Loss::cross_entropy);
  for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
    const OnnxValue& output = value(graph_.outputs[i]);
    const std::string name = "output `" + printable(graph_.outputs[i]) + "`";
    if (!output.is_network()) fail(name + " does not depend on the graph's inputs");
    const std::string prefix = i == 0 ? "" : "output_" + std::to_string(i + 1) + "/";
    try {
      builder_.add_loss(loss, output.id, prefix, i > 0);
    } catch (const LayerError& error) {
      fail(name + ": " + error.what());
    } catch (const QuantityOverflow&) {
      fail(name + ": sizes out of range");
    }
  }
}

std::string OnnxImporter::operator_name(const OnnxNode& node) {
  const std::string base = printable(node.name.empty() ? node.kind : node.name);
  std::string name = base;
  for (std::size_t n = operator_names_.size(); !operator_names_.insert(name).second; ++n)
    name = base + "_" + std::to_string(n);
  return name;
}

}  // namespace plimsoll
