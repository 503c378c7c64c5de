#include "policy/pipeline/schedule/weight_versions.hpp"

#include <algorithm>

namespace plimsoll {

WeightVersions::WeightVersions(const Problem& problem, const Slots& slots,
                               const WeightUpdates& updates, PlanBuilder& builder)
    : problem_(problem),
      slots_(slots),
      updates_(updates),
      builder_(builder),
      devices_(updates.read.size()) {
  for (std::uint32_t d = 0; d < devices_.size(); ++d) gather(slots, d);
}

void WeightVersions::gather(const Slots& slots, std::uint32_t device) {
  const Workload& workload = problem_.workload;
  Device& it = devices_[device];
  const auto add_weights = [&](OperatorId op) {
    for (const TensorId read : workload.list(workload[op].reads))
      if (workload[read].tensor_class == TensorClass::parameter &&
          std::ranges::find(it.weights, read) == it.weights.end())
        it.weights.push_back(read);
  };
  slots.for_forwards(device, add_weights);
  slots.for_backwards(device, [&](Slots::StageBackward operators) {
    std::ranges::for_each(operators, add_weights);
  });
  const auto made_here = [&](TensorId read) {
    const auto& makers = slots.makers(read);
    return std::ranges::find(makers, device) != makers.end();
  };
  for (std::uint32_t op = workload.optimizer_begin; op < workload.operators.size(); ++op)
    if (const auto reads = workload.list(workload.operators[op].reads);
        reads.empty() || std::ranges::any_of(reads, made_here))
      it.optimizers.push_back(OperatorId{op});
}

void WeightVersions::before_forward(std::uint32_t device, std::uint32_t microbatch) {
  Device& it = devices_[device];
  if (it.versions.empty()) {
    auto& first = it.versions.emplace_back();
    for (const TensorId weight : it.weights)
      first.push_back(builder_.version(weight, slots_.memory(device)));
  }
  for (const BufferId version : it.versions[updates_.read[device][microbatch]])
    builder_.read_version(version, microbatch);
}

void WeightVersions::after_forward(std::uint32_t device, std::uint32_t microbatch, StepId last) {
  if (!updates_.begun.empty() && microbatch + 1 == updates_.begun[device])
    add_version(device, microbatch, last);
}

void WeightVersions::after_backward(std::uint32_t device, std::uint32_t microbatch, StepId last,
                                    LaneId stream) {
  Device& it = devices_[device];
  for (const TensorId weight : it.weights)
    builder_.read_latest(weight, microbatch, slots_.memory(device));
  if (++it.backwards % updates_.every == 0) update(device, microbatch, last, stream);
}

void WeightVersions::update(std::uint32_t device, std::uint32_t microbatch, StepId last,
                            LaneId stream) {
  Device& it = devices_[device];
  const auto& read = updates_.read[device];
  // Backwards run in the order of the microbatches.
  if (microbatch + 1 < read.size() && read[microbatch + 1] < it.versions.size())
    add_version(device, microbatch, last);
  else
    it.versions.push_back(it.versions.back());
  for (const OperatorId op : it.optimizers) builder_.compute(stream, op, microbatch);
}

void WeightVersions::add_version(std::uint32_t device, std::uint32_t microbatch, StepId last) {
  Device& it = devices_[device];
  auto& next = it.versions.emplace_back();
  for (const TensorId weight : it.weights)
    next.push_back(builder_.add_version(weight, slots_.memory(device), microbatch, last));
}

}  // namespace plimsoll
