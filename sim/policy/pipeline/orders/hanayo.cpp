#include "policy/interface/registry.hpp"
#include "policy/pipeline/planning/plan_pipeline.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// Lists one unit of microbatches in time: a free device takes a ready backward first (of the
/// lowest microbatch, then of the deepest slot), else the ready forward of the deepest slot (of the
/// lowest microbatch).
class UnitScheduler {
 public:
  UnitScheduler(const SlotCosts& costs, std::uint32_t first, std::uint32_t count)
      : costs_(costs),
        first_(first),
        count_(count),
        held_(costs.devices),
        free_at_(costs.devices),
        ready_(2 * costs.slots.size() * count) {
    for (std::uint32_t slot = 0; slot < costs.slots.size(); ++slot)
      held_[costs.placement[slot]].push_back(slot);
    for (std::uint32_t k = 0; k < count; ++k) ready(Task::Kind::forward, 0, k) = Time{};
  }

  void append_to(std::vector<std::vector<Task>>& orders) {
    Time now;
    for (std::size_t left = ready_.size(); left > 0;) {
      bool started = false;
      for (std::uint32_t d = 0; d < costs_.devices; ++d) {
        if (free_at_[d] > now) continue;
        const std::optional<Task> task = next(d, now);
        if (!task) continue;
        start(*task, d, now);
        orders[d].push_back({task->kind, task->slot, first_ + task->microbatch});
        --left;
        started = true;
      }
      if (!started && left > 0) now = next_moment(now);
    }
  }

 private:
  /// When a task can start; nothing where that is not known, or it has started.
  std::optional<Time>& ready(Task::Kind kind, std::uint32_t slot, std::uint32_t microbatch) {
    const std::size_t half = kind == Task::Kind::forward ? 0 : costs_.slots.size();
    return ready_[(half + slot) * count_ + microbatch];
  }

  std::optional<Task> next(std::uint32_t device, Time now) {
    const std::vector<std::uint32_t>& held = held_[device];
    const auto is_ready = [&](const Task& task) {
      const std::optional<Time>& when = ready(task.kind, task.slot, task.microbatch);
      return when && *when <= now;
    };
    for (std::uint32_t k = 0; k < count_; ++k)
      for (auto slot = held.rbegin(); slot != held.rend(); ++slot)
        if (const Task task{Task::Kind::backward, *slot, k}; is_ready(task)) return task;
    for (auto slot = held.rbegin(); slot != held.rend(); ++slot)
      for (std::uint32_t k = 0; k < count_; ++k)
        if (const Task task{Task::Kind::forward, *slot, k}; is_ready(task)) return task;
    return std::nullopt;
  }

  void start(const Task& task, std::uint32_t device, Time now) {
    const SlotCosts::Slot& slot = costs_.slots[task.slot];
    const std::uint32_t k = task.microbatch;
    ready(task.kind, task.slot, k) = std::nullopt;
    if (task.kind == Task::Kind::forward) {
      free_at_[device] = now + slot.forward;
      if (task.slot + 1 < costs_.slots.size())
        ready(Task::Kind::forward, task.slot + 1, k) = free_at_[device] + slot.forward_message;
      else
        ready(Task::Kind::backward, task.slot, k) = free_at_[device];
    } else {
      free_at_[device] = now + slot.backward_input + slot.backward_weight;
      if (task.slot > 0)
        ready(Task::Kind::backward, task.slot - 1, k) = free_at_[device] + slot.backward_message;
    }
  }

  /// The first moment after `now` at which a device becomes free or a task ready.
  Time next_moment(Time now) const {
    Time next = Time::unlimited();
    for (const Time time : free_at_)
      if (time > now) next = std::min(next, time);
    for (const std::optional<Time>& time : ready_)
      if (time && *time > now) next = std::min(next, *time);
    return next;
  }

  const SlotCosts& costs_;
  std::uint32_t first_, count_;
  std::vector<std::vector<std::uint32_t>> held_;  ///< by device: its slots, ascending
  std::vector<Time> free_at_;                     ///< by device
  std::vector<std::optional<Time>> ready_;
};

Schedule hanayo(const SlotCosts& costs, std::uint32_t microbatches) {
  Schedule schedule{costs.placement, std::vector<std::vector<Task>>(costs.devices)};
  // A unit of the same size has the same order: a full one is scheduled once.
  std::vector<std::vector<Task>> unit(costs.devices);
  const std::uint32_t size = std::min(costs.devices, microbatches);
  UnitScheduler(costs, 0, size).append_to(unit);
  for (std::uint32_t first = 0; first + size <= microbatches; first += size)
    for (std::uint32_t d = 0; d < costs.devices; ++d)
      for (Task task : unit[d]) {
        task.microbatch += first;
        schedule.orders[d].push_back(task);
      }
  if (const std::uint32_t rest = microbatches % size; rest != 0)
    UnitScheduler(costs, microbatches - rest, rest).append_to(schedule.orders);
  return schedule;
}

Planned plan_hanayo(const Problem& problem, const PipelineParameters& parameters) {
  if (parameters.virtual_stages % 2 != 0)
    refuse(parameters.where,
           fmt::format("`{}` takes an even number of virtual stages, two a wave; found {}",
                       parameters.name, parameters.virtual_stages));
  return plan_timed_pipeline(problem, parameters, wave_placement, hanayo);
}

}  // namespace

PolicyInfo pipeline_hanayo_policy() {
  return make_policy<PipelineParameters>(
      {.name = "pipeline/hanayo",
       .summary = "Waves: virtual_stages / 2 Vs one after the other, one copy of the parameters.",
       .paper = "Liu et al. 2023, \"Hanayo\", SC, arXiv:2308.15762; the order of operations is a "
                "reconstruction: list scheduling of p microbatches at a time by times as they are, "
                "backwards first, then the deepest forward",
       .assumes = "an even number of virtual stages; a backward that is not split",
       .guarantees = "heuristic; units of p microbatches follow each other without overlapping",
       .complexity = "O((p v + microbatches) x p^2 v) for the order"},
      pipeline_record("pipeline/hanayo", 2), plan_hanayo);
}

}  // namespace plimsoll
