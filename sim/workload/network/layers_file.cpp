#include "workload/network/layers_file.hpp"

#include "base/names_hint.hpp"
#include "workload/core/topological_order.hpp"
#include "workload/network/standard_blocks.hpp"
#include "workload/operators/layer_error.hpp"
#include "workload/operators/operator_rules.hpp"

#include <algorithm>
#include <set>

namespace plimsoll {
namespace {

constexpr std::string_view kRequiredWord = "required";
constexpr std::size_t kMaxLayers = 100'000;
/// Each is looked up for every layer that calls the block.
constexpr std::size_t kMaxReads = 100;

/// --- reading -------------------------------------------------------------------------------

std::optional<Argument> read_argument(std::string name, const Node& node, Diagnostics& diagnostics,
                                      const std::string& hint = {}) {
  if (!node.is_scalar()) {
    diagnostics.error(node.where(),
                      "expected a whole number or an expression, found " + node.describe(), hint);
    return std::nullopt;
  }
  try {
    return Argument{std::move(name), node.where(), Expression(node.scalar())};
  } catch (const LayerError& error) {
    diagnostics.error(node.where(), error.what(), hint);
    return std::nullopt;
  }
}

/// `0.5`, `-.1`, `1e-5`
bool is_fraction(std::string_view text) {
  return text.find_first_not_of("0123456789.eE+-") == std::string_view::npos &&
         text.find_first_of("0123456789") != std::string_view::npos &&
         text.find_first_of(".e") != std::string_view::npos;
}

Shape expression_shape(std::string text) {
  Shape shape;
  shape.title = "a whole number or an expression";
  shape.text = std::move(text);
  return shape;
}

Format<Argument> argument_format() {
  return {[](const Node& node, Diagnostics& diagnostics) {
            return read_argument({}, node, diagnostics);
          },
          expression_shape("names of `with`, + - * / and parentheses")};
}

/// The keys of a layer that are no arguments. True if `entry` was one.
class LayerReader {
 public:
  LayerReader(LayerSpec& layer, Diagnostics& diagnostics)
      : layer_(layer), diagnostics_(diagnostics), rule_(find_rule(layer.kind)) {}

  void read(const Node& body) {
    if (body.is_null()) return;
    if (!body.is_mapping()) return add_argument({}, body);
    for (const Node::Entry& entry : body.entries()) {
      const std::string& key = entry.key.scalar();
      if (key == "name")
        read_into(layer_.name, name(), entry.value);
      else if (key == "from")
        read_into(layer_.from, located(name()), entry.value);
      else if (key == "trained")
        read_into(layer_.trained, trained_format(), entry.value);
      else if (key == "bits")
        read_into(layer_.bits, located(bits_format()), entry.value);
      else if (rule_ != nullptr && !rule_->traits.link.empty() && key == rule_->traits.link)
        read_into(layer_.link, located(name()), entry.value);
      else if (rule_ != nullptr && !rule_->traits.second_input.empty() &&
               key == rule_->traits.second_input)
        read_into(layer_.second_input, located(name()), entry.value);
      else if (rule_ != nullptr && !rule_->traits.input_list.empty() &&
               key == rule_->traits.input_list)
        read_into(layer_.parts, list_of(located(name()), 1, kMaxLayers), entry.value);
      else if (key == "reads")
        read_into(layer_.reads, map_of(located(name())), entry.value);
      else if (key == "repeat")
        layer_.repeat = read_repeat(entry.value);
      else
        add_argument(entry.key.scalar(), entry.value, entry.key.where());
    }
  }

 private:
  void add_argument(std::string key, const Node& value, std::optional<Location> where = {}) {
    const std::string hint = hint_for(key, value);
    std::optional<Argument> argument = read_argument(std::move(key), value, diagnostics_, hint);
    layer_.is_read = layer_.is_read && argument;
    if (!argument) return;
    if (where) argument->where = *where;
    layer_.arguments.push_back(std::move(*argument));
  }

