/// From an ONNX graph to a network of operator rules: the same representation that layers become.
///
/// The graph is taken as written, in training mode. Shapes are inferred here, at the batch of the
/// file (the first dimension of its first input, 1 where that has a name only); every value of the
/// network has one dimension with the batch in it, which is then replaced by the batch that is
/// asked for. So shape arithmetic that an exporter has frozen does not matter.
///
/// Choices where ONNX does not say what a framework did: an activation works in place where nothing
/// reads its input afterwards; a Reshape is a view where the strides allow one, else a copy; each
/// output of the graph has the loss, those after the first one weighted by a number.
#pragma once

#include "workload/network/network_builder.hpp"
#include "workload/network/trained_layers.hpp"
#include "workload/onnx/onnx_fusions.hpp"
#include "workload/onnx/onnx_values.hpp"

#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace plimsoll {

class OnnxImporter {
 public:
  OnnxImporter(const OnnxGraph& graph, const WorkloadOptions& options);
  /// O(nodes). Throws InputError with what is wrong, and where.
  Network import();

 private:
  using Handler = void (OnnxImporter::*)();
  using Arguments = RuleArguments;
  static constexpr const char* kTrainingMode =
      "export the model in training mode (torch.onnx.export(..., training=TrainingMode.TRAINING, "
      "do_constant_folding=False))";
  /// By the kind of node, sorted.
  static const std::map<std::string_view, Handler>& handlers();
  /// Those of the domain com.microsoft.
  static const std::map<std::string_view, Handler>& contributed_handlers();
  /// nullptr where there is none.
  [[nodiscard]] static Handler handler_of(const OnnxNode& node);

  // The frame (onnx_importer.cpp).
  std::uint32_t intern(const std::string& name);
  void index_names();
  void check_kinds() const;
  void check_options() const;
  [[nodiscard]] std::int64_t dimension(const OnnxInput& input, std::size_t axis);
  void add_inputs();
  void add_initializers();
  void check_buffers(const std::vector<bool>& is_used) const;
  void fold_constants();
  [[nodiscard]] static OnnxTensor constant_of(const OnnxNode& node);
  void run_node(std::uint32_t index);
  bool run_fusion(std::uint32_t index);
  void replace(const OnnxFusion& fusion);
  bool run_attention(const OnnxFusion& fusion);
  [[nodiscard]] std::optional<std::uint32_t> input_of(const OnnxFusion& fusion, const OnnxValue& x);
  bool run_constant();
  void consume(const OnnxNode& node);
  void add_losses();
  [[noreturn]] void fail(const std::string& message, const std::string& hint = {}) const;
  [[noreturn]] void fail_at_node(const std::string& message, const std::string& hint = {}) const;
  std::string operator_name(const OnnxNode& node);

  // What handlers use (onnx_bindings.cpp).
  [[nodiscard]] bool has_input(std::size_t i) const;
  [[nodiscard]] const OnnxValue& value(const std::string& name) const;
  [[nodiscard]] const OnnxValue& input(std::size_t i) const;
  [[nodiscard]] const OnnxValue& network_input(std::size_t i) const;
  [[nodiscard]] const OnnxValue& weight_input(std::size_t i) const;
  /// Integers of an input, or of the attribute of the same name in older opsets.
  [[nodiscard]] std::vector<std::int64_t> integers(std::size_t i, std::string_view name) const;
  [[nodiscard]] Dims sample_dims(const Dims& dims, std::size_t batch_axis) const;
  /// A shape at the batch of the file, at the batch that is asked for.
  [[nodiscard]] Dims at_batch(Dims dims, std::size_t batch_axis) const;
  [[nodiscard]] bool is_free(const OnnxValue& value) const;
  /// Adds an operator of this rule; `weight`: the initializer that is its weight.
  std::uint32_t apply(std::string_view kind, const Arguments& arguments,
                      std::vector<std::uint32_t> inputs, std::uint32_t weight = kNoName);
  void bind(const std::string& name, OnnxValue value);
  void bind_result(std::uint32_t id, Dims dims, std::size_t batch_axis);
  void bind_result(const std::string& name, std::uint32_t id, Dims dims, std::size_t batch_axis);
  void bind_view(std::size_t output, const OnnxValue& from, Dims dims, std::size_t batch_axis,
                 std::vector<std::int64_t> strides);
  void bind_constant_view(const OnnxValue& from, OnnxTensor tensor, std::uint32_t weight = kNoName);
  void bind_constant(std::size_t output, OnnxTensor tensor, std::uint32_t weight = kNoName);

