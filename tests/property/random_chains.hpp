/// Random chains and platforms for property tests. Fixed seeds; times and sizes are small integers,
/// zeros among them, so that ties and steps of no duration are the rule.
#pragma once

#include "support/chains.hpp"
#include "support/dice.hpp"

namespace plimsoll::test {

inline Chain random_chain_of(Dice& dice, std::int64_t stages) {
  Chain chain;
  chain.output.push_back(dice(0, 3));
  for (std::int64_t i = 0; i < stages; ++i) {
    chain.forward.push_back(dice(0, 6));
    chain.backward.push_back(dice(0, 9));
    chain.output.push_back(dice(0, 3));
    chain.saved.push_back(chain.output.back() + dice(0, 6));
    chain.forward_workspace.push_back(dice(0, 2));
    chain.backward_workspace.push_back(dice(0, 3));
  }
  return chain;
}

inline Chain random_chain(Dice& dice, std::int64_t most_stages = 7) {
  return random_chain_of(dice, dice(1, most_stages));
}

/// Unlimited in half of the cases, else with room for the input and up to 40 B.
inline OneGpu random_gpu(Dice& dice, std::int64_t input) {
  OneGpu gpu;
  if (dice(0, 1) == 1) gpu.capacity = input + dice(1, 40);
  gpu.bandwidth_out = dice(1, 4);
  gpu.bandwidth_in = dice(1, 4);
  if (dice(0, 2) == 0) gpu.link += ", duplex: half";
  if (dice(0, 2) == 0) gpu.link += fmt::format(", latency: {} s", dice(0, 2));
  return gpu;
}

}  // namespace plimsoll::test
