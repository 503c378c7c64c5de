#include "workload/onnx/onnx_fusions.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace plimsoll {
namespace {

/// Follows values from node to node; any step that does not fit ends the search.
class Matcher {
 public:
  Matcher(const OnnxGraph& graph, std::uint32_t first, const OnnxReaders& readers)
      : graph_(graph), first_(first), readers_(readers) {}

  std::optional<OnnxFusion> find() {
    const OnnxNode& node = graph_.nodes[first_];
    if (node.inputs.empty() || node.outputs.empty()) return std::nullopt;
    fusion_.nodes = {first_};
    bool found = false;
    if (node.kind == "ReduceMean") found = layer_norm();
    if (node.kind == "Reshape") found = group_norm();
    if (node.kind == "Div" || node.kind == "Mul") found = gelu();
    if (node.kind == "Mul" && !found) found = gelu_by_tanh();
    if (node.kind == "Sigmoid") found = gated({}, "silu");
    if (node.kind == "HardSigmoid") found = gated({}, "hard_swish", {{"in_place", 0}});
    if (node.kind == "Softplus") found = gated("Tanh", "mish");
    if (node.kind == "Sqrt") found = rsqrt();
    if (node.kind == "Transpose") found = attention();
    if (!found) return std::nullopt;
    return std::move(fusion_);
  }

 private:
  /// The nodes that read `name`, if there are `count` and they are of these kinds, in this order.
  const OnnxNode* only_reader(const std::string& name, std::string_view kind) {
    const std::vector<std::uint32_t>& readers = readers_.of(name);
    if (readers.size() != 1) return nullptr;
    return take(readers.front(), kind);
  }

  const OnnxNode* take(std::uint32_t index, std::string_view kind) {
    const OnnxNode& node = graph_.nodes[index];
    if (node.kind != kind || node.outputs.empty()) return nullptr;
    fusion_.nodes.push_back(index);
    return &node;
  }

  [[nodiscard]] bool is_number(const std::string& name, double wanted) const {
    const std::optional<double> number = readers_.number(name);
    return number && std::abs(*number - wanted) < 1e-3;
  }

  /// The other input of a node of two; nullptr if `name` is none of them.
  static const std::string* other(const OnnxNode& node, const std::string& name) {
    if (node.inputs.size() != 2) return nullptr;
    if (node.inputs[0] == name) return &node.inputs[1];
    return node.inputs[1] == name ? &node.inputs[0] : nullptr;
  }

  bool layer_norm() {
    const OnnxNode& mean = graph_.nodes[first_];
    fusion_.kind = "layer_norm";
    fusion_.x = mean.inputs.front();
    const OnnxNode* centred = only_reader(mean.outputs.front(), "Sub");
    if (centred == nullptr || centred->inputs != std::vector{fusion_.x, mean.outputs.front()})
      return false;
    const OnnxNode* quotient = over_deviation(centred->outputs.front());
    if (quotient == nullptr) return false;
    fusion_.axes = axes_of(mean);
    OnnxFusion alone = fusion_;
    if (weighted(quotient->outputs.front())) return true;
    alone.arguments = {{"affine", 0}};
    alone.y = quotient->outputs.front();
    fusion_ = std::move(alone);
    return true;
  }

  static std::vector<std::int64_t> axes_of(const OnnxNode& mean) {
    const OnnxAttribute* axes = mean.attribute("axes");
    return axes == nullptr ? std::vector<std::int64_t>{} : axes->integers;
  }

  bool group_norm() {
    const OnnxNode& groups = graph_.nodes[first_];
    fusion_.kind = "group_norm";
    fusion_.x = groups.inputs.front();
    const OnnxNode* normal = only_reader(groups.outputs.front(), "InstanceNormalization");
    if (normal == nullptr || normal->inputs.size() != 3) return false;
    const std::int64_t count = readers_.all(normal->inputs[1], 1);
    if (count == 0 || readers_.all(normal->inputs[2], 0) != count) return false;
    fusion_.arguments = {{"groups", count}};
    const OnnxNode* channels = only_reader(normal->outputs.front(), "Reshape");
    return channels != nullptr && weighted(channels->outputs.front());
  }