  /// How to say what layers of other programs are given as fractions and lists.
  [[nodiscard]] std::string hint_for(const std::string& key, const Node& value) const {
    if (value.is_scalar())
      return is_fraction(value.scalar()) && !is_counted(key)
                 ? "rates and slopes are not given: they change neither bytes nor work"
                 : "";
    if (rule_ == nullptr) return {};
    const std::string list(rule_->traits.input_list), width = key + "_width";
    if (key.empty() && !list.empty()) return "write `" + layer_.kind + ": {" + list + ": [...]}`";
    return has_attribute(width) ? "`" + width + "` is that along the width" : "";
  }

  [[nodiscard]] bool has_attribute(const std::string& key) const {
    return std::ranges::find(rule_->attributes, key, &Attribute::name) != rule_->attributes.end();
  }

  /// Whether the layer has such an attribute; without a key, whether one must be given.
  [[nodiscard]] bool is_counted(const std::string& key) const {
    if (rule_ == nullptr || rule_->attributes.empty()) return false;
    return key.empty() ? rule_->attributes.front().fallback == kRequired : has_attribute(key);
  }

  std::optional<Argument> read_repeat(const Node& value) {
    std::optional<Argument> argument = read_argument("repeat", value, diagnostics_);
    layer_.is_read = layer_.is_read && argument;
    return argument;
  }

  template <class Member, class T>
  void read_into(Member& member, const Format<T>& format, const Node& node) {
    std::optional<T> value = format.read(node, diagnostics_);
    layer_.is_read = layer_.is_read && value;
    if (value) member = std::move(*value);
  }

