#include "plan/core/readers.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

/// Whether all microbatches have the same one.
bool is_shared(const Tensor& tensor) {
  return tensor.lifetime == Lifetime::resident || tensor.lifetime == Lifetime::accumulated;
}

}  // namespace

Readers::Readers(const Plan& plan)
    : begin_(plan.buffers.size() + 1),
      producer_(plan.buffers.size(), kNoStep),
      taken_by_(plan.buffers.size(), kNoStep) {
  for (const Step& step : plan.steps)
    for (const BufferId buffer : plan.list(step.reads))
      ++begin_[static_cast<std::size_t>(buffer) + 1];
  for (std::size_t b = 1; b < begin_.size(); ++b) begin_[b] += begin_[b - 1];

  steps_.resize(begin_.back());
  std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
  for (std::uint32_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    for (const BufferId buffer : plan.list(step.reads)) {
      steps_[next[static_cast<std::size_t>(buffer)]++] = StepId{s};
      if (step.kind == StepKind::copy && step.source != SourceRelease::keep)
        taken_by_[static_cast<std::size_t>(buffer)] = StepId{s};
    }
    for (const BufferId buffer : plan.list(step.writes))
      producer_[static_cast<std::size_t>(buffer)] = StepId{s};
  }
}

bool holds_value(const Buffer& buffer, TensorId value, std::uint32_t microbatch,
                 const WorkingMemories& memories, const Workload& workload) {
  return memories.has(buffer.memory) &&
         (is_shared(workload[value]) || buffer.microbatch == microbatch) &&
         (buffer.tensor == value || workload[value].inside == buffer.tensor ||
          workload[value].later == buffer.tensor);
}

void HeldValues::gather(const Plan& plan, std::span<const BufferId> buffers,
                        std::uint32_t microbatch, const WorkingMemories& memories) {
  any_.clear();
  of_microbatch_.clear();
  for (const BufferId id : buffers) {
    const Buffer& buffer = plan[id];
    if (!memories.has(buffer.memory)) continue;
    any_.insert(buffer.tensor);
    if (buffer.microbatch == microbatch) of_microbatch_.insert(buffer.tensor);
  }
}

bool HeldValues::has(TensorId value) const {
  const IdSet<TensorId>& held = is_shared(workload_[value]) ? any_ : of_microbatch_;
  const auto is_held = [&](TensorId id) { return id != kNoTensor && held.has(id); };
  return held.has(value) || is_held(workload_[value].inside) || is_held(workload_[value].later);
}

void WantedValues::clear() {
  any_.clear();
  of_microbatch_.clear();
}

void WantedValues::add(TensorId value) {
  IdSet<TensorId>& wanted = is_shared(workload_[value]) ? any_ : of_microbatch_;
  wanted.insert(value);
  for (const TensorId holder : {workload_[value].inside, workload_[value].later})
    if (holder != kNoTensor) wanted.insert(holder);
}

bool WantedValues::are_in(const Buffer& buffer, std::uint32_t microbatch,
                          const WorkingMemories& memories) const {
  return memories.has(buffer.memory) &&
         (any_.has(buffer.tensor) ||
          (buffer.microbatch == microbatch && of_microbatch_.has(buffer.tensor)));
}

std::span<const StepId> LastInLanes::of(std::span<const StepId> steps) {
  seen_.clear();
  seen_.grow(plan_.lanes.size());
  last_.clear();
  for (std::size_t i = steps.size(); i-- > 0;) {
    // Copies of one channel start in order but may end in another: each of them counts.
    const LaneId lane = plan_[steps[i]].lane;
    if (plan_[lane].kind == Lane::Kind::channel || seen_.insert(lane)) last_.push_back(steps[i]);
  }
  std::ranges::reverse(last_);
  return last_;
}

}  // namespace plimsoll