  /// Times a weight, plus a bias: the end.
  bool weighted(const std::string& value) {
    const OnnxNode* scaled = only_reader(value, "Mul");
    const OnnxNode* moved =
        scaled == nullptr ? nullptr : only_reader(scaled->outputs.front(), "Add");
    if (moved == nullptr) return false;
    fusion_.y = moved->outputs.front();
    return add_weight(*scaled, value) && add_weight(*moved, scaled->outputs.front());
  }

  bool add_weight(const OnnxNode& node, const std::string& value) {
    const std::string* weight = other(node, value);
    if (weight == nullptr || !readers_.is_weight(*weight)) return false;
    fusion_.weights.push_back(*weight);
    return true;
  }

  /// The Div of a centred value by the root of the mean of its squares.
  const OnnxNode* over_deviation(const std::string& centred) {
    const std::vector<std::uint32_t>& readers = readers_.of(centred);
    if (readers.size() != 2) return nullptr;
    const OnnxNode* square = take(readers.front(), "Pow");
    const OnnxNode* quotient = take(readers.back(), "Div");
    if (square == nullptr || quotient == nullptr || square->inputs.size() != 2 ||
        !is_number(square->inputs[1], 2))
      return nullptr;
    const OnnxNode* step = square;
    for (const std::string_view kind : {"ReduceMean", "Add", "Sqrt"}) {
      step = only_reader(step->outputs.front(), kind);
      if (step == nullptr) return nullptr;
      if (step->kind == "ReduceMean" && axes_of(*step) != axes_of(graph_.nodes[first_]))
        return nullptr;
    }
    const std::string& deviation = step->outputs.front();
    return quotient->inputs == std::vector{centred, deviation} ? quotient : nullptr;
  }

  bool gelu() {
    const OnnxNode& first = graph_.nodes[first_];
    const double factor = first.kind == "Div" ? std::sqrt(2.0) : std::sqrt(0.5);
    if (first.inputs.size() != 2 || !is_number(first.inputs[1], factor)) return false;
    fusion_.kind = "gelu";
    fusion_.x = first.inputs[0];
    const OnnxNode* erf = only_reader(first.outputs.front(), "Erf");
    const OnnxNode* sum = erf == nullptr ? nullptr : only_reader(erf->outputs.front(), "Add");
    if (sum == nullptr) return false;
    const std::string* one = other(*sum, erf->outputs.front());
    if (one == nullptr || !is_number(*one, 1)) return false;
    const OnnxNode* times = only_reader(sum->outputs.front(), "Mul");
    if (times == nullptr) return false;
    const std::string* factor_name = other(*times, sum->outputs.front());
    if (factor_name == nullptr) return false;
    return *factor_name == fusion_.x ? half_at_the_end(*times) : half_before(*times, *factor_name);
  }

  bool half_at_the_end(const OnnxNode& times) {
    const OnnxNode* half = only_reader(times.outputs.front(), "Mul");
    const std::string* number = half == nullptr ? nullptr : other(*half, times.outputs.front());
    if (number == nullptr || !is_number(*number, 0.5)) return false;
    fusion_.y = half->outputs.front();
    return true;
  }

  /// x * 0.5 is read by the product alone.
  bool half_before(const OnnxNode& times, const std::string& halved) {
    for (const std::uint32_t reader : readers_.of(fusion_.x)) {
      const OnnxNode& node = graph_.nodes[reader];
      const std::string* number = node.kind == "Mul" ? other(node, fusion_.x) : nullptr;
      if (number == nullptr || !is_number(*number, 0.5) || node.outputs.front() != halved) continue;
      if (readers_.of(halved).size() != 1) return false;
      fusion_.nodes.push_back(reader);
      fusion_.y = times.outputs.front();
      return true;
    }
    return false;
  }

