#include "policy/pipeline/schedule/weight_versions.hpp"

#include "base/dense_id.hpp"

#include <algorithm>
#include <stdexcept>

namespace plimsoll {

WeightVersions::WeightVersions(const Problem& problem, const std::vector<Slots>& placed,
                               const WeightUpdates& updates, PlanBuilder& builder)
    : problem_(problem),
      updates_(updates),
      builder_(builder),
      replicas_(static_cast<std::uint32_t>(placed.size())),
      devices_(placed.size() * updates.read.size()) {
  for (const Slots& slots : placed)
    for (std::size_t slot = 0; slot < slots.count(); ++slot) {
      const std::uint32_t device = slots.device(slot);
      devices_[device].slots = &slots;
      devices_[device].slot = slot;
      gather(device);
    }
}

void WeightVersions::gather(std::uint32_t device) {
  const Workload& workload = problem_.workload;
  Device& it = devices_[device];
  const auto add_weights = [&](OperatorId op) {
    if (brings_parameters(workload[op]))
      throw std::invalid_argument(
          "a schedule that updates parameters on the way keeps versions of them, and `" +
          workload[op].name + "` brings them from elsewhere for each microbatch");
    for (const TensorId read : workload.list(workload[op].reads))
      if (workload[read].tensor_class == TensorClass::parameter && !workload[read].is_whole &&
          std::ranges::find(it.weights, read) == it.weights.end())
        it.weights.push_back(read);
  };
  it.slots->for_forwards(it.slot, add_weights);
  it.slots->for_backwards(it.slot, [&](Slots::StageBackward operators) {
    std::ranges::for_each(operators, add_weights);
  });
  // As optimizer_steps.hpp has them run: on what backwards made here, or updates before.
  std::vector<bool> by_updates(workload.tensors.size(), false);
  const auto made_here = [&](TensorId read) {
    const auto& makers = it.slots->makers(read);
    return by_updates[index(read)] || std::ranges::find(makers, device) != makers.end();
  };
  for (std::uint32_t op = workload.optimizer_begin; op < workload.operators.size(); ++op) {
    if (moves_state(workload.operators[op].collective.kind))
      throw std::invalid_argument(
          "a schedule that updates parameters on the way has their state with "
          "them, and `" +
          workload.operators[op].name + "` moves it from or to another memory once a step");
    for (const TensorId changed : workload.list(workload.operators[op].updates))
      if (workload[changed].is_whole)
        throw std::invalid_argument(
            "a schedule that updates parameters on the way keeps versions of them, and `" +
            workload[changed].name +
            "` is one copy for a whole step; expected `fp8: {recipe: ..., weights: anew}`");
    const auto reads = workload.list(workload.operators[op].reads);
    if (!reads.empty() && std::ranges::none_of(reads, made_here)) continue;
    it.optimizers.push_back(OperatorId{op});
    for (const TensorList list : {workload.operators[op].kept, workload.operators[op].updates})
      for (const TensorId id : workload.list(list)) by_updates[index(id)] = true;
  }
}

void WeightVersions::before_forward(std::uint32_t device, std::uint32_t microbatch) {
  Device& it = devices_[device];
  if (it.versions.empty()) {
    auto& first = it.versions.emplace_back();
    for (const TensorId weight : it.weights)
      first.push_back(builder_.version(weight, memory(device)));
  }
  for (const BufferId version : it.versions[updates_.read[it.slot][own(microbatch)]])
    builder_.read_version(version, microbatch);
}

void WeightVersions::after_forward(std::uint32_t device, std::uint32_t microbatch, StepId last) {
  if (!updates_.begun.empty() && own(microbatch) + 1 == updates_.begun[devices_[device].slot])
    add_version(device, microbatch, {&last, 1});
}

bool WeightVersions::after_backward(std::uint32_t device, std::uint32_t microbatch) {
  Device& it = devices_[device];
  for (const TensorId weight : it.weights) builder_.read_latest(weight, microbatch, memory(device));
  return ++it.backwards % updates_.every == 0;
}

void WeightVersions::update(std::uint32_t device, std::uint32_t microbatch,
                            std::span<const StepId> after, LaneId stream) {
  Device& it = devices_[device];
  const auto& read = updates_.read[it.slot];
  // Backwards run in the order of the microbatches.
  const std::uint32_t next = own(microbatch) + 1;
  if (next < read.size() && read[next] < it.versions.size())
    add_version(device, microbatch, after);
  else
    it.versions.push_back(it.versions.back());
  for (const OperatorId op : it.optimizers) builder_.compute(stream, op, microbatch);
}

void WeightVersions::add_version(std::uint32_t device, std::uint32_t microbatch,
                                 std::span<const StepId> after) {
  Device& it = devices_[device];
  auto& next = it.versions.emplace_back();
  for (const TensorId weight : it.weights)
    next.push_back(builder_.add_version(weight, memory(device), microbatch, after));
}

}  // namespace plimsoll
