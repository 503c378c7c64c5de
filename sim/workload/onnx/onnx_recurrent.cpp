#include "workload/onnx/onnx_importer.hpp"
#include "workload/operators/layer_error.hpp"

#include <algorithm>

namespace plimsoll {

/// Over all positions, forwards, backwards or both, from a state that is there before the step.
void OnnxImporter::lstm() {
  const OnnxValue x = network_input(0);
  const OnnxAttribute* direction = node_->attribute("direction");
  const bool is_both = direction != nullptr && direction->text == "bidirectional";
  const bool is_reverse = direction != nullptr && direction->text == "reverse";
  const std::int64_t directions = is_both ? 2 : 1, hidden = node_->integer("hidden_size", 0);
  check_lstm(x, directions, hidden);
  const std::int64_t positions = x.dims()[0], batch = x.dims()[1];
  const std::uint32_t rows = builder_.view(x.id, {positions, x.dims()[2]});
  const bool is_strided = !is_contiguous(at_batch(x.dims(), 1), x.strides);
  const Arguments arguments = {{"features", hidden}, {"bias", has_input(3) ? 1 : 0}};
  std::vector<std::uint32_t> outputs, states;
  for (std::int64_t i = 0; i < directions; ++i) {
    // Each direction makes a copy of its own of what is not contiguous.
    outputs.push_back(apply("lstm", arguments, {is_strided ? apply("copy", {}, {rows}) : rows}));
    const bool ends_first = is_reverse || i == 1;
    if (!is_read(1)) continue;
    states.push_back(
        apply("select", {{"position", ends_first ? 0 : positions - 1}}, {outputs.back()}));
    states.back() = apply("copy", {}, {states.back()});
  }
  OnnxValue y = x;
  y.id = joined(outputs);
  // [positions, directions, batch, hidden], of which PyTorch joins the directions last.
  const std::int64_t row = directions * hidden, position = at_batch(x.dims(), 1)[1] * row;
  bind_view(0, y, {positions, directions, batch, hidden}, 2, {position, hidden, row, 1});
  if (is_read(1)) bind_result(node_->outputs[1], joined(states), {directions, batch, hidden}, 1);
}

void OnnxImporter::check_lstm(const OnnxValue& x, std::int64_t directions,
                              std::int64_t hidden) const {
  const Dims& dims = x.dims();
  if (dims.size() != 3 || x.batch_axis != 1 || node_->integer("layout", 0) != 0)
    throw LayerError(
        "expected values [positions, batch, features], of which the batch is the first dimension "
        "of the graph's input, found " +
            to_text(dims),
        file_batch_ == 1 ? "where the batch is 1 it may be taken for another dimension of 1: "
                           "export the model at a batch of 2"
                         : "");
  const Dims& weight = input(1).dims();
  if (hidden < 1 || weight != Dims{directions, size_of({4, hidden}), dims[2]})
    throw LayerError("a weight " + to_text(weight) + " does not fit values " + to_text(dims) +
                     " and " + std::to_string(hidden) + " features");
  if (has_input(4) || has_input(7))
    throw LayerError("lengths of sequences and peepholes are not supported");
  for (const std::size_t state : {5u, 6u})
    if (has_input(state) && !input(state).is_constant())
      throw LayerError("a first state that the network makes is not supported");
  for (const char* other : {"activations", "clip", "input_forget"})
    if (node_->attribute(other) != nullptr)
      throw LayerError("`" + std::string(other) + "` is not supported");
  if (is_read(2)) throw LayerError("its last cell, which is read, is not supported");
}

bool OnnxImporter::is_read(std::size_t output) const {
  if (output >= node_->outputs.size() || node_->outputs[output].empty()) return false;
  const std::uint32_t name = names_.at(node_->outputs[output]);
  return !readers_[name].empty() || outputs_[name] != 0;
}

std::uint32_t OnnxImporter::joined(const std::vector<std::uint32_t>& parts) {
  return parts.size() == 1 ? parts.front() : apply("concat", {}, parts);
}

}  // namespace plimsoll
