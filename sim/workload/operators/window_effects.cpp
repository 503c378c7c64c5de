#include "workload/operators/convolution_copies.hpp"
#include "workload/operators/layer_error.hpp"
#include "workload/operators/operator_effects.hpp"

#include <algorithm>
#include <limits>

namespace plimsoll::effect {
namespace {

constexpr std::int64_t kMostPadding = 1'000'000'000;

/// A window along one axis.
struct Window {
  std::int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;

  [[nodiscard]] std::int64_t reach() const { return dilation * (kernel - 1) + 1; }
};

/// A number along the width, that along the height where none is given.
std::int64_t along_width(const RuleCall& call, std::string_view name, std::int64_t height) {
  const std::int64_t width = call[name];
  return width == kAsHeight ? height : width;
}

void check(const Window& window) {
  if (window.kernel < 1 || window.stride < 1 || window.dilation < 1)
    throw LayerError("kernel, stride and dilation must be at least 1");
}

/// Output size of a window that slides over `size` positions. `ceil`: a last window may reach over
/// the end, unless it would begin in the padding there.
std::int64_t windows(std::int64_t size, const Window& window, bool ceil = false) {
  check(window);
  const std::int64_t room = size + 2 * window.padding - window.reach();
  if (room < 0)
    throw LayerError("a window of " + std::to_string(window.reach()) + " does not fit into " +
                     std::to_string(size) + " positions with padding " +
                     std::to_string(window.padding));
  const std::int64_t whole = room / window.stride + 1;
  const bool begins_inside = whole * window.stride < size + window.padding;
  return whole + (ceil && room % window.stride != 0 && begins_inside ? 1 : 0);
}

struct Windows {
  Window height, width;

