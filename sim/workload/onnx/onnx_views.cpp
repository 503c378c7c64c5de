#include "workload/onnx/onnx_importer.hpp"
#include "workload/operators/layer_error.hpp"

#include <algorithm>
#include <numeric>

namespace plimsoll {
namespace {

Dims permuted(const Dims& dims, const std::vector<std::size_t>& order) {
  Dims result;
  for (const std::size_t axis : order) result.push_back(dims[axis]);
  return result;
}

/// A part of a dimension: from start to end by step, which may go backwards.
struct Part {
  std::int64_t first = 0, count = 0;
};

Part part_of(std::int64_t size, std::int64_t start, std::int64_t end, std::int64_t step) {
  if (step == 0 || step < -kMaxBatch || step > kMaxBatch)
    throw LayerError("expected steps up to 1e9, other than 0");
  const bool is_back = step < 0;
  const auto within = [&](std::int64_t at, std::int64_t least) {
    return std::clamp<std::int64_t>(at < 0 ? std::max(at, -size - 1) + size : at, least,
                                    is_back ? size - 1 : size);
  };
  const std::int64_t first = within(start, 0), last = within(end, is_back ? -1 : 0);
  const std::int64_t room = is_back ? first - last : last - first;
  return {first, room <= 0 ? 0 : (room - 1) / std::abs(step) + 1};
}

/// The dimension of a reshaped value that has the batch in it. In the one that had it, the batch
/// lay behind so many elements, or up to so many more: an axis that is the batch, from there to
/// there; else the one that begins there; else the first that the batch divides.
std::size_t batch_axis_after(const OnnxValue& from, const Dims& dims, std::int64_t batch) {
  const auto before = [](const Dims& all, std::size_t axis) {
    return size_of(Dims(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(axis)));
  };
  const std::int64_t first = before(from.dims(), from.batch_axis);
  const std::int64_t last = before(from.dims(), from.batch_axis + 1) / batch;
  for (std::size_t axis = 0; axis < dims.size(); ++axis)
    if (dims[axis] == batch && before(dims, axis) >= first && before(dims, axis) <= last)
      return axis;
  std::size_t fallback = dims.size();
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] % batch != 0) continue;
    if (before(dims, axis) == first) return axis;
    fallback = std::min(fallback, axis);
  }
  if (fallback == dims.size())
    throw LayerError("the shape " + to_text(dims) + " has no dimension with the batch of " +
                     std::to_string(batch) + " in it");
  return fallback;
}

}  // namespace

void OnnxImporter::reshape() {
  const OnnxValue& from = input(0);
  const std::vector<std::int64_t> wanted = integers(1, "shape");
  if (wanted.size() > 16) throw LayerError("expected at most 16 dimensions");
  Dims dims;
  std::int64_t known = 1;
  std::size_t open = wanted.size();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const bool copies = wanted[i] == 0 && node_->integer("allowzero", 0) == 0;
    if (copies && i >= from.dims().size()) throw LayerError("0 stands for no dimension");
    dims.push_back(copies ? from.dims()[i] : wanted[i]);
    if (dims.back() == -1 && open == wanted.size()) {
      open = i;
    } else {
      if (dims.back() < 1) throw LayerError("a shape of " + to_text(wanted));
      known = size_of({known, dims.back()});
    }
  }
  const std::int64_t size = size_of(from.dims());
  if (open < dims.size()) dims[open] = size / known;
  if (dims.empty() || size_of(dims) != size)
    throw LayerError("a value " + to_text(from.dims()) + " cannot have the shape " +
                     to_text(wanted));
  reshape_to(from, std::move(dims));
}

