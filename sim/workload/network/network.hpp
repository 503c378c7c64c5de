/// A network of layers with all blocks and repeats expanded, and all shapes known.
#pragma once

#include "workload/network/layers_file.hpp"
#include "workload/operators/operator_rules.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

inline constexpr std::uint32_t kNoValue = 0xFFFFFFFF;

/// The most operators of one network.
inline constexpr std::size_t kMaxNetworkOperators = 100'000;

/// A value: some bytes at some moment. Views share storage and gradient with what they look at; a
/// change in place shares the storage only.
struct NetworkValue {
  Dims dims;
  std::uint32_t storage = 0;
  std::uint32_t gradient = 0;  ///< values with the same number share one gradient
  std::uint32_t version = 0;   ///< of the storage: a later change in place makes the value stale
  DType type = DType::fp32;    ///< of its elements, where they are no indices
  bool indices = false;
  bool part = false;      ///< of the bytes; its gradient is a part of that of all of them
  bool is_split = false;  ///< a part of what is split into parts, whose gradients are joined
  bool is_view = false;   ///< autograd knows it as a view of another
  /// Of an element, and of one of its gradient; nothing where they are the type's.
  std::optional<std::int64_t> bits, gradient_bits;
  std::uint32_t quantized_by = kNoValue;  ///< the operator that made it, in fp8, of another value
};

struct NetworkStorage {
  std::string name;
  Bytes bytes;
  std::uint32_t version = 0;
  std::string changed_by;  ///< the operator that changed it last
  bool is_input = false;
  bool kept = false;  ///< some backward reads it
  /// Where it was gathered of parts, the rank's own: that is kept, and gathered again.
  std::uint32_t gathered_from = kNoValue;
};

/// Of a value, and of its views.
struct NetworkGradient {
  Bytes bytes;
  bool is_made = false;  ///< something before it is trained
};

struct NetworkOperator {
  std::string name;  ///< of its layer
  std::string part;  ///< of the layer: "cast_input"; empty for what the layer itself is
  const OperatorRule* rule = nullptr;
  OperatorEffect effect;
  std::vector<std::uint32_t> inputs;  ///< values
  std::uint32_t output = kNoValue;
  std::uint32_t tied = kNoValue;  ///< the operator whose weight this one uses as its own
  std::uint32_t pool = kNoValue;  ///< the pooling whose indices it reads
  /// Of a quantization: the same value by columns, where a product reads that in its backward.
  std::uint32_t columns = kNoValue;
  DType type = DType::fp32;  ///< what it computes in, and what it keeps beside inputs and output
  ElementBits bits;          ///< in place of those of the type
  /// Of each parameter the part that is trained: no dimensions where none is.
  std::vector<Dims> trained;
  /// Likewise of what all ranks of a tensor axis have; none where they have the same.
  std::vector<Dims> whole;
  bool has_backward = false;        ///< something before or in it is trained
  std::vector<std::uint32_t> kept;  ///< those of `inputs` that its backward reads
  bool keeps_output = false;
  bool copies_parameters = false;  ///< it computes in another type than theirs
  bool keeps_weight_copy = false;
  bool is_in_fp8 = false;                ///< a product; its first input is in fp8
  bool is_undone = false;                ///< a pooling whose indices a later operator reads
  bool makes_partial_gradients = false;  ///< of its parameters (Tensor::is_partial)
  bool divides_experts = false;          ///< its parameters are those of a rank (is_of_experts)
  bool is_whole = false;                 ///< on each rank of a tensor axis (Operator::is_whole)
};

struct Network {
  std::vector<NetworkValue> values;
  std::vector<NetworkStorage> storages;
  std::vector<NetworkOperator> operators;
  std::vector<NetworkGradient> gradients;  ///< by NetworkValue::gradient
  std::int64_t batch = 1;
  DType dtype = DType::fp32;  ///< of parameters
  /// Of a rank's part: the parameters of all ranks, and its share of their multiply-adds, and of those
  /// that frozen weights save (frozen_macs()).
  std::optional<Elements> all_parameters, share_of_macs, share_of_frozen_macs;
  std::int64_t ranks_of_positions = 1;  ///< that divide the positions of a sample
  std::optional<Fp8> fp8;
};

/// Whether a parameter of this name is one: `bias_hh`.
[[nodiscard]] bool is_bias(const std::string& parameter);

/// Whether the weight of `op`, its own or a tied one, is trained.
[[nodiscard]] bool trains_weight(const Network& network, const NetworkOperator& op);

/// So many elements of so many bits, in whole bytes; without them of the type.
[[nodiscard]] Bytes bytes_of(Elements elements, DType type,
                             const std::optional<std::int64_t>& bits);
/// Of what an operator keeps beside inputs and output.
[[nodiscard]] Bytes kept_bytes(const NetworkOperator& op, const KeptExtra& extra);
/// Of the copy in fp8 of a weight that `op` multiplies by, and the part of it that the forward reads.
struct Fp8Weight {
  Bytes bytes, rows;
};
[[nodiscard]] Fp8Weight fp8_weight(const Network& network, const NetworkOperator& op,
                                   const Dims& weight);
/// Whether each microbatch makes a copy of the weight in fp8 that its backward reads.
[[nodiscard]] bool keeps_fp8_weight(const Network& network, const NetworkOperator& op);
/// Whether it multiplies integers of 8 bits: what it reads and makes is no wider, as far as its layer
/// says.
[[nodiscard]] bool is_in_int8(const NetworkOperator& op, bool is_backward);

/// Throws InputError at the first layer that does not fit.
[[nodiscard]] Network expand(const LayersSpec& layers, const WorkloadOptions& options);

}  // namespace plimsoll