  /// Windows of one element at every position: the image is its own matrix.
  [[nodiscard]] bool are_matrices() const {
    const auto is_one = [](const Window& w) {
      return w.kernel == 1 && w.stride == 1 && w.padding == 0;
    };
    return is_one(height) && is_one(width);
  }
};

Windows convolution_windows(const RuleCall& call) {
  Windows both;
  both.height = {call["kernel"], call["stride"], call["padding"], call["dilation"]};
  both.width = {along_width(call, "kernel_width", both.height.kernel),
                along_width(call, "stride_width", both.height.stride),
                along_width(call, "padding_width", both.height.padding),
                along_width(call, "dilation_width", both.height.dilation)};
  return both;
}

void check_groups(const RuleCall& call, const Dims& x) {
  const std::int64_t channels = call["channels"], groups = call["groups"];
  if (groups < 1 || x[0] % groups != 0 || channels % groups != 0)
    throw LayerError(std::to_string(groups) + " groups do not divide " + std::to_string(x[0]) +
                     " input and " + std::to_string(channels) + " output channels");
}

std::uint32_t narrowed(std::int64_t size) {
  return static_cast<std::uint32_t>(
      std::min<std::int64_t>(size, std::numeric_limits<std::uint32_t>::max()));
}

ConvolutionShape shape_of(const Windows& both, std::int64_t groups, const Dims& weight) {
  const auto moves_on = [](const Window& w) { return w.stride > 1; };
  const auto has_gaps = [](const Window& w) { return w.kernel > 1 && w.dilation > 1; };
  if (groups > 1) return weight[1] == 1 ? ConvolutionShape::depthwise : ConvolutionShape::direct;
  if (moves_on(both.height) || moves_on(both.width) || has_gaps(both.height) ||
      has_gaps(both.width))
    return ConvolutionShape::direct;
  if (both.height.kernel == 1 && both.width.kernel == 1) return ConvolutionShape::pointwise;
  return ConvolutionShape::transformable;
}

KernelShape convolution_kernel(const Windows& both, std::int64_t groups, const Dims& weight) {
  const std::int64_t window = weight[2] * weight[3];
  KernelShape kernel;
  kernel.convolution = shape_of(both, groups, weight);
  if (groups == 1) {
    kernel.outputs = narrowed(weight[0]);
    kernel.inputs = narrowed(weight[1]);
    kernel.window = narrowed(window);
  }
  return kernel;
}

/// The windows at these positions ([channels, rows, columns]) as a matrix, or the weight in another
/// layout, whichever is more.
Bytes lowering(const RuleCall& call, const Dims& weight, const Dims& positions) {
  Dims matrix = positions;
  matrix.insert(matrix.end(), {weight[2], weight[3]});
  return std::max(call.bytes(matrix), Bytes{call.element} * elements_of(weight).count());
}

void add_scratch(OperatorEffect& effect, Bytes lowering, const ConvolutionCopies& copies) {
  effect.forward_scratch = {lowering, copies.forward};
  effect.input_scratch = {lowering, copies.of_input};
  effect.weight_scratch = {lowering, copies.of_weight};
  effect.backward_scratch = {lowering, copies.of_both};
}

CpuConvolution on_cpu(const RuleCall& call, const Dims& output, const Windows& both) {
  const Dims& x = call.inputs.front();
  CpuConvolution it;
  it.input = {x[0], elements_of({x[1], x[2]}).count()};
  it.output = {output[0], elements_of({output[1], output[2]}).count()};
  it.window_height = both.height.kernel;
  it.window_width = both.width.kernel;
  it.groups = call["groups"];
  it.samples = call.batch;
  it.element = call.element;
  it.has_bias = call["bias"] != 0;
  it.are_matrices = both.are_matrices();
  return it;
}

OperatorEffect pooling(const RuleCall& call, Dims output, std::int64_t window) {
  OperatorEffect effect;
  effect.output = std::move(output);
  effect.forward_flops = flops(count(call, effect.output), window);
  effect.backward_flops = effect.forward_flops;
  effect.keeps_inputs = true;
  return effect;
}

/// y of another size, of which each number is made of a few of x.
OperatorEffect resized(const RuleCall& call, Dims output) {
  OperatorEffect effect;
  effect.output = std::move(output);
  effect.forward_flops = effect.backward_flops = flops(count(call, effect.output), 1);
  return effect;
}

}  // namespace

OperatorEffect conv2d(const RuleCall& call) {
  const Dims& x = image(call);
  check_groups(call, x);
  const Windows both = convolution_windows(call);
  const std::int64_t channels = call["channels"];
  OperatorEffect effect;
  effect.output = {channels, windows(x[1], both.height), windows(x[2], both.width)};
  const Dims weight = {channels, x[0] / call["groups"], both.height.kernel, both.width.kernel};
  const Elements window = elements_of({weight[1], weight[2], weight[3]});
  effect.parameters.emplace_back("weight", weight);
  multiply(effect, count(call, effect.output) * window.count());
  if (call["bias"] != 0) effect.parameters.emplace_back("bias", Dims{channels});
  effect.keeps_inputs = true;
  effect.inputs = OperatorEffect::Inputs::weight;
  const Dims positions = {x[0], effect.output[1], effect.output[2]};
  add_scratch(effect, both.are_matrices() ? Bytes{} : lowering(call, weight, positions),
              copies_of(on_cpu(call, effect.output, both)));
  effect.kernel = convolution_kernel(both, call["groups"], weight);
  effect.kernel.has_bias = call["bias"] != 0;
  effect.keeps_weight = true;
  return effect;
}

/// The backward of a convolution as a forward: every input position is spread over a window.
OperatorEffect conv_transpose2d(const RuleCall& call) {
  const Dims& x = image(call);
  check_groups(call, x);
  const Windows both = convolution_windows(call);
  const std::int64_t channels = call["channels"];
  const auto spread = [](std::int64_t size, const Window& window, std::int64_t added) {
    check(window);
    return elements_of({size - 1, window.stride}).count() + window.reach() - 2 * window.padding +
           added;
  };
  const std::int64_t added = call["output_padding"];
  OperatorEffect effect;
  effect.output = {channels, spread(x[1], both.height, added),
                   spread(x[2], both.width, along_width(call, "output_padding_width", added))};
  const Dims weight = {x[0], channels / call["groups"], both.height.kernel, both.width.kernel};
  const Elements window = elements_of({weight[1], weight[2], weight[3]});
  effect.parameters.emplace_back("weight", weight);
  multiply(effect, count(call, x) * window.count());
  if (call["bias"] != 0) effect.parameters.emplace_back("bias", Dims{channels});
  effect.keeps_inputs = true;
  effect.inputs = OperatorEffect::Inputs::weight;
  CpuConvolution transposed = on_cpu(call, effect.output, both);
  transposed.is_transposed = true;
  add_scratch(effect, lowering(call, weight, {channels, x[1], x[2]}), copies_of(transposed));
  effect.kernel.convolution = shape_of(both, call["groups"], weight);
  effect.kernel.has_bias = call["bias"] != 0;
  effect.keeps_weight = true;
  return effect;
}

OperatorEffect avg_pool(const RuleCall& call) {
  const Dims& x = image(call);
  Windows both;
  both.height.kernel = call["kernel"];
  both.width.kernel = along_width(call, "kernel_width", both.height.kernel);
  both.height.padding = call["padding"];
  both.width.padding = along_width(call, "padding_width", both.height.padding);
  both.height.stride = call["stride"] != 0 ? call["stride"] : both.height.kernel;
  const std::int64_t stride_width = along_width(call, "stride_width", call["stride"]);
  both.width.stride = stride_width != 0 ? stride_width : both.width.kernel;
  for (const Window& window : {both.height, both.width})
    if (window.padding > window.kernel / 2)
      throw LayerError("padding is more than half of the kernel");
  const bool ceil = call["ceil"] != 0;
  Dims output = {x[0], windows(x[1], both.height, ceil), windows(x[2], both.width, ceil)};
  return pooling(call, std::move(output),
                 elements_of({both.height.kernel, both.width.kernel}).count());
}

OperatorEffect max_pool(const RuleCall& call) {
  OperatorEffect effect = avg_pool(call);
  effect.extras = {{"indices", call.over_batch(effect.output), ElementType::index}};
  return effect;
}

/// Puts every element where the pooling found it, zeros elsewhere; the indices are the pooling's.
OperatorEffect max_unpool(const RuleCall& call) {
  const Dims& x = image(call);
  require(x == call.pooled_to, call, "what the pooling made, " + to_text(call.pooled_to));
  OperatorEffect effect;
  effect.output = call.pooled_from;
  effect.forward_flops = effect.backward_flops = flops(count(call, x), 1);
  return effect;
}

OperatorEffect adaptive_avg_pool(const RuleCall& call) {
  const Dims& x = image(call);
  const std::int64_t size = call["size"];
  if (size < 1) throw LayerError("size must be at least 1");
  const std::int64_t window = elements_of({x[1] / size + 1, x[2] / size + 1}).count();
  return pooling(call, {x[0], size, size}, window);
}

namespace {

OperatorEffect to_a_vector(const RuleCall& call, bool keeps_inputs) {
  const Dims& x = call.inputs.front();
  const bool is_image = x.size() == 3;
  require(is_image || x.size() == 2, call, "an image or a sequence");
  const std::int64_t places = is_image ? elements_of({x[1], x[2]}).count() : x[0];
  OperatorEffect effect = pooling(call, {channels_of(x)}, places);
  effect.keeps_inputs = keeps_inputs;
  return effect;
}

}  // namespace

OperatorEffect global_sum(const RuleCall& call) {
  return to_a_vector(call, false);
}

OperatorEffect global_avg_pool(const RuleCall& call) {
  return to_a_vector(call, call["kept"] != 0);
}

/// Nearest or linear; its backward needs only sizes.
OperatorEffect upsample(const RuleCall& call) {
  const Dims& x = image(call);
  const std::int64_t factor = call["factor"];
  if (factor < 1) throw LayerError("factor must be at least 1");
  return resized(call,
                 {x[0], elements_of({x[1], factor}).count(), elements_of({x[2], factor}).count()});
}

OperatorEffect resize(const RuleCall& call) {
  if (call["height"] < 1 || call["width"] < 1)
    throw LayerError("height and width must be at least 1");
  return resized(call, {image(call)[0], call["height"], call["width"]});
}

OperatorEffect pad(const RuleCall& call) {
  Dims output = image(call);
  for (const std::string_view side : {"top", "bottom", "left", "right"}) {
    if (call[side] < 0 || call[side] > kMostPadding)
      throw LayerError(std::string(side) + " must be from 0 to 1e9");
    output[side == "top" || side == "bottom" ? 1 : 2] += call[side];
  }
  return resized(call, std::move(output));
}

}  // namespace plimsoll::effect