void OnnxImporter::reshape_to(const OnnxValue& given, Dims dims) {
  if (given.is_constant()) {
    OnnxTensor tensor = given.tensor;
    tensor.dims = std::move(dims);
    return bind_constant_view(given, std::move(tensor), given.weight);
  }
  const OnnxValue from = network_input(0);
  const std::size_t axis = batch_axis_after(from, dims, file_batch_);
  auto strides =
      viewed_strides(at_batch(from.dims(), from.batch_axis), from.strides, at_batch(dims, axis));
  if (strides && !is_copied_at_more(from, at_batch(dims, axis), axis))
    return bind_view(0, from, std::move(dims), axis, std::move(*strides));
  bind_result(apply("copy", {}, {from.id}), std::move(dims), axis);
}

/// Whether a batch of one, whose values do not lie in order, is in a shape that takes a copy of any
/// larger one: a program for all batches asks for values in order before (`.contiguous()`).
bool OnnxImporter::is_copied_at_more(const OnnxValue& from, Dims wanted, std::size_t axis) const {
  Dims dims = at_batch(from.dims(), from.batch_axis);
  if (batch_ != 1 || dims[from.batch_axis] != 1 || is_contiguous(dims, from.strides)) return false;
  std::vector<std::int64_t> strides = from.strides;
  for (std::size_t i = 0; i < strides.size(); ++i)
    if (i != from.batch_axis && strides[i] >= from.strides[from.batch_axis])
      strides[i] = size_of({2, strides[i]});
  dims[from.batch_axis] = 2;
  wanted[axis] = size_of({2, wanted[axis]});
  return !viewed_strides(dims, strides, wanted);
}

void OnnxImporter::flatten() {
  const Dims dims = input(0).dims();
  const std::int64_t at = node_->integer("axis", 1);
  const std::size_t axis =
      at == static_cast<std::int64_t>(dims.size()) ? dims.size() : axis_of(at, dims.size());
  const auto middle = dims.begin() + static_cast<std::ptrdiff_t>(axis);
  reshape_to(input(0), {size_of(Dims(dims.begin(), middle)), size_of(Dims(middle, dims.end()))});
}

/// Squeeze and Unsqueeze.
void OnnxImporter::squeeze() {
  const OnnxValue& from = network_input(0);
  OnnxTensor shape;
  shape.dims = from.dims();
  std::vector<const OnnxTensor*> inputs = {&shape};
  if (has_input(1)) inputs.push_back(&input(1).tensor);
  Dims dims = fold(*node_, inputs)->front().dims;
  if (dims.empty()) dims = {1};
  reshape_to(from, std::move(dims));
}

void OnnxImporter::transpose() {
  const OnnxValue& from = input(0);
  const std::size_t rank = from.dims().size();
  std::vector<std::size_t> order(rank);
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  if (const OnnxAttribute* given = node_->attribute("perm")) {
    std::set<std::size_t> axes;
    order.clear();
    for (const std::int64_t axis : given->integers) order.push_back(axis_of(axis, rank));
    axes.insert(order.begin(), order.end());
    if (axes.size() != rank || order.size() != rank)
      throw LayerError("`perm` is no permutation of " + std::to_string(rank) + " dimensions");
  }
  if (from.is_constant()) {
    const std::vector<std::int64_t> strides = contiguous_strides(from.dims());
    OnnxTensor tensor =
        strided_part(from.tensor, permuted(from.dims(), order), 0, permuted(strides, order));
    return bind_constant_view(from, std::move(tensor), from.weight);
  }
  const OnnxValue value = network_input(0);
  const auto axis = std::ranges::find(order, value.batch_axis) - order.begin();
  bind_view(0, value, permuted(value.dims(), order), static_cast<std::size_t>(axis),
            permuted(value.strides, order));
}

