#include "policy/pipeline/schedule.hpp"

#include "plan/plan_builder.hpp"
#include "policy/claims.hpp"
#include "policy/pipeline/optimizer_steps.hpp"
#include "workload/cost_model.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace plimsoll {

namespace {

using Part = PlanBuilder::Part;

class PipelinePlanner {
 public:
  PipelinePlanner(const Problem& problem, const PipelineParameters& parameters,
                  const Schedule& schedule, const Partition& partition,
                  const std::vector<ProcessorId>& devices)
      : problem_(problem),
        parameters_(parameters),
        schedule_(schedule),
        devices_(devices),
        slots_(problem, partition, devices, schedule.placement),
        builder_(problem.workload, problem.platform, parameters.name),
        times_(devices.size()) {
    require_links(schedule.placement);
    if (schedule.turned.empty()) return;
    turned_.emplace(problem, partition, devices, schedule.turned);
    require_links(schedule.turned);
  }

  Plan run() {
    for (const ProcessorId device : devices_) streams_.push_back(builder_.stream(device));
    std::vector<std::size_t> next(devices_.size(), 0);
    forward_done_.assign(slots_.count() * microbatches(), false);
    backward_done_ = forward_done_;
    // Rounds of at most one task a device, so that the issue order is close to the order of
    // execution.
    for (bool progress = true; progress;) {
      progress = false;
      for (std::uint32_t d = 0; d < devices_.size(); ++d) {
        if (next[d] == schedule_.orders[d].size()) continue;
        const std::span<const Task> tasks = next_tasks(d, next[d]);
        if (!std::ranges::all_of(tasks, [&](const Task& task) { return inputs_made(task); }))
          continue;
        emit(tasks, d);
        next[d] += tasks.size();
        progress = true;
      }
    }
    for (std::uint32_t d = 0; d < devices_.size(); ++d)
      if (next[d] != schedule_.orders[d].size())
        throw PlanError(fmt::format("{}: device {} waits for ever at its task {}", parameters_.name,
                                    d, next[d]));
    optimize();
    return builder_.finish();
  }

 private:
  std::size_t microbatches() const { return static_cast<std::size_t>(parameters_.microbatches); }
  MemoryId memory(std::uint32_t device) const { return slots_.memory(device); }

  /// The slots as placed for a microbatch.
  const Slots& slots_of(const Task& task) const {
    return turned_ && task.microbatch >= schedule_.turned_from ? *turned_ : slots_;
  }

  void require_links(const std::vector<std::uint32_t>& placement) const {
    for (std::size_t s = 0; s + 1 < placement.size(); ++s)
      require_link(problem_, memory(placement[s]), memory(placement[s + 1]), parameters_.where);
  }

  /// One task, or two that overlap.
  std::span<const Task> next_tasks(std::uint32_t device, std::size_t begin) const {
    const std::span<const Task> order(schedule_.orders[device]);
    return order.subspan(begin, order[begin].overlaps_next ? 2 : 1);
  }

  bool inputs_made(const Task& task) const {
    const auto done = [&](const std::vector<bool>& of, std::size_t slot) {
      return of[slot * microbatches() + task.microbatch];
    };
    switch (task.kind) {
      case Task::Kind::forward:
        return task.slot == 0 || done(forward_done_, task.slot - 1);
      case Task::Kind::backward_weight:
        return done(backward_done_, task.slot);
      case Task::Kind::backward:
      case Task::Kind::backward_input:
        break;
    }
    return done(forward_done_, task.slot) &&
           (task.slot + 1 == slots_.count() || done(backward_done_, task.slot + 1));
  }

  Time time(std::uint32_t device, OperatorId op) {
    std::vector<Time>& times = times_[device];
    if (times.empty()) times = durations(problem_.workload, problem_.platform, devices_[device]);
    return times[static_cast<std::size_t>(op)];
  }

  /// What a task runs: single operators, and the two halves of a whole backward together.
  struct Run {
    Part first, second;
  };

  std::vector<Run> runs_of(const Task& task) const {
    std::vector<Run> runs;
    const auto add = [&](OperatorId op) { runs.push_back({{op, task.microbatch}, {}}); };
    if (task.kind == Task::Kind::forward) slots_.for_forwards(task.slot, add);
    if (task.kind != Task::Kind::forward)
      slots_.for_backwards(task.slot, [&](Slots::StageBackward operators) {
        const bool halves = !operators.empty() &&
                            problem_.workload[operators.front()].phase == Phase::backward_input;
        if (task.kind == Task::Kind::backward_input) add(operators.front());
        if (task.kind == Task::Kind::backward_weight) add(operators.back());
        if (task.kind != Task::Kind::backward) return;
        if (halves)
          runs.push_back(
              {{operators.front(), task.microbatch}, {operators.back(), task.microbatch}});
        else
          std::ranges::for_each(operators, add);
      });
    return runs;
  }

