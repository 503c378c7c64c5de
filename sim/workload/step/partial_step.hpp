/// A training step while it is made (training_step.hpp): what there is so far, and how operators are added. Internal to
/// this folder.
#pragma once

#include "workload/core/workload_builder.hpp"
#include "workload/network/network.hpp"
#include "workload/step/training_step.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace plimsoll {

struct StepParameter {
  TensorId tensor = kNoTensor, gradient = kNoTensor;
  TensorId copy = kNoTensor, copy_gradient = kNoTensor;  ///< in the type of the last reader
  OperatorId cast = kNoOperator;                         ///< makes the copy
  TensorId quantized = kNoTensor;                        ///< the same in fp8
  Bytes quantized_rows;                                  ///< of it, what a forward reads
  Dims whole;           ///< what is trained of all ranks of a tensor axis
  Dims dims, trained;   ///< the part that is trained: no dimensions where none is
  Bytes trained_bytes;  ///< of that part
  bool is_bias = false;
  bool is_in_int8 = false;  ///< it and its gradient: the update is one kernel in place
  bool has_gradient = false;
  /// Other layers use it, too: on other devices, maybe, which then update it alone.
  bool is_shared = false;

  [[nodiscard]] std::int64_t elements() const { return elements_of(trained).count(); }
  /// Of a weight: one for each expert.
  [[nodiscard]] std::int64_t products() const { return dims.size() > 2 ? dims.front() : 1; }
};

/// The gradient of a value.
struct ValueGradient {
  std::vector<TensorId> tensors;
  bool is_in_parts = false;   ///< each of another part of the value
  bool is_quantized = false;  ///< rows, where the input has a gradient, then columns
};

/// What an operator of the network has become.
struct StepLayer {
  OperatorId forward = kNoOperator;
  std::vector<TensorId> extras;
  std::vector<std::size_t> used;    ///< parameters that it reads, a tied one first
  std::vector<std::size_t> own;     ///< parameters that it brought
  std::vector<std::size_t> cast;    ///< of `used`, those of which it made the copy
  TensorId fp8_state = kNoTensor;   ///< what its quantizations leave for those of the next step
  TensorId last_block = kNoTensor;  ///< of a ring: the keys and values that came last
};

class PartialStep {
 public:
  PartialStep(const std::string& name, const Network& of, const StepOptions& with);

  [[nodiscard]] TensorId storage_of(std::uint32_t value) const;
  [[nodiscard]] std::uint32_t gradient_of(std::uint32_t value) const;
  [[nodiscard]] bool has_gradient(std::uint32_t value) const;
  [[nodiscard]] Bytes gradient_bytes(std::uint32_t value) const;
  [[nodiscard]] Bytes value_bytes(std::uint32_t value) const;
  TensorId add_tensor(std::string name, Bytes bytes, TensorClass tensor_class, Lifetime lifetime);
  /// One that makes the same in both forms.
  OperatorId add_whole(OperatorSpec spec);
  /// An operator of a layer, named after it.
  OperatorSpec layer_spec(const NetworkOperator& op, Phase phase) const;
  /// A storage of its own for the output of `op`, made by `spec`.
  void make_output(const NetworkOperator& op, OperatorSpec& spec);
  /// What it keeps beside its output.
  void make_extras(const NetworkOperator& op, StepLayer& layer, OperatorSpec& spec);

  const Network& network;
  const StepOptions options;
  WorkloadBuilder builder;
  std::vector<TensorId> storages;        ///< by storage
  std::vector<ValueGradient> gradients;  ///< by number of gradient
  std::vector<StepLayer> layers;         ///< by operator of the network
  std::vector<StepParameter> parameters;
};

/// Whether it was not there.
bool add_once(std::vector<TensorId>& list, TensorId id);

}  // namespace plimsoll
