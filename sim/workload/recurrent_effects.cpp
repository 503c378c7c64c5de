#include "workload/operator_effects.hpp"

namespace plimsoll::effect {

/// All positions of one layer in one call, as a library runs it: i, f, g, o = s(W x + V h + b),
/// cell' = f cell + i g, h' = o tanh(cell'). What a library reserves from forward to backward is
/// its own affair; here it is what the formulas need: the four activated gates and the cell of
/// every position, from which tanh(cell) follows.
OperatorEffect lstm(const RuleCall& call) {
  constexpr std::int64_t kGates = 4, kForwardFlops = 28, kBackwardFlops = 30;
  const Dims& x = sequence(call);
  const std::int64_t features = call["features"];
  const std::int64_t gates = elements_of({kGates, features}).count();
  OperatorEffect effect;
  effect.output = {x[0], features};
  effect.keeps_inputs = effect.keeps_output = true;
  effect.extras = {{"gates", call.over_batch({x[0], gates})},
                   {"cells", call.over_batch({x[0], features})}};
  effect.parameters = {{"weight_ih", {gates, x[1]}},
                       {"weight_hh", {gates, features}},
                       {"bias_ih", {gates}},
                       {"bias_hh", {gates}}};
  const Elements outputs = count(call, effect.output);
  multiply(effect, outputs * kGates * x[1] + outputs * kGates * features);
  effect.forward_flops += flops(outputs, kForwardFlops);
  effect.backward_flops = flops(outputs, kBackwardFlops);
  return effect;
}

}  // namespace plimsoll::effect
