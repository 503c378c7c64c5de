#include "workload/onnx/onnx_importer.hpp"
#include "workload/operators/layer_error.hpp"

#include <algorithm>
#include <cmath>

namespace plimsoll {
namespace {

/// Padding before and after must agree; for two spatial dimensions [top, left, bottom, right].
std::int64_t even_padding(const std::vector<std::int64_t>& pads, std::size_t axis,
                          std::size_t spatial) {
  if (pads.empty()) return 0;
  if (pads.size() != 2 * spatial) throw LayerError("expected two pads a spatial dimension");
  if (pads[axis] != pads[axis + spatial])
    throw LayerError("a padding that differs before and after is not supported");
  return pads[axis];
}

/// A number of a window, kept within what the rules take.
std::int64_t at(const std::vector<std::int64_t>& list, std::size_t i, std::int64_t fallback) {
  const std::int64_t number = i < list.size() ? list[i] : fallback;
  if (number < 0 || number > kMaxBatch)
    throw LayerError("found " + std::to_string(number) + ", expected a number from 0 to 1e9");
  return number;
}

}  // namespace

std::uint32_t OnnxImporter::as_image(const OnnxValue& value) {
  const Dims& dims = value.dims();
  if (value.batch_axis != 0 || dims.size() < 3 || dims.size() > 4)
    throw LayerError(
        "expected values [batch, channels, height, width] or [batch, channels, "
        "positions], found " +
        to_text(dims));
  return builder_.view(value.id, {dims[1], dims.size() == 4 ? dims[2] : 1, dims.back()});
}

/// Strides and padding of a window; for one spatial dimension it has height 1.
OnnxImporter::Arguments OnnxImporter::windows(std::size_t spatial, const Dims& kernel,
                                              std::int64_t padding, std::int64_t padding_width) {
  if (kernel.size() != spatial)
    throw LayerError("expected a kernel of " + std::to_string(spatial) + " dimensions, found " +
                     to_text(kernel));
  const OnnxAttribute* automatic = node_->attribute("auto_pad");
  if (automatic != nullptr && automatic->text.starts_with("SAME"))
    throw LayerError("`auto_pad` is not supported; export the model with explicit pads");
  const auto strides = integers(node_->inputs.size(), "strides");
  const auto pads = integers(node_->inputs.size(), "pads");
  const bool is_plane = spatial == 2;
  const std::size_t last = spatial - 1;
  return {{"kernel", is_plane ? at(kernel, 0, 1) : 1},
          {"kernel_width", at(kernel, last, 1)},
          {"stride", is_plane ? at(strides, 0, 1) : 1},
          {"stride_width", at(strides, last, 1)},
          {"padding", padding + (is_plane ? at({even_padding(pads, 0, spatial)}, 0, 0) : 0)},
          {"padding_width", padding_width + at({even_padding(pads, last, spatial)}, 0, 0)}};
}

OnnxImporter::Arguments OnnxImporter::convolution(const OnnxValue& x, const OnnxValue& weight,
                                                  std::int64_t channels) {
  const Dims& shape = weight.dims();
  if (shape.size() != x.dims().size() || shape.size() < 3)
    throw LayerError("a weight " + to_text(shape) + " does not fit values " + to_text(x.dims()));
  const std::size_t spatial = shape.size() - 2;
  Arguments arguments = windows(spatial, Dims(shape.begin() + 2, shape.end()), 0, 0);
  const auto dilations = integers(node_->inputs.size(), "dilations");
  arguments.insert(arguments.end(), {{"channels", at({channels}, 0, 0)},
                                     {"groups", at({node_->integer("group", 1)}, 0, 1)},
                                     {"dilation", spatial == 2 ? at(dilations, 0, 1) : 1},
                                     {"dilation_width", at(dilations, spatial - 1, 1)},
                                     {"bias", has_input(2) ? 1 : 0}});
  return arguments;
}

void OnnxImporter::conv() {
  const OnnxValue x = network_input(0);
  const OnnxValue& weight = weight_input(1);
  const std::uint32_t image = as_image(x);
  const std::int64_t channels = weight.dims().empty() ? 0 : weight.dims().front();
  const Arguments arguments = convolution(x, weight, channels);
  const std::int64_t groups = std::max<std::int64_t>(node_->integer("group", 1), 1);
  if (weight.dims()[1] != x.dims()[1] / groups)
    throw LayerError("a weight " + to_text(weight.dims()) + " does not fit values " +
                     to_text(x.dims()));
  const std::uint32_t y = apply("conv2d", arguments, {image}, weight.weight);
  const Dims& made = builder_.dims(y);
  Dims dims = {x.dims()[0], made[0], made[1], made[2]};
  if (x.dims().size() == 3) dims.erase(dims.begin() + 2);
  bind_result(y, std::move(dims), 0);
}

void OnnxImporter::conv_transpose() {
  const OnnxValue x = network_input(0);
  const OnnxValue& weight = weight_input(1);
  const std::uint32_t image = as_image(x);
  if (x.dims().size() != 4 || weight.dims().size() != 4 || weight.dims()[0] != x.dims()[1])
    throw LayerError("a weight " + to_text(weight.dims()) + " does not fit values " +
                     to_text(x.dims()));
  if (node_->attribute("output_shape") != nullptr)
    throw LayerError("`output_shape` is not supported; export the model with explicit pads");
  const std::int64_t groups = at({node_->integer("group", 1)}, 0, 1);
  Arguments arguments =
      convolution(x, weight, size_of({weight.dims()[1], std::max<std::int64_t>(groups, 1)}));
  const auto added = integers(node_->inputs.size(), "output_padding");
  arguments.emplace_back("output_padding", at(added, 0, 0));
  arguments.emplace_back("output_padding_width", at(added, 1, 0));
  const std::uint32_t y = apply("conv_transpose2d", arguments, {image}, weight.weight);
  const Dims& made = builder_.dims(y);
  bind_result(y, {x.dims()[0], made[0], made[1], made[2]}, 0);
}

/// MaxPool and AveragePool, the latter with the padding of a Pad before it.
void OnnxImporter::pool() {
  const bool is_max = node_->kind == "MaxPool";
  const OnnxValue x = is_max ? network_input(0) : input(0);
  if (!x.is_network()) throw LayerError("it pools a constant");
  for (const std::int64_t dilation : integers(node_->inputs.size(), "dilations"))
    if (dilation != 1) throw LayerError("dilations other than 1 are not supported");
  const std::uint32_t image = as_image(x);
  Arguments arguments = windows(x.dims().size() - 2, integers(node_->inputs.size(), "kernel_shape"),
                                x.padding, x.padding_width);
  arguments.emplace_back("ceil", at({node_->integer("ceil_mode", 0)}, 0, 0));
  const std::uint32_t y = apply(is_max ? "max_pool" : "avg_pool", arguments, {image});
  const Dims& made = builder_.dims(y);
  Dims dims = {x.dims()[0], made[0], made[1], made[2]};
  if (x.dims().size() == 3) dims.erase(dims.begin() + 2);
  bind_result(y, std::move(dims), 0);
}

std::uint32_t OnnxImporter::averaged(std::uint32_t image) {
  return apply("global_avg_pool", {{"kept", graph_.is_of_pytorch_2 ? 0 : 1}}, {image});
}

void OnnxImporter::global_average_pool() {
  const OnnxValue x = network_input(0);
  Dims dims = x.dims();
  const std::uint32_t y = averaged(as_image(x));
  std::fill(dims.begin() + 2, dims.end(), 1);
  bind_result(y, std::move(dims), 0);
}

/// Resize and Upsample, by factors or to sizes; by one whole number it is an upsampling.
void OnnxImporter::resize() {
  const OnnxValue x = network_input(0);
  const std::uint32_t image = as_image(x);
  const Dims from = builder_.dims(image);
  const std::vector<std::int64_t> sizes = resized(x.dims());
  const std::int64_t height = x.dims().size() == 4 ? sizes[2] : 1, width = sizes.back();
  const std::int64_t factor = height / from[1];
  const bool is_whole = factor >= 1 && height == factor * from[1] && width % from[2] == 0 &&
                        width / from[2] == factor;
  const std::uint32_t y = is_whole
                              ? apply("upsample", {{"factor", factor}}, {image})
                              : apply("resize", {{"height", height}, {"width", width}}, {image});
  Dims dims = x.dims();
  std::copy(sizes.begin() + 2, sizes.end(), dims.begin() + 2);
  bind_result(y, std::move(dims), 0);
}

/// The sizes that a Resize or an Upsample asks for, channels and batch as they are.
std::vector<std::int64_t> OnnxImporter::resized(const Dims& from) const {
  const bool is_upsample = node_->kind == "Upsample";
  const std::size_t scales = is_upsample ? 1 : 2;
  std::vector<std::int64_t> sizes;
  if (!is_upsample && has_input(3)) sizes = integers(3, "sizes");
  if (sizes.empty() && has_input(scales) && input(scales).tensor.is_known)
    for (std::size_t i = 0; i < std::min(from.size(), input(scales).tensor.reals.size()); ++i) {
      const double size = std::floor(static_cast<double>(from[i]) * input(scales).tensor.reals[i]);
      sizes.push_back(size >= 1 && size < 1e9 ? std::llround(size) : 0);
    }
  if (sizes.size() != from.size() || sizes[1] != from[1] || std::ranges::min(sizes) < 1)
    throw LayerError("expected known sizes, or factors, of rows and columns alone");
  return sizes;
}

void OnnxImporter::pad_image(const OnnxValue& from, const std::vector<std::int64_t>& pads) {
  const std::size_t rank = from.dims().size();
  const std::uint32_t image = as_image(from);
  if (pads[0] != 0 || pads[1] != 0 || pads[rank] != 0 || pads[rank + 1] != 0)
    throw LayerError("only a padding of rows and columns is supported");
  const bool is_plane = rank == 4;
  const std::uint32_t y = apply("pad",
                                {{"top", is_plane ? pads[2] : 0},
                                 {"bottom", is_plane ? pads[rank + 2] : 0},
                                 {"left", pads[rank - 1]},
                                 {"right", pads.back()}},
                                {image});
  Dims dims = from.dims();
  if (is_plane) dims[2] = builder_.dims(y)[1];
  dims.back() = builder_.dims(y)[2];
  bind_result(y, std::move(dims), 0);
}

}  // namespace plimsoll
