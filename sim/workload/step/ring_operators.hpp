/// Attention to blocks of keys and values that pass from rank to rank of a context axis (ring_attention_rule()). Internal
/// to this folder.
#pragma once

#include "workload/step/step_gradients.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

class RingOperators {
 public:
  RingOperators(PartialStep& step, StepGradients& gradients) : step_(step), gradients_(gradients) {}

  /// With each block while the next one comes; what they give is merged in place. The last block is
  /// kept for the backward.
  void add_forward(const NetworkOperator& op, StepLayer& layer);
  /// Blocks go back from rank to rank until each has its own; the gradients of a block go with it, and
  /// every rank adds its part while it computes the next. `spec`: of the whole backward.
  void add_backward(const NetworkOperator& op, const StepLayer& layer,
                    const ValueGradient& incoming, const OperatorSpec& spec);

 private:
  TensorId add_first_block(const NetworkOperator& op);
  std::vector<TensorId> add_pass(const NetworkOperator& op, const StepLayer& layer, Phase phase,
                                 std::int64_t r, const std::vector<TensorId>& held);
  void add_to_query(const NetworkOperator& op, const ValueGradient& incoming,
                    std::vector<TensorId>& of_query, OperatorSpec& it);
  std::vector<TensorId> make_block_gradients(const NetworkOperator& op,
                                             const ValueGradient& incoming, bool is_own,
                                             OperatorSpec& it);
  void add_arrived(const NetworkOperator& op, const StepLayer& layer, std::int64_t r,
                   const std::vector<TensorId>& arrived, const std::vector<TensorId>& made);

  PartialStep& step_;
  StepGradients& gradients_;
};

}  // namespace plimsoll