  /// 0.5 x (1 + tanh(0.798 (x + 0.0447 x^3))).
  bool gelu_by_tanh() {
    struct Step {
      std::string_view kind;
      std::optional<double> by;  ///< x where it is nothing
    };
    static constexpr std::array kSteps = {
        Step{"Mul", {}},  Step{"Mul", 0.044715}, Step{"Add", {}}, Step{"Mul", 0.797885},
        Step{"Tanh", {}}, Step{"Add", 1},        Step{"Mul", {}}, Step{"Mul", 0.5}};
    const OnnxNode* node = &graph_.nodes[first_];
    if (node->inputs.size() != 2 || node->inputs[0] != node->inputs[1]) return false;
    fusion_ = {.kind = "gelu", .nodes = {first_}, .x = node->inputs[0]};
    for (const Step& step : kSteps) {
      const std::string& value = node->outputs.front();
      node = only_reader(value, step.kind);
      if (node == nullptr) return false;
      if (step.kind == "Tanh") continue;
      const std::string* by = other(*node, value);
      if (by == nullptr || (step.by ? !is_number(*by, *step.by) : *by != fusion_.x)) return false;
    }
    fusion_.y = node->outputs.front();
    return true;
  }

  /// x times what the first node, and one more if it is named, make of x.
  bool gated(std::string_view second, std::string_view kind, RuleArguments arguments = {}) {
    const OnnxNode* gate = &graph_.nodes[first_];
    fusion_.kind = kind;
    fusion_.x = gate->inputs.front();
    if (!second.empty()) gate = only_reader(gate->outputs.front(), second);
    const OnnxNode* times = gate == nullptr ? nullptr : only_reader(gate->outputs.front(), "Mul");
    const std::string* x = times == nullptr ? nullptr : other(*times, gate->outputs.front());
    if (x == nullptr || *x != fusion_.x) return false;
    fusion_.arguments = std::move(arguments);
    fusion_.y = times->outputs.front();
    return true;
  }

  /// 1 over a root. (A Reciprocal of a root is two operators.)
  bool rsqrt() {
    const OnnxNode& root = graph_.nodes[first_];
    fusion_.kind = "rsqrt";
    fusion_.x = root.inputs.front();
    const OnnxNode* inverse = only_reader(root.outputs.front(), "Div");
    if (inverse == nullptr || inverse->inputs.size() != 2 ||
        inverse->inputs[1] != root.outputs.front() || !is_number(inverse->inputs[0], 1))
      return false;
    fusion_.y = inverse->outputs.front();
    return true;
  }

  /// softmax(q k^T + mask) v of the key that is turned, q and k each times the root of a scale.
  bool attention() {
    const OnnxNode& turned = graph_.nodes[first_];
    if (!turns_matrices(turned)) return false;
    fusion_.kind = "dot_product_attention";
    const OnnxNode* key = scaled(only_reader(turned.outputs.front(), "Mul"));
    const OnnxNode* scores = key == nullptr ? nullptr : only_reader(key->outputs.front(), "MatMul");
    if (scores == nullptr || scores->inputs.size() != 2 ||
        scores->inputs[1] != key->outputs.front() || readers_.of(scores->inputs[0]).size() != 1)
      return false;
    const OnnxNode* query = scaled(made(scores->inputs[0], "Mul"));
    const std::string* weights = query == nullptr ? nullptr : probabilities(*scores);
    const OnnxNode* context = weights == nullptr ? nullptr : only_reader(*weights, "MatMul");
    if (context == nullptr || context->inputs.size() != 2 || context->inputs[0] != *weights)
      return false;
    fusion_.x = query->inputs[0];
    fusion_.more = {turned.inputs.front(), context->inputs[1]};
    fusion_.y = context->outputs.front();
    return true;
  }

