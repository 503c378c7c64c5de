#include "workload/onnx/onnx_importer.hpp"
#include "workload/operators/layer_error.hpp"

namespace plimsoll {

OnnxImporter::Heads OnnxImporter::heads_of(const OnnxValue& x, std::int64_t heads) {
  const Dims& dims = x.dims();
  const bool is_apart = dims.size() == 4;
  if ((dims.size() != 3 && !is_apart) || x.batch_axis != 0)
    throw LayerError(
        "expected values [batch, positions, features] or [batch, heads, positions, features], "
        "found " +
        to_text(dims));
  if (is_apart) heads = dims[1];
  if (heads < 1 || (!is_apart && dims[2] % heads != 0))
    throw LayerError(std::to_string(heads) + " heads do not divide the features of values " +
                     to_text(dims));
  Heads found{0, heads, is_apart ? dims[2] : dims[1], is_apart ? dims[3] : dims[2] / heads};
  found.id = builder_.view(x.id, {found.positions, size_of({found.heads, found.size})});
  return found;
}

/// What a training step has no use for, and masks that the network makes.
void OnnxImporter::check_attention(std::initializer_list<std::size_t> past,
                                   std::size_t mask) const {
  for (const std::size_t i : past)
    if (has_input(i)) throw LayerError("keys and values of earlier runs are not supported");
  if (has_input(mask) && !input(mask).is_constant())
    throw LayerError("a mask that depends on the graph's inputs is not supported");
  for (std::size_t i = 1; i < node_->outputs.size(); ++i)
    if (is_read(i))
      throw LayerError("its output " + std::to_string(i + 1) +
                       " is read, which is "
                       "not supported: only the first is");
}

void OnnxImporter::attend(const OnnxValue& query, const Heads& q, const Heads& k, const Heads& v,
                          bool causal, std::int64_t window) {
  const Arguments arguments = {
      {"heads", q.heads}, {"kv_heads", k.heads}, {"causal", causal ? 1 : 0}, {"window", window}};
  if (v.heads != k.heads)
    throw LayerError(std::to_string(k.heads) + " heads of the key, and " + std::to_string(v.heads) +
                     " of the value");
  Dims dims = query.dims();
  dims.back() = dims.size() == 4 ? v.size : size_of({q.heads, v.size});
  bind_result(apply("dot_product_attention", arguments, {q.id, k.id, v.id}), std::move(dims), 0);
}

/// Of ONNX, since opset 23.
void OnnxImporter::attention() {
  check_attention({4, 5}, 3);
  const OnnxValue query = network_input(0), key = network_input(1), value = network_input(2);
  const std::int64_t kv_heads = node_->integer("kv_num_heads", 0);
  attend(query, heads_of(query, node_->integer("q_num_heads", 0)), heads_of(key, kv_heads),
         heads_of(value, kv_heads), node_->integer("is_causal", 0) != 0, 0);
}

/// Of ONNX Runtime: causal, with rotary positions where it says so.
void OnnxImporter::grouped_attention() {
  constexpr std::size_t kNoMask = 10;
  check_attention({3, 4}, kNoMask);
  if (!has_input(1) || !has_input(2))
    throw LayerError("query, key and value in one input are not supported; expected three");
  const OnnxValue query = network_input(0), key = network_input(1), value = network_input(2);
  const std::int64_t kv_heads = node_->integer("kv_num_heads", 0);
  Heads q = heads_of(query, node_->integer("num_heads", 0)), k = heads_of(key, kv_heads);
  if (node_->integer("do_rotary", 0) != 0) {
    q = turned(q, 0);
    k = turned(k, 0);
  }
  const std::int64_t window = node_->integer("local_window_size", -1);
  attend(query, q, k, heads_of(value, kv_heads), true, window < 0 ? 0 : window);
}

OnnxImporter::Heads OnnxImporter::turned(const Heads& heads, std::int64_t rotated) {
  Heads result = heads;
  result.id = apply("fused_rotary", {{"size", heads.size}, {"rotated", rotated}}, {heads.id});
  return result;
}

/// Of ONNX since opset 23, and of ONNX Runtime; sines and cosines are there throughout.
void OnnxImporter::rotary_embedding() {
  const OnnxValue x = network_input(0);
  const std::int64_t heads = node_->integer("num_heads", 0);
  if (heads == 0 && x.dims().size() == 3)
    throw LayerError("it lacks `num_heads`, and its input has no dimension for heads");
  const Heads result = turned(heads_of(x, heads), node_->integer("rotary_embedding_dim", 0));
  bind_result(result.id, x.dims(), 0);
}

}  // namespace plimsoll