  // Windows (onnx_windows.cpp).
  /// The value in another shape, as an image [channels, height, width].
  std::uint32_t as_image(const OnnxValue& value);
  void conv();
  void conv_transpose();
  Arguments convolution(const OnnxValue& x, const OnnxValue& weight, std::int64_t channels);
  Arguments windows(std::size_t spatial, const Dims& kernel, std::int64_t padding,
                    std::int64_t padding_width);
  void pool();
  void global_average_pool();
  /// Its mean, which keeps the image or not as who exported the file does.
  std::uint32_t averaged(std::uint32_t image);
  void resize();
  [[nodiscard]] std::vector<std::int64_t> resized(const Dims& from) const;
  void pad_image(const OnnxValue& from, const std::vector<std::int64_t>& pads);

  // Normalizations (onnx_normalizations.cpp).
  std::uint32_t over_channels(const OnnxValue& x, const Dims& weight);
  /// The value as rows of all its dimensions from this one on.
  std::uint32_t as_vectors(const OnnxValue& x, std::size_t axis);
  void batch_normalization();
  void instance_normalization();
  void group_normalization();
  void layer_normalization();
  void rms_normalization();
  /// Over the dimensions from `axis` on.
  void normalize_rows(std::string_view kind);

  // Attention of today's transformers (onnx_attention.cpp).
  /// [batch, positions, heads x size] or [batch, heads, positions, size] as [positions, heads x
  /// size], and the number of heads, which the node gives where the value does not.
  struct Heads {
    std::uint32_t id = 0;
    std::int64_t heads = 0, positions = 0, size = 0;
  };
  [[nodiscard]] Heads heads_of(const OnnxValue& x, std::int64_t heads);
  void check_attention(std::initializer_list<std::size_t> past, std::size_t mask) const;
  void attention();
  void grouped_attention();
  void attend(const OnnxValue& query, const Heads& q, const Heads& k, const Heads& v, bool causal,
              std::int64_t window);
  [[nodiscard]] Heads turned(const Heads& heads, std::int64_t rotated);
  void rotary_embedding();

  // Recurrence (onnx_recurrent.cpp).
  void lstm();
  void check_lstm(const OnnxValue& x, std::int64_t directions, std::int64_t hidden) const;
  [[nodiscard]] bool is_read(std::size_t output) const;
  /// One value, or all of them along their features.
  std::uint32_t joined(const std::vector<std::uint32_t>& parts);

  // Operators (onnx_operators.cpp).
  void matmul();
  void gemm();
  std::uint32_t as_rows(const OnnxValue& x);
  void linear(const OnnxValue& x, const OnnxValue& weight, bool transposed, bool bias,
              const std::string& output);
  void add();
  void subtract();
  /// Times numbers; one that is no part of the network PyTorch keeps, before 2.
  std::uint32_t scaled(std::uint32_t x, bool by_a_number);
  void multiply();
  void divide();
  void power();
  void combine(std::string_view kind);
  void add_constant(const OnnxValue& x, const OnnxValue& constant);
  void add_rows(const OnnxValue& x, const OnnxValue& rows);
  void activation();
  void clip();
  void dropout();
  void reduce();
  void concat();
  bool join_token();
  void where();

  // Views (onnx_views.cpp).
  void reshape();
  [[nodiscard]] bool is_copied_at_more(const OnnxValue& from, Dims wanted, std::size_t axis) const;
  void reshape_to(const OnnxValue& from, Dims dims);
  void flatten();
  void squeeze();
  void transpose();
  void slice();
  void split();
  void gather();
  void identity();
  void expand();
  void cast();
  void depth_to_space();
  void shape();
  void pad();
  void only_constants();

  const OnnxGraph& graph_;
  const WorkloadOptions& options_;
  std::unordered_map<std::string_view, std::uint32_t> names_;
  std::vector<OnnxValue> values_;                    ///< by name
  std::vector<std::vector<std::uint32_t>> readers_;  ///< nodes, by name
  std::vector<std::uint32_t> outputs_;               ///< how often a name is an output, by name
  std::vector<bool> done_;                           ///< by node
  std::vector<std::uint32_t> pending_;               ///< reads to come, by storage
  std::map<std::uint32_t, std::uint32_t> owners_;    ///< operators, by the weight that they brought
  std::set<std::string> operator_names_;
  std::int64_t file_batch_ = 1, batch_ = 1;
  NetworkBuilder builder_;
  TrainedLayers trained_;
  const OnnxNode* node_ = nullptr;
};

}  // namespace plimsoll