void OnnxImporter::slice() {
  const OnnxValue from = input(0);
  const auto starts = integers(1, "starts"), ends = integers(2, "ends");
  auto axes = integers(3, "axes"), steps = integers(4, "steps");
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), std::int64_t{0});
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    throw LayerError("its starts, ends, axes and steps differ in number");
  Dims dims = from.dims();
  const bool is_constant = from.is_constant();
  std::vector<std::int64_t> strides = is_constant ? contiguous_strides(dims) : from.strides;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t axis = axis_of(axes[i], dims.size());
    if (steps[i] < 0 && !is_constant) throw LayerError("expected steps from 1 to 1e9");
    const Part part = part_of(dims[axis], starts[i], ends[i], steps[i]);
    dims[axis] = part.count;
    if (is_constant) first += part.first * strides[axis];
    strides[axis] = is_constant ? strides[axis] * steps[i] : size_of({strides[axis], steps[i]});
    if (!is_constant && axis == from.batch_axis && dims[axis] != from.dims()[axis])
      throw LayerError("it takes a part of the batch");
  }
  if (!is_constant) return bind_view(0, network_input(0), dims, from.batch_axis, strides);
  bind_constant_view(from, strided_part(from.tensor, std::move(dims), first, strides));
}

void OnnxImporter::split() {
  const OnnxValue from = network_input(0);
  const std::size_t axis = axis_of(node_->integer("axis", 0), from.dims().size());
  const auto parts = static_cast<std::int64_t>(node_->outputs.size());
  const std::int64_t size = from.dims()[axis];
  std::vector<std::int64_t> sizes = integers(1, "split");
  if (sizes.empty()) {
    const std::int64_t each = (size + parts - 1) / parts;
    for (std::int64_t left = size; left > 0; left -= each) sizes.push_back(std::min(each, left));
  }
  if (sizes.size() != node_->outputs.size() ||
      std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0},
                      [](std::int64_t sum, std::int64_t part) {
                        return part < 1 || sum < 0 || part > kMaxBatch ? -1 : sum + part;
                      }) != size)
    throw LayerError("its parts do not add up to " + std::to_string(size));
  if (axis == from.batch_axis && sizes.size() > 1) throw LayerError("it splits the batch");
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Dims dims = from.dims();
    dims[axis] = sizes[i];
    OnnxValue part = from;
    if (sizes.size() > 1) part.id = builder_.part(from.id, sample_dims(dims, from.batch_axis));
    bind_view(i, part, std::move(dims), from.batch_axis, from.strides);
  }
}

/// Rows of a table by indices, or one index of a value, which is a view.
void OnnxImporter::gather() {
  if (input(0).is_constant()) {
    const OnnxValue ids = network_input(1);
    const OnnxValue& table = weight_input(0);
    if (table.dims().size() != 2 || node_->integer("axis", 0) != 0)
      throw LayerError("expected rows of a table [entries, features], found " +
                       to_text(table.dims()));
    Dims dims = ids.dims();
    dims.push_back(table.dims()[1]);
    const std::uint32_t rows =
        apply("embedding", {{"entries", table.dims()[0]}, {"features", table.dims()[1]}}, {ids.id},
              table.weight);
    return bind_result(rows, std::move(dims), ids.batch_axis);
  }
  const OnnxValue from = network_input(0);
  const OnnxValue& index = input(1);
  const std::size_t axis = axis_of(node_->integer("axis", 0), from.dims().size());
  if (!index.is_constant() || !index.dims().empty() || axis == from.batch_axis)
    throw LayerError("of values only one index at a time is supported, and not of the batch");
  if (const auto at = index.scalar())
    static_cast<void>(
        axis_of(static_cast<std::int64_t>(*at), static_cast<std::size_t>(from.dims()[axis])));
  Dims dims = from.dims();
  std::vector<std::int64_t> strides = from.strides;
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(axis));
  bind_view(0, from, std::move(dims), from.batch_axis - (axis < from.batch_axis ? 1 : 0),
            std::move(strides));
}

void OnnxImporter::identity() {
  const OnnxValue from = network_input(0);
  bind_view(0, from, from.dims(), from.batch_axis, from.strides);
}

void OnnxImporter::expand() {
  const OnnxValue from = network_input(0);
  if (broadcast(from.dims(), integers(1, "shape")) != from.dims())
    throw LayerError("values " + to_text(from.dims()) +
                     " that are repeated are not supported; constants are");
  identity();
}

