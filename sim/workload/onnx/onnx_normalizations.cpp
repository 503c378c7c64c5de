#include "workload/onnx/onnx_importer.hpp"
#include "workload/operators/layer_error.hpp"

namespace plimsoll {
namespace {

/// Exporters write ones where a module has no weight of its own.
std::int64_t is_learned(const OnnxValue& weight) {
  return weight.weight != kNoName ? 1 : 0;
}

}  // namespace

/// Vectors [channels] and images as they are, positions as an image of height 1.
std::uint32_t OnnxImporter::over_channels(const OnnxValue& x, const Dims& weight) {
  const Dims& dims = x.dims();
  if (dims.size() < 2 || x.batch_axis != 0)
    throw LayerError("expected values [batch, channels, ...], found " + to_text(dims));
  if (weight != Dims{dims[1]})
    throw LayerError("a weight " + to_text(weight) + " does not fit values " + to_text(dims));
  if (dims.size() == 2) return x.id;
  if (dims.size() == 4) return as_image(x);
  return builder_.view(x.id, {dims[1], 1, size_of(Dims(dims.begin() + 2, dims.end()))});
}

std::uint32_t OnnxImporter::as_vectors(const OnnxValue& x, std::size_t axis) {
  const std::int64_t features =
      size_of(Dims(x.dims().begin() + static_cast<std::ptrdiff_t>(axis), x.dims().end()));
  return builder_.view(x.id, {size_of(builder_.dims(x.id)) / features, features});
}

void OnnxImporter::batch_normalization() {
  const OnnxValue x = network_input(0);
  if (node_->integer("training_mode", 0) == 0 && node_->outputs.size() != 5)
    throw LayerError("it is in inference mode, which keeps nothing for a backward", kTrainingMode);
  const OnnxValue& weight = input(1);
  const std::uint32_t values = over_channels(x, weight.dims());
  bind_result(apply("batch_norm", {{"affine", is_learned(weight)}}, {values}), x.dims(), 0);
}

void OnnxImporter::instance_normalization() {
  const OnnxValue x = network_input(0);
  const OnnxValue& weight = input(1);
  const std::uint32_t values = over_channels(x, weight.dims());
  bind_result(apply("instance_norm", {{"affine", is_learned(weight)}}, {values}), x.dims(), 0);
}

void OnnxImporter::group_normalization() {
  const OnnxValue x = network_input(0);
  const std::uint32_t values = over_channels(x, weight_input(1).dims());
  const std::int64_t groups = node_->integer("num_groups", 0);
  bind_result(apply("group_norm", {{"groups", groups}}, {values}), x.dims(), 0);
}

void OnnxImporter::layer_normalization() {
  normalize_rows("layer_norm");
}

void OnnxImporter::rms_normalization() {
  normalize_rows("fused_rms_norm");
}

void OnnxImporter::normalize_rows(std::string_view kind) {
  const OnnxValue x = network_input(0);
  const OnnxValue& weight = input(1);
  const std::size_t axis = axis_of(node_->integer("axis", -1), x.dims().size());
  if (axis <= x.batch_axis ||
      weight.dims() != Dims(x.dims().begin() + static_cast<std::ptrdiff_t>(axis), x.dims().end()))
    throw LayerError("a weight " + to_text(weight.dims()) + " does not fit values " +
                     to_text(x.dims()));
  const Arguments arguments = {{"affine", is_learned(weight)}};
  bind_result(apply(kind, arguments, {as_vectors(x, axis)}), x.dims(), x.batch_axis);
}

}  // namespace plimsoll
