#include "workload/onnx/onnx_importer.hpp"
#include "workload/operators/layer_error.hpp"

#include <algorithm>

namespace plimsoll {

const std::map<std::string_view, OnnxImporter::Handler>& OnnxImporter::contributed_handlers() {
  using I = OnnxImporter;
  static const std::map<std::string_view, Handler> table = {
      {"GroupQueryAttention", &I::grouped_attention},
      {"RotaryEmbedding", &I::rotary_embedding},
      {"SimplifiedLayerNormalization", &I::rms_normalization},
  };
  return table;
}

const std::map<std::string_view, OnnxImporter::Handler>& OnnxImporter::handlers() {
  using I = OnnxImporter;
  static const std::map<std::string_view, Handler> table = {
      {"Abs", &I::activation},
      {"Add", &I::add},
      {"And", &I::only_constants},
      {"Attention", &I::attention},
      {"AveragePool", &I::pool},
      {"BatchNormalization", &I::batch_normalization},
      {"Cast", &I::cast},
      {"Ceil", &I::only_constants},
      {"Celu", &I::activation},
      {"Clip", &I::clip},
      {"Concat", &I::concat},
      {"Constant", &I::only_constants},
      {"ConstantOfShape", &I::only_constants},
      {"Conv", &I::conv},
      {"ConvTranspose", &I::conv_transpose},
      {"Cos", &I::activation},
      {"DepthToSpace", &I::depth_to_space},
      {"Div", &I::divide},
      {"Dropout", &I::dropout},
      {"Elu", &I::activation},
      {"Equal", &I::only_constants},
      {"Erf", &I::only_constants},
      {"Exp", &I::activation},
      {"Expand", &I::expand},
      {"Flatten", &I::flatten},
      {"Floor", &I::only_constants},
      {"Gather", &I::gather},
      {"Gelu", &I::activation},
      {"Gemm", &I::gemm},
      {"GlobalAveragePool", &I::global_average_pool},
      {"Greater", &I::only_constants},
      {"GroupNormalization", &I::group_normalization},
      {"HardSigmoid", &I::activation},
      {"HardSwish", &I::activation},
      {"Identity", &I::identity},
      {"InstanceNormalization", &I::instance_normalization},
      {"LSTM", &I::lstm},
      {"LayerNormalization", &I::layer_normalization},
      {"LeakyRelu", &I::activation},
      {"IsNaN", &I::only_constants},
      {"Less", &I::only_constants},
      {"Log", &I::activation},
      {"LogSoftmax", &I::activation},
      {"MatMul", &I::matmul},
      {"MaxPool", &I::pool},
      {"Mish", &I::activation},
      {"Mod", &I::only_constants},
      {"Mul", &I::multiply},
      {"Neg", &I::activation},
      {"Not", &I::only_constants},
      {"Or", &I::only_constants},
      {"Pad", &I::pad},
      {"Pow", &I::power},
      {"RMSNormalization", &I::rms_normalization},
      {"Range", &I::only_constants},
      {"Reciprocal", &I::activation},
      {"ReduceMean", &I::reduce},
      {"ReduceSum", &I::reduce},
      {"Relu", &I::activation},
      {"Reshape", &I::reshape},
      {"Resize", &I::resize},
      {"RotaryEmbedding", &I::rotary_embedding},
      {"Selu", &I::activation},
      {"Shape", &I::shape},
      {"Sigmoid", &I::activation},
      {"Sin", &I::activation},
      {"Slice", &I::slice},
      {"Softmax", &I::activation},
      {"Softplus", &I::activation},
      {"SpaceToDepth", &I::depth_to_space},
      {"Split", &I::split},
      {"Sqrt", &I::activation},
      {"Squeeze", &I::squeeze},
      {"Sub", &I::subtract},
      {"Tanh", &I::activation},
      {"Transpose", &I::transpose},
      {"Trilu", &I::only_constants},
      {"Unsqueeze", &I::squeeze},
      {"Upsample", &I::resize},
      {"Where", &I::where},
  };
  return table;
}

/// A dense layer where the right side is a weight, else a product of two values.
void OnnxImporter::matmul() {
  const OnnxValue x = network_input(0);
  if (input(1).is_constant()) {
    const OnnxValue& weight = weight_input(1);
    const std::string& output = node_->outputs.front();
    const std::vector<std::uint32_t>& readers = readers_[names_.at(output)];
    const bool is_read_once = readers.size() == 1 && outputs_[names_.at(output)] == 0;
    if (is_read_once && graph_.nodes[readers.front()].kind == "Add") {
      const OnnxNode& sum = graph_.nodes[readers.front()];
      const bool is_first = !sum.inputs.empty() && sum.inputs[0] == output;
      const OnnxValue* bias =
          sum.inputs.size() == 2 ? &value(sum.inputs[is_first ? 1 : 0]) : nullptr;
      if (bias != nullptr && bias->weight != kNoName && bias->rows_of == 0 &&
          !sum.outputs.empty() && bias->dims() == Dims{weight.dims().back()}) {
        done_[readers.front()] = true;
        return linear(x, weight, false, true, sum.outputs.front());
      }
    }
    return linear(x, weight, false, false, output);
  }
  const OnnxValue right = network_input(1);
  if (x.dims().size() != right.dims().size())
    throw LayerError("products of values of different rank are not supported: " +
                     to_text(x.dims()) + " and " + to_text(right.dims()));
  Dims dims = x.dims();
  dims.back() = right.dims().back();
  bind_result(apply("product", {}, {x.id, right.id}), std::move(dims), x.batch_axis);
}

void OnnxImporter::gemm() {
  const OnnxValue x = network_input(0);
  const auto is_one = [&](std::string_view name) {
    const OnnxAttribute* factor = node_->attribute(name);
    return factor == nullptr || factor->real == 1;
  };
  if (node_->integer("transA", 0) != 0 || !is_one("alpha") || !is_one("beta"))
    throw LayerError("`transA`, `alpha` and `beta` other than 0, 1 and 1 are not supported");
  linear(x, weight_input(1), node_->integer("transB", 0) != 0, has_input(2),
         node_->outputs.front());
}

/// `transposed`: the weight is [features, inputs].
/// PyTorch flattens all dimensions but the last one, where it takes a copy by one.
std::uint32_t OnnxImporter::as_rows(const OnnxValue& x) {
  const Dims dims = at_batch(x.dims(), x.batch_axis);
  const std::int64_t features = dims.back();
  if (dims.size() < 3 || viewed_strides(dims, x.strides, {size_of(dims) / features, features}))
    return x.id;
  // Before PyTorch 2 turned matrices are multiplied one by one (should_fold in LinearAlgebra.cpp).
  const bool are_turned = !graph_.is_of_pytorch_2 && dims.size() == 3 && x.strides.back() != 1 &&
                          x.strides.front() == dims[1] * dims[2];
  if (are_turned) return x.id;
  return apply("copy", {}, {x.id});
}

void OnnxImporter::linear(const OnnxValue& x, const OnnxValue& weight, bool transposed, bool bias,
                          const std::string& output) {
  const Dims& shape = weight.dims();
  const bool is_last = x.batch_axis + 1 == x.dims().size();
  // Of rows and features, a batch of one may lie in either: then it is in the rows.
  const bool is_one = file_batch_ == 1 && x.dims().size() > 1;
  if (shape.size() != 2 || shape[transposed ? 1 : 0] != x.dims().back() || (is_last && !is_one))
    throw LayerError("a weight " + to_text(shape) + " does not fit values " + to_text(x.dims()));
  const std::int64_t features = shape[transposed ? 0 : 1];
  const std::uint32_t y = apply("linear", {{"features", features}, {"bias", bias ? 1 : 0}},
                                {as_rows(x)}, weight.weight);
  Dims dims = x.dims();
  dims.back() = features;
  bind_result(output, y, std::move(dims), is_last ? x.batch_axis - 1 : x.batch_axis);
}

void OnnxImporter::add() {
  if (input(0).is_constant()) return add_constant(network_input(1), input(0));
  if (input(1).is_constant()) return add_constant(network_input(0), input(1));
  const OnnxValue x = network_input(0), skip = network_input(1);
  if (x.dims() != skip.dims())
    throw LayerError("a sum that broadcasts values is not supported: " + to_text(x.dims()) +
                     " and " + to_text(skip.dims()));
  bind_result(apply("add", {}, {x.id, skip.id}), x.dims(), x.batch_axis);
}

/// A number or a mask, learned positions, or a weight.
void OnnxImporter::add_constant(const OnnxValue& given, const OnnxValue& constant) {
  const OnnxValue x = given;
  if (broadcast(x.dims(), constant.dims()) != x.dims())
    throw LayerError("a sum that broadcasts values " + to_text(x.dims()) + " is not supported");
  const auto result = [&](std::string_view kind, const Arguments& arguments,
                          std::uint32_t weight = kNoName) {
    bind_result(apply(kind, arguments, {x.id}, weight), x.dims(), x.batch_axis);
  };
  if (constant.rows_of != 0) return add_rows(x, constant);
  if (constant.weight != kNoName) {
    const std::int64_t elements = size_of(constant.dims());
    const std::int64_t rows = constant.dims().empty() ? 1 : elements / constant.dims().back();
    return result("bias", {{"elements", elements}, {"rows", rows}}, constant.weight);
  }
  result("shift", {});
}

/// Of a table by ids that are there: one for each position, or, as types of tokens that nobody
/// gives are, one for each position of each sample.
void OnnxImporter::add_rows(const OnnxValue& x, const OnnxValue& rows) {
  const bool is_shared = size_of(rows.dims()) == size_of(builder_.dims(x.id));
  const std::int64_t positions = size_of(rows.dims()) / rows.dims().back();
  const bool are_types = rows.dims() == x.dims() && (!is_shared || rows.rows_of < positions);
  if (!is_shared && !are_types)
    throw LayerError("positions " + to_text(rows.dims()) + " do not fit values " +
                     to_text(x.dims()));
  bind_result(apply(are_types ? "segment_embedding" : "position_embedding",
                    {{"entries", rows.rows_of}, {"kept", rows.has_stored_ids ? 0 : 1}}, {x.id},
                    rows.weight),
              x.dims(), x.batch_axis);
}

void OnnxImporter::subtract() {
  if (input(1).is_constant()) return add_constant(network_input(0), input(1));
  if (!input(0).is_constant()) return combine("sub");
  const OnnxValue x = network_input(1);
  if (broadcast(x.dims(), input(0).dims()) != x.dims())
    throw LayerError("a difference that broadcasts values " + to_text(x.dims()) +
                     " is not supported");
  bind_result(apply("neg", {}, {x.id}), x.dims(), x.batch_axis);
}

/// Of two values of the network, the second of which may be broadcast.
void OnnxImporter::combine(std::string_view kind) {
  const OnnxValue x = network_input(0), other = network_input(1);
  if (broadcast(x.dims(), other.dims()) != x.dims())
    throw LayerError("it broadcasts its first input " + to_text(x.dims()) + " to " +
                     to_text(other.dims()) + ", which is not supported");
  bind_result(apply(kind, {}, {x.id, other.id}), x.dims(), x.batch_axis);
}

std::uint32_t OnnxImporter::scaled(std::uint32_t x, bool by_a_number) {
  return apply("scale", {{"kept", by_a_number && !graph_.is_of_pytorch_2 ? 1 : 0}}, {x});
}

void OnnxImporter::multiply() {
  const bool constant_first = input(0).is_constant();
  OnnxValue x = network_input(constant_first ? 1 : 0);
  const OnnxValue& other = input(constant_first ? 0 : 1);
  if (other.is_constant()) {
    const std::int64_t elements = size_of(other.dims());
    if (broadcast(x.dims(), other.dims()) != x.dims())
      throw LayerError("a product that broadcasts values " + to_text(x.dims()) +
                       " is not supported");
    const bool is_learned = other.weight != kNoName;
    const std::uint32_t y = is_learned
                                ? apply("gain", {{"elements", elements}}, {x.id}, other.weight)
                                : scaled(x.id, elements == 1);
    return bind_result(y, x.dims(), x.batch_axis);
  }
  OnnxValue factor = network_input(1);
  if (size_of(factor.dims()) > size_of(x.dims())) std::swap(factor, x);
  if (broadcast(x.dims(), factor.dims()) != x.dims())
    throw LayerError("a product that broadcasts both factors is not supported: " +
                     to_text(x.dims()) + " and " + to_text(factor.dims()));
  bind_result(apply("multiply", {}, {x.id, factor.id}), x.dims(), x.batch_axis);
}

void OnnxImporter::divide() {
  if (!input(0).is_constant() && !input(1).is_constant()) return combine("div");
  const bool inverts = input(0).is_constant();
  const OnnxValue x = network_input(inverts ? 1 : 0);
  if (size_of(input(inverts ? 0 : 1).dims()) != 1)
    throw LayerError("values can only be divided by a number or by values, and numbers by values");
  if (input(inverts ? 0 : 1).weight != kNoName)
    throw LayerError("a learned number in a division is not supported; multiply by its inverse");
  const std::uint32_t y = inverts ? apply("reciprocal", {}, {x.id}) : scaled(x.id, true);
  bind_result(y, x.dims(), x.batch_axis);
}

void OnnxImporter::power() {
  const OnnxValue x = network_input(0);
  if (!input(1).is_constant() || size_of(input(1).dims()) != 1)
    throw LayerError("only powers by a number are supported");
  bind_result(apply("pow", {}, {x.id}), x.dims(), x.batch_axis);
}

/// Operators of one input whose output has its shape.
void OnnxImporter::activation() {
  static const std::map<std::string_view, std::string_view> kinds = {
      {"Abs", "abs"},
      {"Celu", "elu"},
      {"Cos", "cos"},
      {"Elu", "elu"},
      {"Exp", "exp"},
      {"Gelu", "gelu"},
      {"HardSigmoid", "hard_sigmoid"},
      {"HardSwish", "hard_swish"},
      {"LeakyRelu", "leaky_relu"},
      {"Log", "log"},
      {"LogSoftmax", "log_softmax"},
      {"Mish", "mish"},
      {"Neg", "neg"},
      {"Reciprocal", "reciprocal"},
      {"Relu", "relu"},
      {"Selu", "elu"},
      {"Sigmoid", "sigmoid"},
      {"Sin", "sin"},
      {"Softmax", "softmax"},
      {"Softplus", "softplus"},
      {"Sqrt", "sqrt"},
      {"Tanh", "tanh"},
  };
  const OnnxValue x = network_input(0);
  const std::string_view kind = kinds.at(node_->kind);
  Arguments arguments;
  // A file does not tell. Most keep the same either way; the others are as modules are by default.
  const bool may_be = is_free(x) && kind != "leaky_relu" && kind != "elu";
  if (const auto& attributes = find_rule(kind)->attributes; !attributes.empty())
    arguments = {{"in_place", may_be ? kWherePossible : 0}};
  bind_result(apply(kind, arguments, {x.id}), x.dims(), x.batch_axis);
}

void OnnxImporter::clip() {
  const OnnxValue x = network_input(0);
  const auto bound = [&](std::size_t i, std::string_view name) -> std::optional<double> {
    if (has_input(i)) return input(i).is_constant() ? input(i).scalar() : std::nullopt;
    const OnnxAttribute* attribute = node_->attribute(name);
    return attribute == nullptr ? std::nullopt : std::optional(attribute->real);
  };
  if (bound(1, "min") != 0.0 || bound(2, "max") != 6.0)
    throw LayerError("bounds other than 0 and 6 (ReLU6) are not supported");
  bind_result(apply("relu6", {{"in_place", is_free(x) ? kWherePossible : 0}}, {x.id}), x.dims(),
              x.batch_axis);
}

void OnnxImporter::dropout() {
  const OnnxValue x = network_input(0);
  constexpr std::int64_t kModeInput = 12;  // the opset from which on the mode is an input
  const bool trains = graph_.opset < kModeInput || (has_input(2) && input(2).scalar() == 1.0);
  if (!trains) throw LayerError("it is in inference mode", kTrainingMode);
  const OnnxAttribute* ratio = node_->attribute("ratio");
  if ((ratio != nullptr && ratio->real == 0) || (has_input(1) && input(1).scalar() == 0.0))
    return identity();
  bind_result(apply("dropout", {}, {x.id}), x.dims(), x.batch_axis);
}

/// To means or sums over neighbouring dimensions, none of them the batch.
void OnnxImporter::reduce() {
  const OnnxValue x = network_input(0);
  const std::size_t rank = x.dims().size();
  std::set<std::size_t> axes;
  for (const std::int64_t axis : integers(1, "axes")) axes.insert(axis_of(axis, rank));
  if (axes.empty() || axes.contains(x.batch_axis) ||
      *axes.rbegin() - *axes.begin() + 1 != axes.size())
    throw LayerError("only neighbouring dimensions, without the batch, are supported");
  Dims dims;
  std::int64_t window = 1;
  std::size_t batch_axis = x.batch_axis;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (!axes.contains(axis)) {
      dims.push_back(x.dims()[axis]);
      continue;
    }
    window *= x.dims()[axis];
    if (node_->integer("keepdims", 1) != 0)
      dims.push_back(1);
    else if (axis < x.batch_axis)
      --batch_axis;
  }
  const std::int64_t means = size_of(builder_.dims(x.id)) / window;
  const std::uint32_t image = builder_.view(x.id, {means, 1, window});
  const bool is_mean = node_->kind == "ReduceMean";
  bind_result(is_mean ? averaged(image) : apply("global_sum", {}, {image}), std::move(dims),
              batch_axis);
}

