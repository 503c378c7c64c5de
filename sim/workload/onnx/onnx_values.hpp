/// What the importer knows about the values of an ONNX graph.
#pragma once

#include "workload/onnx/onnx_graph.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

inline constexpr std::uint32_t kNoName = 0xFFFFFFFF;

/// A value of the graph, all shapes at the batch of the file. It is one of two: a constant (numbers
/// that are there before the step: weights, masks, shape arithmetic), whose numbers are known where
/// they are few, or a value of the network, which has the batch in it.
struct OnnxValue {
  enum class Kind : std::uint8_t { missing, constant, network };
  Kind kind = Kind::missing;
  OnnxTensor tensor;  ///< shape and type of either; numbers of a constant only

  // Constants.
  std::uint32_t weight = kNoName;   ///< the initializer that it is, or is a view of
  std::int64_t rows_of = 0;         ///< entries of the table whose rows it is; 0: it is none
  bool is_repeated_weight = false;  ///< an initializer that is repeated over the batch
  bool is_stored = false;           ///< an initializer, or a view of one: there throughout
  bool has_stored_ids = false;      ///< rows of a table, by ids that are stored

  // Values of the network.
  std::uint32_t id = 0;        ///< in the network
  std::size_t batch_axis = 0;  ///< the dimension that has the batch in it
  /// In elements, at the batch that is asked for: where the bytes lie in the storage.
  std::vector<std::int64_t> strides;
  /// Rows and columns added by a Pad before an average pooling.
  std::int64_t padding = 0, padding_width = 0;

  [[nodiscard]] bool is_constant() const { return kind == Kind::constant; }
  [[nodiscard]] bool is_network() const { return kind == Kind::network; }
  [[nodiscard]] const Dims& dims() const { return tensor.dims; }
  /// The only number of a known constant.
  [[nodiscard]] std::optional<double> scalar() const;
};

/// A name for results and messages: printable, at most 150 bytes, without the slash in front.
[[nodiscard]] std::string printable(const std::string& name);
/// Row-major strides of a shape. Throws QuantityOverflow.
[[nodiscard]] std::vector<std::int64_t> contiguous_strides(const Dims& dims);
/// Whether the elements lie in the order of the shape, one after the other. Where a dimension of 1
/// would go on does not matter.
[[nodiscard]] bool is_contiguous(const Dims& dims, const std::vector<std::int64_t>& strides);
/// Of a storage of its own whose dimensions lie in the order of these strides, the largest outside.
[[nodiscard]] std::vector<std::int64_t> dense_strides(const Dims& dims,
                                                      const std::vector<std::int64_t>& like);
/// Strides of the same bytes in another shape of as many elements; nothing where that takes a copy.
[[nodiscard]] std::optional<std::vector<std::int64_t>> viewed_strides(
    const Dims& dims, const std::vector<std::int64_t>& strides, const Dims& wanted);
/// The part of a constant that has this shape, begins at this element and goes by these strides;
/// its numbers are known where the constant's are, and are few.
[[nodiscard]] OnnxTensor strided_part(const OnnxTensor& from, Dims dims, std::int64_t first,
                                      const std::vector<std::int64_t>& strides);
/// Elements of a shape, 0 included. Throws QuantityOverflow.
[[nodiscard]] std::int64_t size_of(const Dims& dims);
/// A dimension counted from the end where negative. Throws LayerError.
[[nodiscard]] std::size_t axis_of(std::int64_t axis, std::size_t rank);
/// The shape that two shapes broadcast to. Throws LayerError.
[[nodiscard]] Dims broadcast(const Dims& a, const Dims& b);

/// The value of a node all of whose inputs are constants: numbers where they are known and few,
/// else the shape alone. Nothing for a node that is not arithmetic on constants. Throws LayerError.
/// O(16 Ki).
[[nodiscard]] std::optional<std::vector<OnnxTensor>> fold(
    const OnnxNode& node, const std::vector<const OnnxTensor*>& inputs);

}  // namespace plimsoll
