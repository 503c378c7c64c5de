/// What a task of a schedule runs: operators, one after the other, and the two halves of a whole
/// backward as one.
#pragma once

#include "plan/build/plan_builder.hpp"
#include "policy/pipeline/schedule/schedule.hpp"

#include <span>
#include <vector>

namespace plimsoll {

/// One task of a device's order from `begin` on, or two that overlap.
[[nodiscard]] std::span<const Task> next_tasks(std::span<const Task> order, std::size_t begin);

class TaskRuns {
 public:
  using Part = PlanBuilder::Part;

  /// `recomputed` and `operators` are as in Schedule. The arguments must outlive it.
  TaskRuns(const Workload& workload, const Slots& slots, const std::vector<bool>& recomputed,
           std::span<const SlotRuns> operators = {})
      : workload_(workload), slots_(slots), recomputed_(recomputed), operators_(operators) {}

  /// An operator, or the two halves of a whole backward together.
  struct Run {
    Part first, second;
  };
  [[nodiscard]] std::vector<Run> of(const Task& task) const;

  /// The operators of the task, each by itself.
  [[nodiscard]] std::vector<Part> parts(const Task& task) const;

  /// Steps of each task, by device, without moves, messages and optimizer; of two tasks that overlap the
  /// first has those of both. O(tasks + operators).
  [[nodiscard]] std::vector<std::vector<std::size_t>> counts(const Schedule& schedule) const;
  /// Their sum.
  [[nodiscard]] std::size_t count(const Schedule& schedule) const;

 private:
  /// Steps of the tasks of a slot.
  struct StepCounts {
    std::size_t forwards = 0;
    std::size_t inputs = 0, weights = 0;  ///< operators of the halves of its backward
    std::size_t halves = 0;               ///< pairs of them that a whole backward runs as one
  };

  [[nodiscard]] std::vector<Run> planned(const Task& task) const;
  [[nodiscard]] StepCounts count(std::size_t slot) const;
  [[nodiscard]] static std::size_t steps_of(const Task& task, const StepCounts& count,
                                            bool overlaps);
  [[nodiscard]] Form form_of(const Task& task) const;
  [[nodiscard]] bool is_weight_half(OperatorId op) const;
  [[nodiscard]] bool begins_halves(Slots::StageBackward operators, std::size_t i) const;

  const Workload& workload_;
  const Slots& slots_;
  const std::vector<bool>& recomputed_;
  const std::span<const SlotRuns> operators_;
};

}  // namespace plimsoll
