/// A layer of one's own as a rule: PReLU, y = max(x, 0) + a_c min(x, 0), with one learned slope a_c
/// a channel.
#pragma once

#include "workload/operators/operator_rules.hpp"

namespace plimsoll::example {

inline OperatorEffect prelu(const RuleCall& call) {
  const Dims& x = call.inputs.front();
  const std::int64_t elements = elements_of(x).count() * call.batch;
  OperatorEffect effect;
  effect.output = x;
  effect.parameters = {{"slope", {channels_of(x)}}};
  effect.keeps_inputs = true;  // the sign of x decides the gradient of x, its value that of a_c
  effect.forward_flops = Flops{2} * elements;
  effect.backward_flops = Flops{4} * elements;
  return effect;
}

inline OperatorRule prelu_rule() {
  return {
      "prelu",
      OperatorClass::elementwise,
      Autocast::low,  // on PyTorch's list of what computes in 16 bits
      {},
      prelu,
      "a learned slope a channel; keeps x",
  };
}

}  // namespace plimsoll::example