/// As rows: all before the dimension, and all from it on.
/// A learned position before, or behind, those of a sequence.
bool OnnxImporter::join_token() {
  if (node_->inputs.size() != 2) return false;
  const bool is_first = input(0).is_constant();
  const OnnxValue& token = input(is_first ? 0 : 1);
  if (!token.is_repeated_weight || !input(is_first ? 1 : 0).is_network()) return false;
  const OnnxValue x = network_input(is_first ? 1 : 0);
  Dims dims = x.dims();
  if (dims.size() != 3 || x.batch_axis != 0 || token.dims() != Dims{dims[0], 1, dims[2]} ||
      axis_of(node_->integer("axis", 0), 3) != 1)
    return false;
  ++dims[1];
  bind_result(apply("class_token", {}, {x.id}), std::move(dims), 0);
  return true;
}

void OnnxImporter::concat() {
  if (join_token()) return;
  Dims dims = network_input(0).dims();
  const std::size_t axis = axis_of(node_->integer("axis", 0), dims.size());
  const std::size_t batch_axis = network_input(0).batch_axis;
  if (axis == batch_axis) throw LayerError("it joins batches");
  const auto middle = static_cast<std::ptrdiff_t>(axis);
  const std::int64_t in_rows = batch_axis < axis ? file_batch_ : 1;
  std::vector<std::uint32_t> parts;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < node_->inputs.size(); ++i) {
    const OnnxValue& part = network_input(i);
    Dims expected = dims;
    if (part.dims().size() == dims.size()) expected[axis] = part.dims()[axis];
    if (part.dims() != expected || part.batch_axis != batch_axis)
      throw LayerError("its parts " + to_text(dims) + " and " + to_text(part.dims()) +
                       " differ in more than one dimension");
    sum += part.dims()[axis];
    const Dims rows(expected.begin(), expected.begin() + middle);
    const Dims columns(expected.begin() + middle, expected.end());
    parts.push_back(builder_.view(
        part.id, {size_of(rows) / in_rows, size_of(columns) / (file_batch_ / in_rows)}));
  }
  dims[axis] = sum;
  bind_result(apply("concat", {}, std::move(parts)), std::move(dims), batch_axis);
}

/// A mask that fills values with a number: masked_fill. The mask counts before it is broadcast.
void OnnxImporter::where() {
  const OnnxValue& mask = input(0);
  const bool fills_first = input(1).is_constant();
  const OnnxValue x = network_input(fills_first ? 2 : 1);
  const OnnxValue& number = input(fills_first ? 1 : 2);
  if (!mask.is_constant() || !number.is_constant() || size_of(number.dims()) != 1)
    throw LayerError("only a constant mask that fills values with a number is supported");
  if (broadcast(mask.dims(), x.dims()) != x.dims())
    throw LayerError("a mask " + to_text(mask.dims()) + " does not fit values " +
                     to_text(x.dims()));
  Dims dims = mask.dims();
  while (dims.size() < 2) dims.insert(dims.begin(), 1);
  const std::int64_t columns = dims.back(), rows = dims[dims.size() - 2];
  const std::int64_t heads = size_of(Dims(dims.begin(), dims.end() - 2));
  const Arguments arguments = {
      {"rows", rows}, {"columns", columns}, {"heads", heads}, {"kept", mask.is_stored ? 0 : 1}};
  bind_result(apply("masked_fill", arguments, {x.id}), x.dims(), x.batch_axis);
}

}  // namespace plimsoll