  LayerSpec& layer_;
  Diagnostics& diagnostics_;
  const OperatorRule* rule_;
};

/// `relu`, or `conv2d: {...}`, or `linear: 10`. What cannot be read is a layer without a kind.
std::optional<LayerSpec> read_layer(const Node& node, Diagnostics& diagnostics) {
  LayerSpec layer;
  layer.where = node.where();
  if (node.is_scalar()) {
    layer.kind = node.scalar();
    return layer;
  }
  if (!node.is_mapping() || node.entries().size() != 1) {
    diagnostics.error(
        node.where(),
        "expected a layer such as `relu` or `linear: {features: 10}`, found " +
            (node.is_mapping() ? "a mapping with " + std::to_string(node.entries().size()) + " keys"
                               : node.describe()));
    layer.is_read = false;
    return layer;
  }
  const Node::Entry& entry = node.entries().front();
  layer.kind = entry.key.scalar();
  LayerReader(layer, diagnostics).read(entry.value);
  return layer;
}

Shape layer_shape() {
  Shape name;
  name.kind = Shape::Kind::string;
  Shape body;
  body.kind = Shape::Kind::map;
  body.text = "one layer and its arguments";
  body.parts = {Shape{}};
  for (const OperatorRule& rule : operator_rules())
    if (!rule.traits.is_loss)
      name.text +=
          (name.text.empty() ? "" : "; ") + std::string(rule.kind) + ": " + std::string(rule.about);
  Shape shape;
  shape.kind = Shape::Kind::either;
  shape.title = "a layer";
  shape.parts = {name, body};
  return shape;
}

Format<std::vector<LayerSpec>> layer_list_format() {
  return list_of(Format<LayerSpec>{read_layer, layer_shape()}, 1, kMaxLayers);
}

/// A block's number: an expression, or the word `required`.
Format<std::optional<Argument>> default_format() {
  auto read = [](const Node& node,
                 Diagnostics& diagnostics) -> std::optional<std::optional<Argument>> {
    if (node.is_scalar() && node.scalar() == kRequiredWord) return std::optional<Argument>{};
    std::optional<Argument> value = read_argument({}, node, diagnostics);
    if (!value) return std::nullopt;
    return value;
  };
  return {std::move(read), expression_shape("the default, or `required`")};
}

Format<BlockSpec> block_format() {
  return Record<BlockSpec>("block", "Layers under one name.")
      .where(&BlockSpec::where)
      .optional("with", &BlockSpec::with, map_of(default_format()),
                "its numbers and their defaults")
      .optional("reads", &BlockSpec::reads, list_of(located(name()), 1, kMaxReads),
                "names of values that it reads beside its input")
      .required("layers", &BlockSpec::layers, layer_list_format(), "the layers")
      .format();
}

using NamedBlocks = std::vector<std::pair<Located<std::string>, BlockSpec>>;

Format<std::map<std::string, BlockSpec>> blocks_format() {
  return mapped<NamedBlocks, std::map<std::string, BlockSpec>>(
      map_of(block_format()), [](NamedBlocks blocks) {
        std::map<std::string, BlockSpec> by_name;
        for (auto& [key, block] : blocks) {
          block.where = key.where;
          by_name.emplace(key.value, std::move(block));
        }
        return by_name;
      });
}

Format<NetworkInput> input_format() {
  const auto shape = list_of(argument_format(), 1, 3);
  auto record = Record<NetworkInput>("input", "One sample of the network's input.")
                    .required("shape", &NetworkInput::shape, shape, "without the batch")
                    .optional("type", &NetworkInput::indices,
                              one_of<bool>({{"values", false}, {"indices", true}}),
                              "default values; indices are 8 bytes each")
                    .format();
  auto list = mapped<std::vector<Argument>, NetworkInput>(shape, [](std::vector<Argument> dims) {
    return NetworkInput{std::move(dims), false};
  });
  return either(std::move(list), std::move(record));
}

/// --- checking ------------------------------------------------------------------------------

const std::map<std::string, BlockSpec>& standard_blocks() {
  static const std::map<std::string, BlockSpec> blocks = [] {
    Diagnostics diagnostics;
    const Node node = parse_document(kStandardBlocks, std::string(kStandardOrigin));
    auto read = blocks_format().read(node, diagnostics);
    diagnostics.throw_if_errors();
    return std::move(*read);
  }();
  return blocks;
}

/// Names that every block may have as its own; each is looked up for every layer.
constexpr std::size_t kMaxListedNumbers = 100;
constexpr std::size_t kMaxBlocks = 1000;

/// False, after reporting, for a network whose checking would take too long.
bool has_bounded_names(const LayersSpec& network, Diagnostics& diagnostics) {
  const auto bound = [&](std::size_t count, std::size_t most, const Location& where,
                         const std::string& what) {
    if (count > most)
      diagnostics.error(where, "found " + std::to_string(count) + " " + what +
                                   ", expected at most " + std::to_string(most));
    return count <= most;
  };
  bool good = bound(network.with.size(), kMaxListedNumbers, network.where, "numbers in `with`") &&
              bound(network.blocks.size(), kMaxBlocks, network.where, "blocks");
  if (!good) return false;
  for (const auto& [name, block] : network.blocks)
    good = bound(block.with.size(), kMaxListedNumbers, block.where, "numbers in `with`") && good;
  return good;
}

/// Checks the names in a network.
class LayersChecker {
 public:
  LayersChecker(const LayersSpec& network, Diagnostics& diagnostics)
      : network_(network), diagnostics_(diagnostics) {
    constants_.insert(std::string(kIsPyTorch2));
    for (const auto& [name, value] : network.with)
      if (!constants_.insert(name.value).second)
        diagnostics_.error(name.where,
                           "`" + name.value + "` follows from `framework`; choose another name");
    for (const OperatorRule& rule : operator_rules())
      if (!rule.traits.is_loss) kinds_.insert(std::string(rule.kind));
    for (const auto& [name, block] : network.blocks) kinds_.insert(name);
  }

  void check() {
    for (const auto& [name, block] : network_.blocks) {
      if (find_rule(name) != nullptr)
        diagnostics_.error(block.where, "`" + name + "` is a layer already; choose another name");
      std::set<std::string> numbers = constants_;
      for (const auto& [number, value] : block.with) {
        if (value) check_expression(*value, constants_);
        numbers.insert(number.value);
      }
      check_layers(block.layers, numbers, values_in(block));
    }
    for (const Argument& dim : network_.input.shape) check_expression(dim, constants_);
    const std::set<std::string> values =
        check_layers(network_.layers, constants_, {std::string(kBlockInput)});
    for (const Located<std::string>& name : network_.auxiliary)
      if (!values.contains(name.value))
        diagnostics_.error(name.where, "no value of `layers` is named `" + name.value + "`",
                           suggest(name.value, values));
    check_recursion();
  }

