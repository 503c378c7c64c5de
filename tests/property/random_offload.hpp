/// Random chains under a budget for planners of offload, in units: 1 s, 1 B, 1 B/s. Backwards take
/// twice their forwards; the budget lies between what every schedule needs and what none of them
/// would exceed.
#pragma once

#include "policy/offload/model/offload_model.hpp"
#include "property/random_chains.hpp"

namespace plimsoll::test {

/// The chain, and its budget in the capacity of the platform.
struct OffloadInstance {
  Chain chain;
  OneGpu gpu;
};

/// The model that offload_model() makes of such a chain.
inline OffloadModel model_of(const OffloadInstance& it) {
  constexpr std::int64_t kSecond = 1'000'000'000'000;
  OffloadModel model;
  for (std::size_t s = 0; s < it.chain.stages(); ++s) {
    OffloadStage stage;
    stage.forward = Time{it.chain.forward[s] * kSecond};
    stage.backward = Time{it.chain.backward[s] * kSecond};
    stage.moved = Bytes{it.chain.saved[s]};
    stage.gradient = Bytes{it.chain.output[s + 1]};
    stage.out = stage.moving = transfer_time(stage.moved, ByteRate{it.gpu.bandwidth_out});
    stage.in = transfer_time(stage.moved, ByteRate{it.gpu.bandwidth_in});
    model.stages.push_back(stage);
  }
  model.candidates = it.chain.stages() < 2 ? 0 : it.chain.stages() - 2;
  model.resident = model.input_gradient = Bytes{it.chain.output.front()};
  model.budget = it.gpu.capacity ? Bytes{*it.gpu.capacity} : Bytes::unlimited();
  model.out_rate = ByteRate{it.gpu.bandwidth_out};
  model.in_rate = ByteRate{it.gpu.bandwidth_in};
  return model;
}

inline OffloadInstance random_offload_instance(Dice& dice, std::int64_t stages) {
  OffloadInstance it;
  it.chain.output.push_back(dice(1, 3));
  for (std::int64_t s = 0; s < stages; ++s) {
    it.chain.forward.push_back(dice(1, 6));
    it.chain.backward.push_back(2 * it.chain.forward.back());
    it.chain.output.push_back(dice(1, 3));
    it.chain.saved.push_back(dice(it.chain.output.back(), 9));
  }
  const OffloadModel model = model_of(it);
  const Bytes least = smallest_budget(model, everything(model));
  const Bytes most = smallest_budget(model, OffloadSet(model.stages.size(), false));
  it.gpu.capacity = dice(least.count(), most.count());
  return it;
}

inline OffloadModel random_offload(Dice& dice, std::int64_t stages) {
  return model_of(random_offload_instance(dice, stages));
}

}  // namespace plimsoll::test