  /// Of the scores, after what may change them.
  const std::string* probabilities(const OnnxNode& scores) {
    const std::string* value = &scores.outputs.front();
    if (const OnnxNode* masked = only_reader(*value, "Add")) {
      const std::string* mask = other(*masked, *value);
      if (mask == nullptr || !is_mask(*mask)) return nullptr;
      value = &masked->outputs.front();
    }
    const OnnxNode* softmax = only_reader(*value, "Softmax");
    if (softmax == nullptr) return nullptr;
    constexpr std::int64_t kLast = 3;
    if (const std::int64_t axis = softmax->integer("axis", -1); axis != -1 && axis != kLast)
      return nullptr;
    value = &softmax->outputs.front();
    // Rows that are all masked have no probabilities: zeros for them.
    if (const std::vector<std::uint32_t>& readers = readers_.of(*value); readers.size() == 2) {
      const OnnxNode* none = take(readers.front(), "IsNaN");
      const OnnxNode* chosen = none == nullptr ? nullptr : take(readers.back(), "Where");
      if (chosen == nullptr || chosen->inputs.front() != none->outputs.front() ||
          readers_.of(none->outputs.front()).size() != 1)
        return nullptr;
      value = &chosen->outputs.front();
    }
    if (const OnnxNode* dropped = only_reader(*value, "Dropout")) value = &dropped->outputs.front();
    return value;
  }

  /// Whether it exchanges the last two of four dimensions, perhaps after the middle two.
  static bool turns_matrices(const OnnxNode& node) {
    const OnnxAttribute* order = node.attribute("perm");
    return order != nullptr && (order->integers == std::vector<std::int64_t>{0, 1, 3, 2} ||
                                order->integers == std::vector<std::int64_t>{0, 2, 3, 1});
  }

  /// The node, if its second factor is the root of a constant that is taken nearby, which nobody
  /// writes by hand.
  const OnnxNode* scaled(const OnnxNode* node) {
    if (node == nullptr || node->inputs.size() != 2) return nullptr;
    const OnnxNode* root = nearby(node->inputs[1]);
    if (root != nullptr && root->kind == "Cast") root = nearby(root->inputs.front());
    const bool is_scale =
        root != nullptr && root->kind == "Sqrt" && readers_.is_constant(root->inputs.front());
    return is_scale ? node : nullptr;
  }

  /// Not one that is learned, for which PyTorch runs no fused kernel.
  bool is_mask(const std::string& name) {
    const OnnxNode* chosen = nearby(name);
    return chosen != nullptr && chosen->kind == "Where"
               ? readers_.is_constant(chosen->inputs.front())
               : readers_.is_constant(name) && !readers_.is_weight(name);
  }

  /// The node of this kind that makes `name`, a few after the first.
  const OnnxNode* made(const std::string& name, std::string_view kind) {
    const OnnxNode* node = nearby(name);
    return node == nullptr ? nullptr : take(index_of(*node), kind);
  }

  const OnnxNode* nearby(const std::string& name) {
    const std::size_t last = std::min<std::size_t>(graph_.nodes.size(), first_ + kNearby);
    for (std::size_t i = first_ + 1; i < last; ++i)
      if (!graph_.nodes[i].outputs.empty() && graph_.nodes[i].outputs.front() == name &&
          !graph_.nodes[i].inputs.empty())
        return &graph_.nodes[i];
    return nullptr;
  }

  [[nodiscard]] std::uint32_t index_of(const OnnxNode& node) const {
    return static_cast<std::uint32_t>(&node - graph_.nodes.data());
  }

  static constexpr std::size_t kNearby = 32;

  const OnnxGraph& graph_;
  std::uint32_t first_;
  const OnnxReaders& readers_;
  OnnxFusion fusion_;
};

}  // namespace

std::optional<OnnxFusion> find_fusion(const OnnxGraph& graph, std::uint32_t node,
                                      const OnnxReaders& readers) {
  return Matcher(graph, node, readers).find();
}

}  // namespace plimsoll