void OnnxImporter::cast() {
  constexpr std::int64_t kFloat = 1, kInt32 = 6, kInt64 = 7, kFloat16 = 10, kBFloat16 = 16;
  const OnnxType type = network_input(0).tensor.type;
  const std::int64_t to = node_->integer("to", 0);
  const bool stays = (type == OnnxType::integer && (to == kInt32 || to == kInt64)) ||
                     (type != OnnxType::integer && to == kFloat) ||
                     (type == OnnxType::fp16 && to == kFloat16) ||
                     (type == OnnxType::bf16 && to == kBFloat16);
  if (!stays)
    throw LayerError(
        "a change of the type of values is not supported; export the model in one type, "
        "and choose another with `dtype`");
  identity();
}

void OnnxImporter::shape() {
  const Dims& dims = input(0).dims();
  const auto size = static_cast<std::int64_t>(dims.size());
  const auto within = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? std::max(at, -size) + size : at, 0, size);
  };
  const std::int64_t begin = within(node_->integer("start", 0));
  const std::int64_t end = std::max(begin, within(node_->integer("end", size)));
  OnnxTensor tensor;
  tensor.type = OnnxType::integer;
  tensor.is_known = true;
  tensor.integers.assign(dims.begin() + begin, dims.begin() + end);
  tensor.dims = {end - begin};
  bind_constant(0, std::move(tensor));
}

/// Nothing, or the padding of the average pooling that follows.
/// Even padding of an image before average poolings is a matter of theirs; all other is an
/// operator.
void OnnxImporter::pad() {
  const OnnxValue from = network_input(0);
  const std::vector<std::int64_t> pads = integers(1, "pads");
  const std::size_t rank = from.dims().size();
  if (pads.size() != 2 * rank) throw LayerError("expected two numbers a dimension");
  if (std::ranges::all_of(pads, [](std::int64_t pad) { return pad == 0; })) return identity();
  const OnnxAttribute* mode = node_->attribute("mode");
  if (mode != nullptr && mode->text != "constant")
    throw LayerError("the mode `" + printable(mode->text) + "` is not supported");
  const auto& readers = readers_[names_.at(node_->outputs.front())];
  const bool is_even = rank == 4 && std::equal(pads.begin(), pads.begin() + 4, pads.begin() + 4) &&
                       pads[0] == 0 && pads[1] == 0 && pads[2] >= 0 && pads[3] >= 0;
  const bool is_of_poolings = std::ranges::all_of(
      readers, [&](std::uint32_t reader) { return graph_.nodes[reader].kind == "AveragePool"; });
  if (!is_even || !is_of_poolings || readers.empty()) return pad_image(from, pads);
  OnnxValue padded = from;
  padded.padding = std::min(pads[2], kMaxBatch);
  padded.padding_width = std::min(pads[3], kMaxBatch);
  bind_view(0, padded, from.dims(), from.batch_axis, from.strides);
}

/// Pixels and channels change places: always a copy.
void OnnxImporter::depth_to_space() {
  const OnnxValue x = network_input(0);
  const std::int64_t block = node_->integer("blocksize", 0);
  if (x.dims().size() != 4 || x.batch_axis != 0 || block < 1 || block > 1024)
    throw LayerError(
        "expected images [batch, channels, height, width] and a `blocksize` from 1 to "
        "1024");
  Dims dims = x.dims();
  const bool grows = node_->kind == "DepthToSpace";
  const auto change = [&](std::int64_t size, std::int64_t by, bool divide) {
    if (divide && size % by != 0)
      throw LayerError("blocks of " + std::to_string(block) + " do not fit values " +
                       to_text(x.dims()));
    return divide ? size / by : size_of({size, by});
  };
  dims[1] = change(dims[1], block * block, grows);
  dims[2] = change(dims[2], block, !grows);
  dims[3] = change(dims[3], block, !grows);
  bind_result(apply("copy", {}, {x.id}), std::move(dims), 0);
}

void OnnxImporter::only_constants() {
  throw LayerError("it is supported for constants only, not for values of the network");
}

}  // namespace plimsoll
