#include "workload/operators/operator_effects.hpp"

namespace plimsoll::effect {

/// All positions of one layer: i, f, g, o = s(W x + V h + b), cell' = f cell + i g, h' = o
/// tanh(cell'). PyTorch runs it by separate operators (RNN.cpp; on GPUs only where cuDNN may not):
/// of each position they keep the activated gates, the cell and the state before it, and the tanh
/// of its cell. `fused` is one call of a library. What that reserves from forward to backward is
/// its own affair; here it is what the formulas need: gates, cells and y, from which all else
/// follows.
OperatorEffect lstm(const RuleCall& call) {
  constexpr std::int64_t kGates = 4, kForwardFlops = 28, kBackwardFlops = 30;
  const Dims& x = sequence(call);
  const std::int64_t features = call["features"];
  const std::int64_t gates = elements_of({kGates, features}).count();
  OperatorEffect effect;
  effect.output = {x[0], features};
  const Dims each = call.over_batch(effect.output), each_gate = call.over_batch({x[0], gates});
  effect.keeps_inputs = true;
  effect.inputs = OperatorEffect::Inputs::weight;
  effect.keeps_output = call["fused"] != 0;
  effect.extras = {{"gates", each_gate}, {"cells", each}};
  if (call["fused"] == 0) {
    effect.extras.push_back({"tanh_cells", each});
    effect.extras.push_back({"states", each, ElementType::value, true});
    effect.forward_workspace = call.bytes({x[0], gates});  // W x of all positions
  }
  effect.parameters = {{"weight_ih", {gates, x[1]}}, {"weight_hh", {gates, features}}};
  if (call["bias"] != 0)
    effect.parameters.insert(effect.parameters.end(), {{"bias_ih", {gates}}, {"bias_hh", {gates}}});
  const Elements outputs = count(call, effect.output);
  multiply(effect, outputs * kGates * x[1] + outputs * kGates * features);
  effect.forward_flops += flops(outputs, kForwardFlops);
  effect.backward_flops = flops(outputs, kBackwardFlops);
  return effect;
}

}  // namespace plimsoll::effect
