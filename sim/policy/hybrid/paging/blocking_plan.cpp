#include "policy/hybrid/paging/blocking_plan.hpp"

#include "plan/build/plan_builder.hpp"
#include "policy/claims/copy_time.hpp"
#include "policy/claims/judged_claims.hpp"
#include "policy/hybrid/graph/energy_costs.hpp"

#include <vector>

namespace plimsoll {

namespace {

class BlockingSteps {
 public:
  BlockingSteps(const PagingPlace& place, const std::string& policy)
      : place_(place),
        builder_(place.problem.workload, place.problem.platform, policy),
        stream_(builder_.stream(place.memories.processor)),
        is_there_(place.graph.values.size(), false) {}

  void take(const PagingStep& step) {
    switch (step.move) {
      case PagingMove::run:
        return run(step.id);
      case PagingMove::drop:
        builder_.release(tensor(step.id), 0, place_.memories.home);
        is_there_[step.id] = false;
        return;
      case PagingMove::copy_out:
        return copy(step.id, place_.memories.home, place_.memories.storage);
      case PagingMove::read_back:
        is_there_[step.id] = true;
        return copy(step.id, place_.memories.storage, place_.memories.home);
      case PagingMove::drop_saved:
        return builder_.release(tensor(step.id), 0, place_.memories.storage);
    }
  }

  Plan finish(Bytes limit) {
    if (!limit.is_unlimited()) builder_.limit(place_.memories.home, limit);
    return builder_.finish();
  }

 private:
  [[nodiscard]] TensorId tensor(std::uint32_t value) const {
    return place_.graph.values[value].tensor;
  }

  void run(std::uint32_t node) {
    for (const std::uint32_t value : place_.graph.nodes[node].makes) {
      if (is_there_[value]) builder_.release(tensor(value), 0, place_.memories.home);
      is_there_[value] = !place_.graph.values[value].readers.empty();
    }
    const StepId step = builder_.compute(stream_, OperatorId{node});
    if (last_copy_) builder_.after_end(step, *last_copy_);
    last_copy_.reset();
    last_ = step;
  }

  void copy(std::uint32_t value, MemoryId from, MemoryId to) {
    const StepId step =
        builder_.copy(builder_.channel(from, to), tensor(value), 0, SourceRelease::keep);
    if (last_) builder_.after_end(step, *last_);
    last_ = last_copy_ = step;
  }

  const PagingPlace& place_;
  PlanBuilder builder_;
  const LaneId stream_;
  std::vector<bool> is_there_;  ///< by value
  std::optional<StepId> last_, last_copy_;
};

/// Calls `visit` with the memories and the bytes of each copy.
void for_each_copy(const PagingPlace& place, std::span<const PagingStep> steps, auto visit) {
  const auto& [processor, home, storage] = place.memories;
  for (const PagingStep& step : steps) {
    if (step.move == PagingMove::copy_out) visit(home, storage, place.graph.values[step.id].bytes);
    if (step.move == PagingMove::read_back) visit(storage, home, place.graph.values[step.id].bytes);
  }
}

}  // namespace

Plan blocking_plan(const PagingPlace& place, std::span<const PagingStep> steps, Bytes limit,
                   const std::string& policy) {
  BlockingSteps taken(place, policy);
  for (const PagingStep& step : steps) taken.take(step);
  Plan plan = taken.finish(limit);
  claim_or_judge(plan, place.problem, place.memories.home);
  const Energy load = energy_of_steps(place, steps) +
                      place.problem.platform.idle_power() * time_of_copies(place, steps);
  // Waits that are long enough to sleep in take less.
  const auto& power = place.problem.platform[place.memories.processor].power;
  if (!power || !power->sleep_after) plan.claims.energy = at_source(place.problem.platform, load);
  return plan;
}

Time time_of_copies(const PagingPlace& place, std::span<const PagingStep> steps) {
  Time sum;
  for_each_copy(place, steps, [&](MemoryId from, MemoryId to, Bytes bytes) {
    sum += copy_time(place.problem, from, to, bytes);
  });
  return sum;
}

Energy energy_of_steps(const PagingPlace& place, std::span<const PagingStep> steps) {
  const std::vector<Energy> runs =
      run_energies(place.problem, place.memories.processor, place.graph);
  const CopyEnergy copies(place.problem, place.memories);
  Energy sum;
  for (const PagingStep& step : steps)
    if (step.move == PagingMove::run) sum += runs[step.id];
  for_each_copy(place, steps, [&](MemoryId from, MemoryId, Bytes bytes) {
    sum += from == place.memories.home ? copies.out(bytes) : copies.back(bytes);
  });
  return sum;
}

}  // namespace plimsoll
