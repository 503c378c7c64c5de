#include "policy/pipeline/schedule/task_runs.hpp"

#include <numeric>

namespace plimsoll {

std::span<const Task> next_tasks(std::span<const Task> order, std::size_t begin) {
  return order.subspan(begin, order[begin].overlaps_next ? 2 : 1);
}

bool TaskRuns::is_weight_half(OperatorId op) const {
  return workload_[op].phase == Phase::backward_weight;
}

/// Whether operator `i` and the next one are the halves of one backward.
bool TaskRuns::begins_halves(Slots::StageBackward operators, std::size_t i) const {
  if (i + 1 == operators.size()) return false;
  const Operator &first = workload_[operators[i]], &second = workload_[operators[i + 1]];
  return first.phase == Phase::backward_input && second.phase == Phase::backward_weight &&
         first.forward == second.forward && second.collective.kind == CollectiveKind::none;
}

/// A forward that is run once more leaves its output alone.
Form TaskRuns::form_of(const Task& task) const {
  const bool again = !recomputed_.empty() && recomputed_[task.slot];
  return again && task.kind == Task::Kind::forward ? Form::bare : Form::keep;
}

/// A backward as a whole runs what its halves would.
std::vector<TaskRuns::Run> TaskRuns::planned(const Task& task) const {
  const SlotRuns& slot = operators_[task.slot];
  std::vector<Run> runs;
  const auto add = [&](const std::vector<SlotRuns::Part>& parts) {
    for (const SlotRuns::Part& it : parts) {
      Run& run = runs.emplace_back(Run{{it.first, task.microbatch, it.form}, {}});
      if (it.second != kNoOperator) run.second = {it.second, task.microbatch};
    }
  };
  if (task.kind == Task::Kind::forward) add(slot.forward);
  if (task.kind == Task::Kind::backward || task.kind == Task::Kind::backward_input)
    add(slot.backward);
  if (task.kind == Task::Kind::backward || task.kind == Task::Kind::backward_weight)
    add(slot.backward_weight);
  return runs;
}

std::vector<TaskRuns::Run> TaskRuns::of(const Task& task) const {
  if (!operators_.empty() && operators_[task.slot].is_planned()) return planned(task);
  std::vector<Run> runs;
  const Form form = form_of(task);
  const auto add = [&](OperatorId op) { runs.push_back({{op, task.microbatch, form}, {}}); };
  if (task.kind == Task::Kind::forward || task.kind == Task::Kind::recompute)
    slots_.for_forwards(task.slot, add);
  else
    slots_.for_backwards(task.slot, [&](Slots::StageBackward operators) {
      for (std::size_t i = 0; i < operators.size(); ++i) {
        if (task.kind == Task::Kind::backward && begins_halves(operators, i)) {
          runs.push_back({{operators[i], task.microbatch}, {operators[i + 1], task.microbatch}});
          ++i;
        } else if (task.kind == Task::Kind::backward ||
                   is_weight_half(operators[i]) == (task.kind == Task::Kind::backward_weight)) {
          add(operators[i]);
        }
      }
    });
  return runs;
}

std::vector<TaskRuns::Part> TaskRuns::parts(const Task& task) const {
  std::vector<Part> parts;
  for (const Run& run : of(task)) {
    parts.push_back(run.first);
    if (run.second.op != kNoOperator) parts.push_back(run.second);
  }
  return parts;
}

TaskRuns::StepCounts TaskRuns::count(std::size_t slot) const {
  StepCounts count;
  if (!operators_.empty() && operators_[slot].is_planned()) {
    const SlotRuns& runs = operators_[slot];
    count = {runs.forward.size(), runs.backward.size(), runs.backward_weight.size()};
    for (const auto* parts : {&runs.backward, &runs.backward_weight})
      for (const SlotRuns::Part& part : *parts)
        if (part.second != kNoOperator) ++count.inputs, ++count.halves;
    return count;
  }
  slots_.for_forwards(slot, [&](OperatorId) { ++count.forwards; });
  slots_.for_backwards(slot, [&](Slots::StageBackward operators) {
    for (std::size_t i = 0; i < operators.size(); ++i) {
      ++(is_weight_half(operators[i]) ? count.weights : count.inputs);
      if (begins_halves(operators, i)) ++count.halves;
    }
  });
  return count;
}

std::size_t TaskRuns::steps_of(const Task& task, const StepCounts& count, bool overlaps) {
  switch (task.kind) {
    case Task::Kind::forward:
    case Task::Kind::recompute:
      return count.forwards;
    case Task::Kind::backward:
      return count.inputs + count.weights - (overlaps ? 0 : count.halves);
    case Task::Kind::backward_input:
      return count.inputs;
    case Task::Kind::backward_weight:
      return count.weights;
    default:
      return 0;
  }
}

std::vector<std::vector<std::size_t>> TaskRuns::counts(const Schedule& schedule) const {
  std::vector<StepCounts> of;
  for (std::size_t slot = 0; slot < slots_.count(); ++slot) of.push_back(count(slot));
  std::vector<std::vector<std::size_t>> counts;
  for (const std::vector<Task>& order : schedule.orders) {
    auto& its = counts.emplace_back(order.size());
    for (std::size_t t = 0; t < order.size();) {
      const std::span<const Task> tasks = next_tasks(order, t);
      for (const Task& task : tasks) its[t] += steps_of(task, of[task.slot], tasks.size() == 2);
      if (tasks.size() == 2) --its[t];
      t += tasks.size();
    }
  }
  return counts;
}

std::size_t TaskRuns::count(const Schedule& schedule) const {
  std::size_t steps = 0;
  for (const auto& its : counts(schedule))
    steps += std::accumulate(its.begin(), its.end(), std::size_t{0});
  return steps;
}

}  // namespace plimsoll
