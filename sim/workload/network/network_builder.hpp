/// Builds networks value by value, from layers and from ONNX graphs.
#pragma once

#include "workload/network/network.hpp"
#include "workload/operators/autocast.hpp"
#include "workload/operators/fp8.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace plimsoll {

/// Of a low-rank adapter, which of its two products: to the rank, or back to features.
enum class AdapterPart : std::uint8_t { none, down, up };

/// A call of apply(), with what it has made.
struct NetworkCall {
  const OperatorRule* rule = nullptr;
  RuleArguments arguments;
  std::vector<std::uint32_t> inputs;
  std::string name;
  std::uint32_t link = kNoValue;
  Trained trained;
  std::uint32_t output = kNoValue;
  std::uint32_t op = kNoValue;  ///< the operator, behind casts; kNoValue for a view
  AdapterPart adapter = AdapterPart::none;
};

/// All of it throws LayerError where operators do not fit their inputs, and QuantityOverflow where
/// sizes are out of range. O(1) an operator, but for its inputs and arguments.
class NetworkBuilder {
 public:
  NetworkBuilder(std::int64_t batch, const ValueTypes& types);

  /// A value that is there before the step; `dims` without the batch.
  std::uint32_t add_input(std::string name, Dims dims, bool indices);
  /// The same bytes in another shape, or, with fewer elements, a part of them.
  std::uint32_t view(std::uint32_t value, Dims dims);
  /// One of the parts into which all of the value is split.
  std::uint32_t part(std::uint32_t value, Dims dims);
  /// Adds the operator, behind casts of inputs that it reads in another type. Its output, kNoValue
  /// where it has none. `link`: the operator whose weight it uses as its own, or, where the rule
  /// undoes a pooling, that pooling.
  std::uint32_t apply(const OperatorRule& rule, RuleArguments arguments,
                      std::vector<std::uint32_t> inputs, const std::string& name,
                      std::uint32_t link = kNoValue);
  /// What ranks exchange of a value (exchange_rules.hpp), named after the layer that it is for.
  std::uint32_t exchange(const OperatorRule& rule, RuleArguments arguments, std::uint32_t value,
                         const std::string& name, const std::string& part);
  /// What is trained of the operators to come; all of them before the first call.
  void train(const Trained& trained) { trained_ = trained; }
  /// Widths of the input, and of the operators to come.
  void set_bits(const ElementBits& bits) { bits_ = bits; }
  /// Whether a rank makes but a part of the gradients of parameters of the operators to come.
  void make_partial_gradients(bool partial) { partial_ = partial; }
  /// Whether parameters of the operators to come are of experts that only this rank has.
  void divide_experts(bool divide) { divides_experts_ = divide; }
  /// How those of the operators to come compute that are in fp8; before all of them.
  void set_fp8(const Fp8& fp8) { network_.fp8 = fp8; }
  /// Whether the operators to come are products in fp8.
  void compute_in_fp8(bool in_fp8) { in_fp8_ = in_fp8; }
  /// The value in fp8, one for all that read it so, named after the first.
  std::uint32_t quantized(std::uint32_t value, const std::string& reader);
  /// Of an adapter, what the operators to come are.
  void adapt(AdapterPart part) { adapter_ = part; }
  /// Whether an operator of the rule reads the value in another type, under autocast.
  [[nodiscard]] bool is_cast_for(const OperatorRule& rule, std::uint32_t value) const;
  /// What it reads then, named after the reader; the value itself where it is not cast.
  std::uint32_t cast_for(const OperatorRule& rule, std::uint32_t value, const std::string& reader);
  /// What all ranks of a tensor axis have of the parameters of the last operator, whose dimensions these
  /// are; of stacked weights each rank has its own number.
  void set_whole(const std::vector<std::pair<std::string, Dims>>& parameters);
  /// Every apply() to come is added to `calls`.
  void record(std::vector<NetworkCall>& calls) { calls_ = &calls; }
  /// `weighted`: the loss is multiplied by a number, which is kept.
  void add_loss(Loss loss, std::uint32_t value, const std::string& prefix, bool weighted = false);

  [[nodiscard]] const Dims& dims(std::uint32_t value) const { return network_.values[value].dims; }
  [[nodiscard]] std::uint32_t storage_of(std::uint32_t value) const {
    return network_.values[value].storage;
  }
  /// Of the operator that was added last.
  [[nodiscard]] const OperatorEffect& last_effect() const {
    return network_.operators.back().effect;
  }
  void mark_whole() { network_.operators.back().is_whole = true; }
  [[nodiscard]] std::uint32_t operators() const {
    return static_cast<std::uint32_t>(network_.operators.size());
  }
  /// The network; nothing else may be called afterwards.
  [[nodiscard]] Network take() { return std::move(network_); }

 private:
  std::uint32_t add_operator(NetworkOperator op, RuleArguments arguments);
  void cast_inputs(NetworkOperator& op);
  [[nodiscard]] DType type_of(const NetworkOperator& op) const;
  /// Whether the operator is of a loss that is in a type of its own.
  [[nodiscard]] bool has_type_of_loss(const NetworkOperator& op) const {
    return types_.loss && op.rule->operator_class == OperatorClass::loss;
  }
  std::uint32_t add_value(NetworkValue value);
  std::uint32_t add_gradient(Bytes bytes, bool is_made);
  [[nodiscard]] bool has_gradient(std::uint32_t value) const {
    return network_.gradients[network_.values[value].gradient].is_made;
  }
  [[nodiscard]] RuleCall call_of(const NetworkOperator& op, RuleArguments arguments) const;
  void check_fp8(const NetworkOperator& op) const;
  void check_current(const NetworkValue& value, const OperatorRule& rule) const;
  void tie(NetworkOperator& op) const;
  void undo_pool(const NetworkOperator& op, RuleCall& call);
  std::uint32_t columns_of(std::uint32_t quantized);
  [[nodiscard]] Bytes quantized_bytes(const Dims& dims, Fp8Layouts layouts) const;
  void find_kept(NetworkOperator& op);
  void keep_inputs_of(NetworkOperator& op);
  void add_output(NetworkOperator& op);
  [[nodiscard]] std::uint32_t gathered_again(std::uint32_t part);
  void keep_inputs(const NetworkOperator& op);
  static void copy_slices(const NetworkValue& changed, Bytes bytes, OperatorEffect& effect);

  Network network_;
  const ValueTypes types_;
  Trained trained_;
  ElementBits bits_;
  bool partial_ = false, divides_experts_ = false, in_fp8_ = false;
  AdapterPart adapter_ = AdapterPart::none;
  std::vector<std::uint32_t> in_fp8_of_;  ///< by value: the same in fp8, or kNoValue
  std::vector<NetworkCall>* calls_ = nullptr;
};

}  // namespace plimsoll