  /// Runs the operators of one task, one after the other.
  void emit_runs(const Task& task, std::uint32_t device) {
    for (const Run& run : runs_of(task)) {
      if (run.second.op == kNoOperator)
        last_ = builder_.compute(streams_[device], run.first.op, task.microbatch);
      else
        last_ = builder_.pair(streams_[device], run.first, run.second,
                              time(device, run.first.op) + time(device, run.second.op));
    }
  }

  void emit(std::span<const Task> tasks, std::uint32_t device) {
    if (tasks.size() == 1)
      emit_runs(tasks.front(), device);
    else
      emit_overlapped(tasks, device);
    for (const Task& task : tasks) {
      const bool forward = task.kind == Task::Kind::forward;
      if (task.kind == Task::Kind::backward_weight) continue;
      send(task, device, tasks.size() == 2);
      (forward ? forward_done_ : backward_done_)[task.slot * microbatches() + task.microbatch] =
          true;
    }
  }

  /// The forward and the backward begin together; what follows is in time that both share, so what
  /// they make is sent at the end of it. One value crosses a cut of the chain, so the first
  /// operators read what has to arrive.
  void emit_overlapped(std::span<const Task> tasks, std::uint32_t device) {
    std::vector<Part> first = parts_of(tasks.front()), second = parts_of(tasks.back());
    if (first.empty() || second.empty()) {
      for (const Task& task : tasks) emit_runs(task, device);
      return;
    }
    last_ = builder_.pair(streams_[device], first.front(), second.front(),
                          time(device, first.front().op) + time(device, second.front().op));
    for (const auto* parts : {&first, &second})
      for (const Part& part : std::span(*parts).subspan(1))
        last_ = builder_.compute(streams_[device], part.op, part.microbatch);
  }

  std::vector<Part> parts_of(const Task& task) const {
    std::vector<Part> parts;
    for (const Run& run : runs_of(task)) {
      parts.push_back(run.first);
      if (run.second.op != kNoOperator) parts.push_back(run.second);
    }
    return parts;
  }

  void send(const Task& task, std::uint32_t device, bool at_the_end) {
    for (const Message& message :
         slots_of(task).messages(task.slot, task.kind == Task::Kind::forward)) {
      const StepId copy = builder_.copy(builder_.channel(memory(device), memory(message.to_device)),
                                        message.tensor, task.microbatch, SourceRelease::keep);
      if (at_the_end) builder_.after_end(copy, last_);
    }
  }

  void optimize() {
    std::vector<const Slots*> directions{&slots_};
    if (turned_) directions.push_back(&*turned_);
    add_optimizer_steps(builder_, problem_, directions, streams_);
  }

  const Problem& problem_;
  const PipelineParameters& parameters_;
  const Schedule& schedule_;
  const std::vector<ProcessorId>& devices_;
  Slots slots_;
  std::optional<Slots> turned_;  ///< for the second direction, where there is one
  PlanBuilder builder_;
  std::vector<std::vector<Time>> times_;  ///< by device: durations of operators, where asked for
  std::vector<LaneId> streams_;
  StepId last_{};                                   ///< of what was emitted last
  std::vector<bool> forward_done_, backward_done_;  ///< by slot * microbatches + microbatch
};

Planned plan_schedule(const Problem& problem, const PipelineParameters& parameters,
                      const Schedule& schedule, const Partition& partition,
                      const std::vector<ProcessorId>& devices) {
  Plan plan = PipelinePlanner(problem, parameters, schedule, partition, devices).run();
  plan.claims = claims_of(plan, problem);
  return plan;
}

}  // namespace

Schedule two_directions(std::uint32_t devices, std::uint32_t turned_from) {
  Schedule schedule{loop_placement(devices, 1), {}, {}, turned_from};
  schedule.turned.assign(schedule.placement.rbegin(), schedule.placement.rend());
  return schedule;
}

Planned plan_pipeline(const Problem& problem, const PipelineParameters& parameters,
                      const ScheduleRule& rule) {
  refuse_too_many_steps(problem, parameters);
  const std::vector<ProcessorId> devices = pipeline_devices(problem, parameters);
  const Partition partition = partition_for(problem, parameters, devices);
  const Schedule schedule = rule(static_cast<std::uint32_t>(devices.size()),
                                 static_cast<std::uint32_t>(parameters.microbatches),
                                 static_cast<std::uint32_t>(parameters.virtual_stages));
  return plan_schedule(problem, parameters, schedule, partition, devices);
}

Planned plan_timed_pipeline(const Problem& problem, const PipelineParameters& parameters,
                            PlacementRule placement, const TimedScheduleRule& rule) {
  refuse_too_many_steps(problem, parameters);
  const std::vector<ProcessorId> devices = pipeline_devices(problem, parameters);
  const Partition partition = partition_for(problem, parameters, devices);
  const Slots slots(problem, partition, devices,
                    placement(static_cast<std::uint32_t>(devices.size()),
                              static_cast<std::uint32_t>(parameters.virtual_stages)));
  const Schedule schedule =
      rule(slots.costs(), static_cast<std::uint32_t>(parameters.microbatches));
  return plan_schedule(problem, parameters, schedule, partition, devices);
}

}  // namespace plimsoll