 private:
  /// Those that a block begins with.
  std::set<std::string> values_in(const BlockSpec& block) {
    std::set<std::string> values = {std::string(kBlockInput)};
    for (const Located<std::string>& name : block.reads)
      if (!values.insert(name.value).second)
        diagnostics_.error(name.where, "the name `" + name.value + "` is taken");
    return values;
  }

  /// The names of values in the end; `values` are those at first.
  std::set<std::string> check_layers(const std::vector<LayerSpec>& layers,
                                     std::set<std::string> numbers, std::set<std::string> values) {
    numbers.insert(std::string(kChannelsIn));
    bool all_values_known = true;
    for (const LayerSpec& layer : layers) {
      if (!layer.kind.empty() || layer.is_read) check_kind(layer);
      for (const Argument& argument : layer.arguments) check_expression(argument, numbers);
      if (layer.repeat) check_expression(*layer.repeat, numbers);
      for (const auto* value : {&layer.from, &layer.second_input})
        if (*value && all_values_known) check_value(**value, values);
      for (const Located<std::string>& part : layer.parts)
        if (all_values_known) check_value(part, values);
      for (const auto& [inside, outside] : layer.reads)
        if (all_values_known) check_value(outside, values);
      all_values_known = all_values_known && layer.is_read;
      if (!layer.name.empty() && !values.insert(layer.name).second)
        diagnostics_.error(layer.where, "the name `" + layer.name + "` is taken");
    }
    return values;
  }

  void check_expression(const Argument& argument, const std::set<std::string>& numbers) {
    for (const std::string& name : argument.value.names())
      if (!numbers.contains(name))
        diagnostics_.error(argument.where, "unknown number `" + name + "`", suggest(name, numbers));
  }

  void check_value(const Located<std::string>& value, const std::set<std::string>& values) {
    if (values.contains(value.value)) return;
    diagnostics_.error(value.where, "no value `" + value.value + "` was named before this layer",
                       suggest(value.value, values));
  }

  void check_kind(const LayerSpec& layer) {
    const auto block = network_.blocks.find(layer.kind);
    if (block != network_.blocks.end()) {
      std::vector<Attribute> attributes;
      for (const auto& [name, value] : block->second.with)
        attributes.push_back({name.value, value ? 0 : kRequired});
      check_reads(layer, block->second.reads);
      return check_arguments(layer, attributes);
    }
    const OperatorRule* rule = find_rule(layer.kind);
    if (rule == nullptr || rule->traits.is_loss) {
      diagnostics_.error(layer.where, "unknown layer `" + layer.kind + "`",
                         suggest(layer.kind, kinds_));
      return;
    }
    check_arguments(layer, rule->attributes);
    check_reads(layer, {});
    const auto need = [&](std::string_view key, bool given) {
      if (!key.empty() && !given && layer.is_read)
        diagnostics_.error(layer.where, "`" + layer.kind + "` needs `" + std::string(key) + "`");
    };
    need(rule->traits.second_input, layer.second_input.has_value());
    need(rule->traits.input_list, !layer.parts.empty());
    if (rule->traits.link == kPool) need(kPool, layer.link.has_value());
    if (layer.from && !rule->traits.input_list.empty())
      diagnostics_.error(layer.where, "`" + layer.kind + "` reads `" +
                                          std::string(rule->traits.input_list) + "`, not `from`");
  }

  /// That the layer names what a block reads beside its input, and nothing else.
  void check_reads(const LayerSpec& layer, const std::vector<Located<std::string>>& reads) {
    std::set<std::string> known, given;
    for (const Located<std::string>& name : reads) known.insert(name.value);
    for (const auto& [inside, outside] : layer.reads) {
      given.insert(inside.value);
      if (!known.contains(inside.value))
        diagnostics_.error(inside.where, "`" + layer.kind + "` reads no `" + inside.value + "`",
                           suggest(inside.value, known));
    }
    if (!layer.is_read) return;
    for (const Located<std::string>& name : reads)
      if (!given.contains(name.value))
        diagnostics_.error(layer.where, "`" + layer.kind + "` reads `" + name.value +
                                            "`; say what that is: `reads: {" + name.value +
                                            ": NAME}`");
  }

