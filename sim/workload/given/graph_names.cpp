#include "workload/given/graph_names.hpp"

#include "workload/given/given_operators.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// The names in an operator, as far as they can be read.
struct Wiring {
  const Node* node = nullptr;
  std::vector<Located<std::string>> inputs, outputs;
};

/// Checks the names of a graph, whatever else is wrong with it.
class GraphChecker {
 public:
  /// Shapes are those of the whole document and of an operator.
  GraphChecker(const Shape& shape, const Shape& operator_shape, Diagnostics& diagnostics)
      : shape_(shape), operator_shape_(operator_shape), diagnostics_(diagnostics) {}

  void check(const Node& document, FileOrder order) {
    const Node* graph = document.find("graph");
    if (graph != nullptr && graph->is_mapping()) graph = graph->find("operators");
    if (graph == nullptr || !graph->is_sequence()) return;
    add_makers(makers_in(document, "inputs", shape_), kInput);
    check_names(*graph, "operator", diagnostics_);
    for (const Node& item : graph->items()) add(item);
    for (const Wiring& op : operators_) check_inputs(op);
    const bool has_cycle = check_cycles();
    if (order == FileOrder::topological && !has_cycle) check_order();
  }

 private:
  void add(const Node& item) {
    Wiring op{&item, {}, makers_in(item, "outputs", operator_shape_)};
    if (const Node* inputs = item.find("inputs"))
      for (const Node& input : inputs->items())
        if (input.is_scalar()) op.inputs.push_back({input.scalar(), input.where()});
    add_makers(op.outputs, static_cast<std::uint32_t>(operators_.size()));
    operators_.push_back(std::move(op));
  }

  /// The names under `key`. Where there may be others that cannot be read, no name is unknown.
  std::vector<Located<std::string>> makers_in(const Node& node, const char* key,
                                              const Shape& shape) {
    std::vector<Located<std::string>> names;
    const Node* values = node.find(key);
    if (values == nullptr)
      all_makers_known_ = all_makers_known_ && node.is_mapping() && has_known_keys(node, shape);
    else if (!values->is_mapping())
      all_makers_known_ = false;
    else
      for (const Node::Entry& entry : values->entries())
        names.push_back({entry.key.scalar(), entry.key.where()});
    return names;
  }

  static bool has_known_keys(const Node& node, const Shape& shape) {
    return std::ranges::all_of(node.entries(), [&](const Node::Entry& entry) {
      return std::ranges::find(shape.fields, entry.key.scalar(), &Shape::Field::key) !=
             shape.fields.end();
    });
  }

  void add_makers(const std::vector<Located<std::string>>& values, std::uint32_t maker) {
    for (const auto& [value, where] : values) {
      if (!makers_.emplace(value, maker).second)
        diagnostics_.error(where, "the value `" + value + "` is made twice");
      else
        values_.push_back(value);
    }
  }

  void check_inputs(const Wiring& op) {
    std::set<std::string> seen;
    for (const Located<std::string>& input : op.inputs) {
      if (!seen.insert(input.value).second)
        diagnostics_.error(input.where, "`" + input.value + "` is named twice");
      else if (all_makers_known_ && !makers_.contains(input.value))
        diagnostics_.error(input.where, "unknown value `" + input.value + "`",
                           suggest(input.value));
    }
  }

  std::string name_of_operator(std::uint32_t i) const {
    const Node* given = operators_[i].node->find("name");
    return given != nullptr ? given->describe() : "an operator without a name";
  }

  /// Whether there is one.
  bool check_cycles() {
    const TopologicalOrder sorted = order_of(operators_, makers_);
    if (sorted.cycle.empty()) return false;
    constexpr std::size_t kShown = 10;
    std::string names;
    for (std::size_t i = 0; i < std::min(sorted.cycle.size(), kShown); ++i)
      names += name_of_operator(sorted.cycle[i]) + " needs ";
    if (sorted.cycle.size() > kShown) names += "... needs ";
    diagnostics_.error(
        operators_[sorted.cycle.front()].node->where(),
        "the operators form a cycle: " + names + name_of_operator(sorted.cycle.front()));
    return true;
  }

  /// The first operator before one that it needs.
  void check_order() {
    for (std::uint32_t i = 0; i < operators_.size(); ++i)
      for (const Located<std::string>& input : operators_[i].inputs) {
        const auto maker = makers_.find(input.value);
        if (maker == makers_.end() || maker->second == kInput || maker->second < i) continue;
        diagnostics_.error(
            input.where,
            fmt::format("{} reads `{}`, which {} makes further down", name_of_operator(i),
                        input.value, name_of_operator(maker->second)),
            "expected the operators in an order in which they can run");
        return;
      }
  }

  /// The nearest name; for the first few errors of a file of usual size only, to bound the search.
  std::string suggest(const std::string& value) {
    constexpr int kSuggestions = 20;
    constexpr std::size_t kCandidates = 10'000;
    if (unknown_++ >= kSuggestions || values_.size() > kCandidates) return {};
    return did_you_mean(value, values_);
  }

  const Shape& shape_;
  const Shape& operator_shape_;
  Diagnostics& diagnostics_;
  std::vector<Wiring> operators_;
  Makers makers_;
  std::vector<std::string> values_;
  bool all_makers_known_ = true;
  int unknown_ = 0;
};

}  // namespace

Bytes sum_of(const NamedBytes& values) {
  Bytes sum;
  for (const auto& [name, bytes] : values) sum += bytes;
  return sum;
}

void check_graph_names(const Node& document, const Shape& document_shape,
                       const Shape& operator_shape, FileOrder order, Diagnostics& diagnostics) {
  GraphChecker(document_shape, operator_shape, diagnostics).check(document, order);
}

}  // namespace plimsoll
