#include "workload/onnx/onnx_values.hpp"

#include "workload/operators/layer_error.hpp"

#include <algorithm>
#include <numeric>

namespace plimsoll {

std::string printable(const std::string& name) {
  constexpr std::size_t kMaxName = 150;
  std::string text = name.substr(name.starts_with('/') ? 1 : 0, kMaxName);
  for (char& c : text)
    if (c <= ' ' || c >= 0x7F || c == '"' || c == '`' || c == '\\') c = '_';
  return text;
}

std::optional<double> OnnxValue::scalar() const {
  if (!tensor.is_known || tensor.integers.size() + tensor.reals.size() != 1) return std::nullopt;
  return tensor.reals.empty() ? static_cast<double>(tensor.integers.front()) : tensor.reals.front();
}

std::vector<std::int64_t> contiguous_strides(const Dims& dims) {
  static_cast<void>(size_of(dims));  // bounds the products
  std::vector<std::int64_t> strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

bool is_contiguous(const Dims& dims, const std::vector<std::int64_t>& strides) {
  const std::vector<std::int64_t> contiguous = contiguous_strides(dims);
  for (std::size_t axis = 0; axis < dims.size(); ++axis)
    if (dims[axis] != 1 && strides[axis] != contiguous[axis]) return false;
  return true;
}

std::vector<std::int64_t> dense_strides(const Dims& dims, const std::vector<std::int64_t>& like) {
  std::vector<std::size_t> inside_out(dims.size());
  std::iota(inside_out.rbegin(), inside_out.rend(), std::size_t{0});
  std::ranges::stable_sort(inside_out, {}, [&](std::size_t axis) { return like[axis]; });
  std::vector<std::int64_t> strides(dims.size());
  std::int64_t next = 1;
  for (const std::size_t axis : inside_out) {
    strides[axis] = next;
    next = size_of({next, dims[axis]});
  }
  return strides;
}

std::optional<std::vector<std::int64_t>> viewed_strides(const Dims& dims,
                                                        const std::vector<std::int64_t>& strides,
                                                        const Dims& wanted) {
  std::vector<std::int64_t> result(wanted.size(), 1);
  std::size_t next = wanted.size();
  std::int64_t run = 1;   // elements of the dimensions that lie evenly, up to this one
  std::int64_t base = 1;  // the stride of the innermost of them
  bool starts = true;
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (starts) {
      base = strides[i];
      starts = false;
    }
    run *= dims[i];
    // The run ends where the next dimension outwards does not continue it.
    const bool ends = i == 0 || (dims[i - 1] != 1 && strides[i - 1] != run * base);
    if (!ends) continue;
    std::int64_t covered = 1;
    while (next > 0 && (covered < run || wanted[next - 1] == 1)) {
      --next;
      result[next] = covered * base;
      covered *= wanted[next];
    }
    if (covered != run) return std::nullopt;
    run = 1;
    starts = true;
  }
  return result;
}

std::int64_t size_of(const Dims& dims) {
  return elements_of(dims).count();
}

std::size_t axis_of(std::int64_t axis, std::size_t rank) {
  const auto size = static_cast<std::int64_t>(rank);
  if (axis < -size || axis >= size)
    throw LayerError("axis or index " + std::to_string(axis) + " is outside of " +
                     std::to_string(size));
  return static_cast<std::size_t>(axis < 0 ? axis + size : axis);
}

Dims broadcast(const Dims& a, const Dims& b) {
  Dims result = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  const std::size_t offset = result.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    std::int64_t& dim = result[offset + i];
    if (dim != shorter[i] && dim != 1 && shorter[i] != 1)
      throw LayerError("shapes " + to_text(a) + " and " + to_text(b) + " do not fit");
    if (dim == 1) dim = shorter[i];
  }
  return result;
}

}  // namespace plimsoll