  /// The nearest name; only among so many that the search takes no time.
  [[nodiscard]] std::string suggest(const std::string& found,
                                    const std::set<std::string>& names) const {
    constexpr std::size_t kCandidates = 2000;
    if (diagnostics_.is_full() || names.size() > kCandidates) return {};
    const std::vector<std::string> candidates(names.begin(), names.end());
    return did_you_mean(found, candidates);
  }

  void check_arguments(const LayerSpec& layer, const std::vector<Attribute>& attributes) {
    std::vector<std::string> known;
    for (const Attribute& attribute : attributes) known.emplace_back(attribute.name);
    std::set<std::string> given;
    for (const Argument& argument : layer.arguments) {
      if (argument.name.empty() && !known.empty())
        given.insert(known.front());
      else if (argument.name.empty())
        diagnostics_.error(argument.where, "`" + layer.kind + "` takes no number");
      else if (std::ranges::find(known, argument.name) != known.end())
        given.insert(argument.name);
      else
        diagnostics_.error(argument.where, "`" + layer.kind + "` has no `" + argument.name + "`",
                           hint_of_names(argument.name, known));
    }
    if (!layer.is_read) return;
    for (const Attribute& attribute : attributes)
      if (attribute.fallback == kRequired && !given.contains(std::string(attribute.name)))
        diagnostics_.error(layer.where,
                           "`" + layer.kind + "` needs `" + std::string(attribute.name) + "`");
  }

  void check_recursion() {
    std::vector<const std::pair<const std::string, BlockSpec>*> blocks;
    std::map<std::string, std::uint32_t> index;
    for (const auto& entry : network_.blocks) {
      index.emplace(entry.first, static_cast<std::uint32_t>(blocks.size()));
      blocks.push_back(&entry);
    }
    std::vector<Need> needs;
    for (std::uint32_t b = 0; b < blocks.size(); ++b)
      for (const LayerSpec& layer : blocks[b]->second.layers)
        if (const auto inner = index.find(layer.kind); inner != index.end())
          needs.emplace_back(b, inner->second);
    const TopologicalOrder sorted =
        topological_order(static_cast<std::uint32_t>(blocks.size()), needs);
    if (sorted.cycle.empty()) return;
    std::string names;
    for (const std::uint32_t b : sorted.cycle) names += "`" + blocks[b]->first + "` contains ";
    const auto* first = blocks[sorted.cycle.front()];
    diagnostics_.error(first->second.where,
                       "blocks contain each other: " + names + "`" + first->first + "`");
  }

  const LayersSpec& network_;
  Diagnostics& diagnostics_;
  std::set<std::string> constants_, kinds_;
};

/// Adds the standard blocks, and checks all names.
void complete_and_check(LayersSpec& network, const Node&, Diagnostics& diagnostics) {
  if (!has_bounded_names(network, diagnostics)) return;
  for (const auto& [name, block] : standard_blocks()) {
    const auto [taken, fresh] = network.blocks.emplace(name, block);
    if (!fresh)
      diagnostics.error(taken->second.where,
                        "`" + name + "` is a standard block; choose another name");
  }
  LayersChecker(network, diagnostics).check();
}

}  // namespace

Format<LayersSpec> layers_format() {
  return Record<LayersSpec>("network", "A network in the layer language.")
      .where(&LayersSpec::where)
      .required("workload", &LayersSpec::name, name(), "the workload's name")
      .required("input", &LayersSpec::input, input_format(), "shape of one sample")
      .optional("with", &LayersSpec::with, with_format(), "numbers that a scenario may override")
      .optional("blocks", &LayersSpec::blocks, blocks_format(), "named lists of layers")
      .required("layers", &LayersSpec::layers, layer_list_format(), "in order of execution")
      .optional("auxiliary", &LayersSpec::auxiliary, list_of(located(name()), 1, kMaxLayers),
                "named values with a loss of their own, times a number")
      .optional("loss", &LayersSpec::loss, loss_format(), "default cross-entropy")
      .optional("framework", &LayersSpec::framework, framework_format(), "default pytorch-1.13")
      .optional("batch", &LayersSpec::batch, batch_format(), "default 1")
      .optional("optimizer", &LayersSpec::optimizer, optimizer_format(), "default none")
      .check({"with", "blocks", "layers"}, complete_and_check)
      .format();
}

}  // namespace plimsoll
