#include "workload/onnx/onnx_values.hpp"
#include "workload/operators/layer_error.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace plimsoll {
namespace {

using Tensors = std::vector<const OnnxTensor*>;

/// The most numbers of one constant that are computed.
constexpr std::size_t kMaxConstantNumbers = 16'384;
constexpr std::size_t kMaxConstantRank = 16;

bool is_integer(const OnnxTensor& tensor) {
  return tensor.type == OnnxType::integer || tensor.type == OnnxType::boolean;
}

OnnxTensor of_shape(Dims dims, OnnxType type) {
  if (dims.size() > kMaxConstantRank) throw LayerError("a constant has more than 16 dimensions");
  for (const std::int64_t dim : dims)
    if (dim < 0) throw LayerError("a constant of shape " + to_text(dims));
  static_cast<void>(size_of(dims));
  OnnxTensor tensor;
  tensor.dims = std::move(dims);
  tensor.type = type;
  return tensor;
}

OnnxTensor list_of(std::vector<std::int64_t> numbers) {
  OnnxTensor tensor = of_shape({static_cast<std::int64_t>(numbers.size())}, OnnxType::integer);
  tensor.is_known = true;
  tensor.integers = std::move(numbers);
  return tensor;
}

/// The same numbers in another shape.
OnnxTensor reshaped(const OnnxTensor& from, Dims dims) {
  OnnxTensor tensor = from;
  tensor.dims = std::move(dims);
  return tensor;
}

const std::vector<std::int64_t>& known_integers(const OnnxTensor& tensor, const char* what) {
  if (!tensor.is_known || !is_integer(tensor))
    throw LayerError(std::string("its ") + what + " must be known integers");
  return tensor.integers;
}

/// Axes as an input (from opset 13 on) or as an attribute.
std::vector<std::int64_t> axes_of(const OnnxNode& node, const Tensors& inputs) {
  if (inputs.size() > 1) return known_integers(*inputs[1], "axes");
  const OnnxAttribute* axes = node.attribute("axes");
  return axes == nullptr ? std::vector<std::int64_t>{} : axes->integers;
}

OnnxTensor unsqueezed(const OnnxNode& node, const Tensors& inputs) {
  const std::vector<std::int64_t> axes = axes_of(node, inputs);
  const std::size_t rank = inputs[0]->dims.size() + axes.size();
  if (rank > kMaxConstantRank) throw LayerError("a constant has more than 16 dimensions");
  std::vector<bool> is_new(rank, false);
  for (const std::int64_t axis : axes) is_new[axis_of(axis, rank)] = true;
  Dims dims;
  std::size_t next = 0;
  for (const bool fresh : is_new) {
    if (!fresh && next == inputs[0]->dims.size()) throw LayerError("an axis is named twice");
    dims.push_back(fresh ? 1 : inputs[0]->dims[next++]);
  }
  return reshaped(*inputs[0], std::move(dims));
}

OnnxTensor squeezed(const OnnxNode& node, const Tensors& inputs) {
  const std::vector<std::int64_t> axes = axes_of(node, inputs);
  const Dims& from = inputs[0]->dims;
  std::vector<bool> goes(from.size(), axes.empty());
  for (const std::int64_t axis : axes) goes[axis_of(axis, from.size())] = true;
  Dims dims;
  for (std::size_t i = 0; i < from.size(); ++i)
    if (!goes[i] || from[i] != 1) dims.push_back(from[i]);
  return reshaped(*inputs[0], std::move(dims));
}

OnnxTensor concatenated(const OnnxNode& node, const Tensors& inputs) {
  OnnxTensor joined = of_shape(inputs[0]->dims, inputs[0]->type);
  const std::size_t rank = joined.dims.size(), axis = axis_of(node.integer("axis", 0), rank);
  joined.dims[axis] = 0;
  joined.is_known = rank == 1;
  for (const OnnxTensor* part : inputs) {
    if (part->dims.size() != rank) throw LayerError("its parts differ in rank");
    joined.dims[axis] += part->dims[axis];
    joined.is_known = joined.is_known && part->is_known && is_integer(*part) == is_integer(joined);
    if (!joined.is_known) continue;
    joined.integers.insert(joined.integers.end(), part->integers.begin(), part->integers.end());
    joined.reals.insert(joined.reals.end(), part->reals.begin(), part->reals.end());
  }
  static_cast<void>(size_of(joined.dims));
  if (joined.integers.size() + joined.reals.size() <= kMaxConstantNumbers && joined.is_known)
    return joined;
  return of_shape(std::move(joined.dims), joined.type);
}

/// Rows of the first dimension (or any other, where the numbers do not matter).
OnnxTensor gathered(const OnnxNode& node, const Tensors& inputs) {
  if (inputs.size() != 2) throw LayerError("expected data and indices");
  const Dims& from = inputs[0]->dims;
  const std::size_t axis = axis_of(node.integer("axis", 0), from.size());
  Dims dims(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(axis));
  dims.insert(dims.end(), inputs[1]->dims.begin(), inputs[1]->dims.end());
  dims.insert(dims.end(), from.begin() + static_cast<std::ptrdiff_t>(axis) + 1, from.end());
  OnnxTensor rows = of_shape(std::move(dims), inputs[0]->type);
  if (from.size() != 1 || !inputs[0]->is_known || !is_integer(*inputs[0]) || !inputs[1]->is_known)
    return rows;
  for (const std::int64_t index : known_integers(*inputs[1], "indices"))
    rows.integers.push_back(inputs[0]->integers[axis_of(index, inputs[0]->integers.size())]);
  rows.is_known = true;
  return rows;
}

std::int64_t divided(std::int64_t a, std::int64_t b) {
  if (b == 0 || b == -1) throw LayerError("a division by " + std::to_string(b));
  return a / b;
}

/// With the sign of the divisor, as ONNX has it of integers.
std::int64_t remainder(std::int64_t a, std::int64_t b) {
  if (b == 0) throw LayerError("a remainder of a division by 0");
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/// Integers of shape arithmetic are small: what is not, is not known.
std::optional<std::int64_t> combined(const std::string& kind, std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  const bool small = std::abs(a / 2) < kMost / 2 && std::abs(b / 2) < kMost / 2;
  if (kind == "Equal") return a == b;
  if (kind == "Greater") return a > b;
  if (kind == "Less") return a < b;
  if (kind == "And") return a != 0 && b != 0;
  if (kind == "Or") return a != 0 || b != 0;
  if (!small) return std::nullopt;
  if (kind == "Add") return a + b;
  if (kind == "Sub") return a - b;
  if (kind == "Mul") return a * b;
  if (kind == "Div") return divided(a, b);
  if (kind == "Mod") return remainder(a, b);
  return std::nullopt;
}

OnnxTensor arithmetic(const OnnxNode& node, const Tensors& inputs) {
  if (inputs.size() != 2) throw LayerError("expected two inputs");
  const OnnxTensor &a = *inputs[0], &b = *inputs[1];
  const bool compares = node.kind == "Equal" || node.kind == "Greater" || node.kind == "Less";
  OnnxTensor result = of_shape(broadcast(a.dims, b.dims), compares ? OnnxType::boolean : a.type);
  const std::size_t n = a.integers.size(), m = b.integers.size();
  if (!a.is_known || !b.is_known || !is_integer(a) || !is_integer(b) ||
      (n != m && n != 1 && m != 1) || n == 0 || m == 0 ||
      size_of(result.dims) != static_cast<std::int64_t>(std::max(n, m)))
    return result;
  for (std::size_t i = 0; i < std::max(n, m); ++i) {
    const auto number = combined(node.kind, a.integers[n == 1 ? 0 : i], b.integers[m == 1 ? 0 : i]);
    if (!number) return of_shape(result.dims, result.type);
    result.integers.push_back(*number);
  }
  result.is_known = true;
  return result;
}

OnnxTensor chosen(const Tensors& inputs) {
  if (inputs.size() != 3) throw LayerError("expected three inputs");
  const OnnxTensor &condition = *inputs[0], &yes = *inputs[1], &no = *inputs[2];
  OnnxTensor result = of_shape(broadcast(condition.dims, broadcast(yes.dims, no.dims)), yes.type);
  for (const OnnxTensor* input : inputs)
    if (!input->is_known || !is_integer(*input) || input->integers.size() != yes.integers.size())
      return result;
  for (std::size_t i = 0; i < yes.integers.size(); ++i)
    result.integers.push_back(condition.integers[i] != 0 ? yes.integers[i] : no.integers[i]);
  result.is_known = size_of(result.dims) == static_cast<std::int64_t>(result.integers.size());
  return result;
}

OnnxTensor filled(const OnnxNode& node, const Tensors& inputs) {
  const OnnxAttribute* value = node.attribute("value");
  const bool given = value != nullptr && value->tensor;
  OnnxTensor tensor =
      of_shape(known_integers(*inputs[0], "shape"), given ? value->tensor->type : OnnxType::fp32);
  const std::int64_t size = size_of(tensor.dims);
  if (!given || !is_integer(*value->tensor) || value->tensor->integers.size() != 1 ||
      std::cmp_greater(size, kMaxConstantNumbers))
    return tensor;
  tensor.integers.assign(static_cast<std::size_t>(size), value->tensor->integers.front());
  tensor.is_known = true;
  return tensor;
}

OnnxTensor ranged(const Tensors& inputs) {
  if (inputs.size() != 3) throw LayerError("expected start, limit and step");
  std::vector<std::int64_t> numbers;
  for (const OnnxTensor* input : inputs) {
    const auto& number = known_integers(*input, "start, limit and step");
    if (number.size() != 1 || std::abs(number[0] / 2) > (std::int64_t{1} << 40))
      throw LayerError("its start, limit and step are no numbers of a usual size");
    numbers.push_back(number[0]);
  }
  if (numbers[2] <= 0) throw LayerError("expected a step above 0");
  const std::int64_t count =
      std::max<std::int64_t>((numbers[1] - numbers[0] + numbers[2] - 1) / numbers[2], 0);
  if (std::cmp_greater(count, kMaxConstantNumbers)) return of_shape({count}, OnnxType::integer);
  std::vector<std::int64_t> list;
  for (std::int64_t i = 0; i < count; ++i) list.push_back(numbers[0] + i * numbers[2]);
  return list_of(std::move(list));
}

OnnxTensor expanded(const Tensors& inputs) {
  if (inputs.size() != 2) throw LayerError("expected data and a shape");
  const Dims dims = broadcast(inputs[0]->dims, known_integers(*inputs[1], "shape"));
  if (dims == inputs[0]->dims) return *inputs[0];
  return of_shape(dims, inputs[0]->type);
}

OnnxTensor cast(const OnnxNode& node, const OnnxTensor& from) {
  constexpr std::int64_t kBoolean = 9, kInt32 = 6, kInt64 = 7, kFloat = 1;  // TensorProto.DataType
  const std::int64_t to = node.integer("to", 0);
  const bool whole = to == kInt32 || to == kInt64 || to == kBoolean;
  OnnxTensor tensor = of_shape(from.dims, to == kBoolean ? OnnxType::boolean
                                          : whole        ? OnnxType::integer
                                          : to == kFloat ? OnnxType::fp32
                                                         : OnnxType::other);
  if (!from.is_known || !whole || !is_integer(from)) return tensor;
  tensor.integers = from.integers;
  if (to == kBoolean)
    for (std::int64_t& number : tensor.integers) number = number != 0;
  tensor.is_known = true;
  return tensor;
}

}  // namespace

OnnxTensor strided_part(const OnnxTensor& from, Dims dims, std::int64_t first,
                        const std::vector<std::int64_t>& strides) {
  OnnxTensor part = of_shape(std::move(dims), from.type);
  const std::int64_t size = size_of(part.dims);
  if (!from.is_known || !is_integer(from) || std::cmp_greater(size, kMaxConstantNumbers))
    return part;
  for (std::int64_t i = 0; i < size; ++i) {
    std::int64_t at = first, left = i;
    for (std::size_t axis = part.dims.size(); axis-- > 0; left /= part.dims[axis])
      at += left % part.dims[axis] * strides[axis];
    part.integers.push_back(from.integers.at(static_cast<std::size_t>(at)));
  }
  part.is_known = true;
  return part;
}

namespace {

bool is_arithmetic(const std::string& kind) {
  static constexpr std::string_view kKinds[] = {"Add",   "Sub",     "Mul",  "Div", "Pow", "Mod",
                                                "Equal", "Greater", "Less", "And", "Or"};
  return std::ranges::find(kKinds, kind) != std::end(kKinds);
}

/// Operators that change numbers and leave the shape.
bool keeps_shape(const std::string& kind) {
  static constexpr std::string_view kKinds[] = {"Sqrt", "Neg",        "Not", "Floor",
                                                "Ceil", "Exp",        "Log", "Trilu",
                                                "Abs",  "Reciprocal", "Sin", "Cos"};
  return std::ranges::find(kKinds, kind) != std::end(kKinds);
}

}  // namespace

std::optional<std::vector<OnnxTensor>> fold(const OnnxNode& node, const Tensors& inputs) {
  const auto one = [](OnnxTensor tensor) { return std::vector<OnnxTensor>{std::move(tensor)}; };
  if (inputs.empty()) return std::nullopt;
  const std::string& kind = node.kind;
  if (kind == "Identity") return one(*inputs[0]);
  if (kind == "Unsqueeze") return one(unsqueezed(node, inputs));
  if (kind == "Squeeze") return one(squeezed(node, inputs));
  if (kind == "Concat") return one(concatenated(node, inputs));
  if (kind == "Gather") return one(gathered(node, inputs));
  if (kind == "Cast") return one(cast(node, *inputs[0]));
  if (kind == "Where") return one(chosen(inputs));
  if (kind == "ConstantOfShape") return one(filled(node, inputs));
  if (kind == "Range") return one(ranged(inputs));
  if (kind == "Expand") return one(expanded(inputs));
  if (is_arithmetic(kind)) return one(arithmetic(node, inputs));
  if (keeps_shape(kind)) return one(of_shape(inputs[0]->dims, inputs[0]->type));
  return std::nullopt;
}

}  // namespace plimsoll
