#include "plan/core/readers.hpp"

#include <algorithm>

namespace plimsoll {

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

bool holds_value(const Buffer& buffer, TensorId value, std::uint32_t microbatch, MemoryId memory,
                 const Workload& workload) {
  const Lifetime lifetime = workload[value].lifetime;
  const bool shared = lifetime == Lifetime::resident || lifetime == Lifetime::accumulated;
  return buffer.memory == memory && (shared || buffer.microbatch == microbatch) &&
         (buffer.tensor == value || workload[value].inside == buffer.tensor);
}

std::vector<StepId> last_in_each_lane(const Plan& plan, std::span<const StepId> steps) {
  std::vector<StepId> last;
  last_in_each_lane(plan, steps, last);
  return last;
}

void last_in_each_lane(const Plan& plan, std::span<const StepId> steps, std::vector<StepId>& last) {
  last.clear();
  for (std::size_t i = steps.size(); i-- > 0;) {
    // Copies of one channel start in order but may end in another: each of them counts.
    const LaneId lane = plan[steps[i]].lane;
    const bool seen = plan[lane].kind == Lane::Kind::stream &&
                      std::ranges::any_of(last, [&](StepId s) { return plan[s].lane == lane; });
    if (!seen) last.push_back(steps[i]);
  }
  std::ranges::reverse(last);
}

}  // namespace plimsoll
