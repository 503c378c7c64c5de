/// Groups of nodes that are one operator of a framework: exporters write normalizations, GELU,
/// SiLU and others as their arithmetic.
#pragma once

#include "workload/onnx/onnx_graph.hpp"
#include "workload/operators/operator_rules.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

/// Who reads what in a graph.
struct OnnxReaders {
  /// The nodes that read a name, in order, one entry for each time; empty for unknown names, and
  /// for outputs of the graph, which somebody else reads.
  std::function<const std::vector<std::uint32_t>&(const std::string&)> of;
  /// The number that a name stands for, where it is a known constant.
  std::function<std::optional<double>(const std::string&)> number;
  /// How many numbers a name stands for, where it is a known constant and all of them are this one;
  /// else 0.
  std::function<std::int64_t(const std::string&, double)> all;
  /// True for an initializer, and for a view of one.
  std::function<bool(const std::string&)> is_weight;
  /// True for what is a constant so far.
  std::function<bool(const std::string&)> is_constant;
};

struct OnnxFusion {
  std::string_view kind;             ///< the operator rule
  std::vector<std::uint32_t> nodes;  ///< replaced by it
  RuleArguments arguments;
  std::vector<std::int64_t> axes;    ///< a layer norm's, where they are an attribute
  std::string x, y;                  ///< its input and output
  std::vector<std::string> more;     ///< further inputs: the key and the value of an attention
  std::vector<std::string> weights;  ///< a normalization's weight and bias
};

/// The group that begins with a node, if one does. A layer norm is ReduceMean, Sub, Pow 2,
/// ReduceMean, Add, Sqrt, Div, perhaps Mul, Add; a group norm Reshape, InstanceNormalization by
/// ones and zeros, Reshape, Mul, Add; GELU Div (or Mul), Erf, Add 1, Mul, Mul 0.5 with the last two
/// in either order, or its form with Tanh; SiLU Sigmoid, Mul; Hardswish HardSigmoid, Mul; Mish
/// Softplus, Tanh, Mul; one over a root Sqrt, Div; an attention as PyTorch 2 exports its
/// scaled_dot_product_attention, Transpose, Mul, Mul, MatMul, perhaps Add of a mask, Softmax,
/// perhaps IsNaN and Where, perhaps Dropout, MatMul. No value between them may be read elsewhere.
/// O(1).
[[nodiscard]] std::optional<OnnxFusion> find_fusion(const OnnxGraph& graph, std::uint32_t node,
                                                    const OnnxReaders& readers);

}  // namespace plimsoll
