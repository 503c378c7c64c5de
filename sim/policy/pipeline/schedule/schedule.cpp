#include "policy/pipeline/schedule/schedule.hpp"

#include "plan/build/plan_builder.hpp"
#include "policy/claims/claims.hpp"
#include "policy/graph/operator_graph.hpp"
#include "policy/pipeline/schedule/data_loading.hpp"
#include "policy/pipeline/schedule/gradient_reductions.hpp"
#include "policy/pipeline/schedule/optimizer_steps.hpp"
#include "policy/pipeline/schedule/outline_of.hpp"
#include "policy/pipeline/schedule/overlap.hpp"
#include "policy/pipeline/schedule/slot_moves.hpp"
#include "policy/pipeline/schedule/task_runs.hpp"
#include "policy/pipeline/schedule/tied_gradients.hpp"
#include "workload/cost/cost_model.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

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
        placed_(
            placed(problem, partition, devices,
                   schedule.dealt.empty() ? std::vector(1, schedule.placement) : schedule.dealt)),
        turned_(placed(problem, partition, devices, schedule.turned)),
        slots_(placed_.front()),
        copies_(copies()),
        runs_(problem.workload, slots_, schedule.recomputed, schedule.operators),
        builder_(problem.workload, problem.platform, parameters.name),
        moves_(schedule, builder_),
        times_(devices.size()),
        runs_before_(devices.size()),
        awaited_(devices.size()),
        channels_(devices.size()) {
    if (!schedule.operators.empty()) builder_.keep_each_generator();
    for (const auto* all : {&placed_, &turned_})
      for (const Slots& slots : *all) require_links(slots);
    for (std::uint32_t d = 0; d < schedule.partners.size(); ++d)
      require_link(problem, memory(d), memory(schedule.partners[d]), "partners in a pipeline",
                   parameters.where);
    reductions_.emplace(problem, parameters, copies_, schedule.partners,
                        GradientReductions::Times{updates(), schedule.updates.every > 0}, builder_);
    if (parameters.load_from) loading_.emplace(problem, parameters, devices.size(), builder_);
    if (schedule.updates.every > 0) versions_.emplace(problem, placed_, schedule.updates, builder_);
  }

  Plan run() {
    reserve();
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
        const std::span<const Task> tasks = next_tasks(schedule_.orders[d], next[d]);
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
    if (!versions_) optimize();
    Plan plan = builder_.finish();
    if (versions_) {
      mark_steady(plan);
      plan.notes = notes_on_tied_weights();
    }
    return plan;
  }

 private:
  static std::vector<Slots> placed(const Problem& problem, const Partition& partition,
                                   const std::vector<ProcessorId>& devices,
                                   const std::vector<std::vector<std::uint32_t>>& placements) {
    std::vector<Slots> all;
    all.reserve(placements.size());
    for (const auto& placement : placements)
      all.emplace_back(problem, partition, devices, placement);
    return all;
  }

  /// Those that are played: all of the mini-batch, or those of the replica that stands for all.
  std::size_t microbatches() const {
    return static_cast<std::size_t>(schedule_.dealt.empty() ? parameters_.microbatches
                                                            : parameters_.of_mini_batch());
  }
  MemoryId memory(std::uint32_t device) const { return slots_.memory(device); }

  /// What holds parameters: the slots as placed in every turn, and in the second direction where
  /// microbatches take it.
  GradientReductions::Copies copies() const {
    GradientReductions::Copies all;
    for (const Slots& slots : placed_) all.push_back(&slots);
    if (schedule_.turned_from * placed_.size() < microbatches())
      for (const Slots& slots : turned_) all.push_back(&slots);
    return all;
  }

  /// How often parameters are updated.
  std::size_t updates() const {
    const std::size_t every = schedule_.updates.every;
    return every == 0 ? 1 : std::max<std::size_t>(microbatches() / placed_.size() / every, 1);
  }

  /// Steps of all updates: sums of the gradients of copies, and optimizers.
  std::size_t steps_of_updates() const {
    const std::size_t copies = copies_.size();
    const Workload& workload = problem_.workload;
    const std::size_t optimizers = workload.operators.size() - workload.optimizer_begin;
    return updates() * (slots_.count() * 2 * copies * (copies - 1) + optimizers * copies);
  }

  /// Makes room for the whole plan.
  void reserve() {
    const Workload& workload = problem_.workload;
    std::size_t messages = 0, made = 0, read = 0;
    const auto add = [&](OperatorId op) {
      made += workload.list(workload[op].kept).size();
      read += workload.list(workload[op].reads).size();
    };
    for (std::size_t slot = 0; slot < slots_.count(); ++slot) {
      slots_.for_forwards(slot, add);
      slots_.for_backwards(
          slot, [&](Slots::StageBackward operators) { std::ranges::for_each(operators, add); });
      messages += slots_.messages(slot, true).size() + slots_.messages(slot, false).size();
    }
    constexpr std::size_t kListed = 4;  // by a step of an update, or thereabouts
    const std::size_t updating = steps_of_updates();
    builder_.reserve(runs_.count(schedule_) + messages * microbatches() + updating,
                     (made + messages) * microbatches() + updating,
                     (made + read + 2 * messages) * microbatches() + kListed * updating);
  }

  /// The slots as placed for a microbatch.
  const Slots& slots_of(const Task& task) const {
    const std::size_t turn = task.microbatch % placed_.size();
    const bool back = !turned_.empty() && task.microbatch / placed_.size() >= schedule_.turned_from;
    return back ? turned_[turn] : placed_[turn];
  }

  void require_links(const Slots& slots) const {
    std::vector<MemoryId> by_slot;
    for (std::size_t s = 0; s < slots.count(); ++s) by_slot.push_back(memory(slots.device(s)));
    require_links_of_stages(problem_, by_slot, parameters_.where);
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
      case Task::Kind::recompute:
      case Task::Kind::evict:
      case Task::Kind::fetch:
      case Task::Kind::offload:
      case Task::Kind::await_offload:
      case Task::Kind::reload:
      case Task::Kind::reload_after:
      case Task::Kind::send_output:
        return done(forward_done_, task.slot);
      case Task::Kind::send_gradient:
        return done(backward_done_, task.slot);
      case Task::Kind::await_input:
        return sent_.contains({task.slot - 1, task.microbatch, true});
      case Task::Kind::await_gradient:
        return sent_.contains({task.slot + 1, task.microbatch, false});
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

  std::vector<Time> own_times(const std::vector<Part>& parts, std::uint32_t device) {
    std::vector<Time> own;
    for (const Part& part : parts) own.push_back(time(device, part.op));
    return own;
  }

  /// Runs the operators of one task, one after the other.
  void emit_runs(const Task& task, std::uint32_t device) {
    bool is_first = true;
    for (const TaskRuns::Run& run : runs_.of(task)) {
      const Part& part = run.first;
      if (part.form == Form::bare)
        release_wholes(builder_, problem_.workload, part.op, part.microbatch, memory(device));
      const StepId step =
          run.second.op == kNoOperator
              ? builder_.compute(streams_[device], part.op, part.microbatch, part.form)
              : builder_.pair(streams_[device], part, run.second,
                              time(device, part.op) + time(device, run.second.op));
      if (!std::exchange(is_first, false)) {
        runs_before_[device]->last = step;
        continue;
      }
      runs_before_[device] = {step, step};
      if (task.kind == Task::Kind::forward) moves_.wait_for_room(device, step);
      wait_for_awaited(device);
    }
  }

  /// What the device runs next starts when what it awaited is there.
  void wait_for_awaited(std::uint32_t device) {
    for (const StepId awaited : std::exchange(awaited_[device], {}))
      builder_.after_end(runs_before_[device]->first, awaited);
  }

  /// With updates on the way, to wait for each other's gradients would hold up the pipeline.
  std::vector<std::string> notes_on_tied_weights() const {
    std::vector<std::string> notes;
    for (const TiedGradients& tied : tied_gradients(copies_))
      if (tied.all_holders().size() > 1)
        for (const TensorId gradient : tied.gradients)
          notes.push_back(
              fmt::format("devices that share the parameter of `{}` update it separately: `{}` "
                          "does not add up their gradients",
                          problem_.workload[gradient].name, parameters_.name));
    return notes;
  }

  /// The second half of what is neither filling nor draining, in microbatches of the first replica:
  /// of whole updates, where there are any.
  void mark_steady(Plan& plan) const {
    const auto turns = static_cast<std::uint32_t>(placed_.size());
    const auto until = static_cast<std::uint32_t>(microbatches() - devices_.size()) / turns;
    const std::uint32_t every = schedule_.updates.every, half = until - until / 2;
    const std::uint32_t steady = until < every ? half : std::max(every, half / every * every);
    plan.steady_until_microbatch = until * turns;
    plan.steady_from_microbatch = (until - steady) * turns;
  }

  void emit(std::span<const Task> tasks, std::uint32_t device) {
    switch (tasks.front().kind) {
      case Task::Kind::evict:
      case Task::Kind::fetch:
      case Task::Kind::offload:
      case Task::Kind::reload:
      case Task::Kind::reload_after:
        return moves_.emit(tasks.front(), device, slots_of(tasks.front()),
                           runs_before_[device].value_or(StepRange{}));
      case Task::Kind::send_output:
      case Task::Kind::send_gradient:
        return emit_send(tasks.front(), tasks.front().kind == Task::Kind::send_output, device);
      case Task::Kind::await_input:
      case Task::Kind::await_gradient:
        return await_value(tasks.front(), tasks.front().kind == Task::Kind::await_input, device);
      case Task::Kind::await_offload:
        return await(moves_.offload(tasks.front()), device);
      default:
        return emit_computing(tasks, device);
    }
  }

  void emit_computing(std::span<const Task> tasks, std::uint32_t device) {
    for (const Task& task : tasks)
      if (hands_on(task)) await_value(task, task.kind == Task::Kind::forward, device);
    const bool has_weights = versions_ && !slots_.is_empty(tasks.front().slot);
    if (has_weights && tasks.front().kind == Task::Kind::forward)
      versions_->before_forward(device, tasks.front().microbatch);
    if (loading_)
      for (const Task& task : tasks)
        if (task.kind == Task::Kind::forward)
          loading_->load(slots_of(task), task.slot, task.microbatch);
    if (tasks.size() == 1)
      emit_runs(tasks.front(), device);
    else
      emit_overlapped(tasks, device);
    const auto& steps = runs_before_[device];  // none yet where it only hands on
    if (loading_ && steps) loading_->has_run(device, *steps);
    for (const Task& task : tasks) {
      const bool forward = task.kind == Task::Kind::forward;
      if (task.kind == Task::Kind::backward_weight || task.kind == Task::Kind::recompute) continue;
      if (hands_on(task))
        emit_send(task, forward, device);
      else if (!schedule_.messages_in_orders)
        send(task, device, tasks.size() == 2);
      (forward ? forward_done_ : backward_done_)[task.slot * microbatches() + task.microbatch] =
          true;
      if (!has_weights) continue;
      if (forward)
        versions_->after_forward(device, task.microbatch, steps->last);
      else if (versions_->after_backward(device, task.microbatch))
        update(task);
    }
  }

  /// The replicas of a stage run the same task in the same round, so that the last of them to come
  /// here finds the gradients of all, to which none has added for the next update. None goes on
  /// before it has the new version.
  void update(const Task& task) {
    const auto turns = static_cast<std::uint32_t>(placed_.size());
    const std::uint32_t first = task.microbatch / turns * turns;
    if (task.microbatch + 1 < first + turns) return;
    const AllReduceEnds ends = reductions_->add(task.slot);
    for (std::uint32_t turn = 0; turn < turns; ++turn) {
      const std::uint32_t device = placed_[turn].device(task.slot);
      std::vector<StepId> after = ends.empty() ? std::vector<StepId>() : ends[turn];
      await(after, device);
      after.push_back(runs_before_[device]->last);
      versions_->update(device, first + turn, after, streams_[device]);
    }
  }

  /// The forward and the backward begin together; what follows is in time that both share, so what
  /// they make is sent at the end of it: overlap.hpp says when that is. The value that crosses a cut
  /// of the chain is read by the first operators; what is carried beside it may be waited for later.
  void emit_overlapped(std::span<const Task> tasks, std::uint32_t device) {
    std::vector<Part> first = runs_.parts(tasks.front()), second = runs_.parts(tasks.back());
    if (first.empty() || second.empty()) {
      for (const Task& task : tasks) emit_runs(task, device);
      return;
    }
    const std::vector<Time> times =
        overlapped_times(own_times(first, device), own_times(second, device), parameters_.overlap);
    const StepId pair =
        builder_.pair(streams_[device], first.front(), second.front(), times.front());
    StepRange& steps = runs_before_[device].emplace(pair, pair);
    wait_for_awaited(device);
    auto next = times.begin();
    for (const auto* parts : {&first, &second})
      for (const Part& part : std::span(*parts).subspan(1)) {
        const bool is_own = *++next == time(device, part.op);
        steps.last = builder_.compute(streams_[device], part.op, part.microbatch, part.form,
                                      is_own ? std::nullopt : std::optional(*next));
      }
  }

  using Sent = std::tuple<std::uint32_t, std::uint32_t, bool>;  ///< slot, microbatch, forward

  /// The tasks of an empty slot take no time, but their place in the order of the device.
  bool hands_on(const Task& task) const {
    return slots_.is_empty(task.slot) && !schedule_.messages_in_orders &&
           task.kind != Task::Kind::backward_weight && task.kind != Task::Kind::recompute;
  }

  void emit_send(const Task& task, bool forward, std::uint32_t device) {
    std::vector<StepId>& sent = sent_[Sent{task.slot, task.microbatch, forward}];
    for (const Message& message : slots_of(task).messages(task.slot, forward)) {
      sent.push_back(builder_.copy(channel(device, message.to_device), message.tensor,
                                   task.microbatch, SourceRelease::keep));
      if (runs_before_[device]) builder_.after_end(sent.back(), runs_before_[device]->last);
      for (const StepId awaited : awaited_[device]) builder_.after_end(sent.back(), awaited);
    }
  }

  void await_value(const Task& task, bool forward, std::uint32_t device) {
    const std::uint32_t from = forward ? task.slot - 1 : task.slot + 1;
    await(sent_.at({from, task.microbatch, forward}), device);
  }

  void await(const std::vector<StepId>& copies, std::uint32_t device) {
    awaited_[device].insert(awaited_[device].end(), copies.begin(), copies.end());
  }

  /// A device sends to few others, of all that there are.
  struct Channel {
    std::uint32_t to = 0;
    LaneId lane{};
  };

  LaneId channel(std::uint32_t from, std::uint32_t to) {
    auto& channels = channels_[from];
    const auto known = std::ranges::find(channels, to, &Channel::to);
    if (known != channels.end()) return known->lane;
    return channels.emplace_back(Channel{to, builder_.channel(memory(from), memory(to))}).lane;
  }

  void send(const Task& task, std::uint32_t device, bool at_the_end) {
    const bool forward = task.kind == Task::Kind::forward;
    const std::size_t next = forward ? task.slot + std::size_t{1} : task.slot - std::size_t{1};
    std::vector<StepId>* sent = nullptr;
    if (next < slots_.count() && slots_.is_empty(next))
      sent = &sent_[Sent{task.slot, task.microbatch, forward}];
    for (const Message& message : slots_of(task).messages(task.slot, forward)) {
      const StepId copy = builder_.copy(channel(device, message.to_device), message.tensor,
                                        task.microbatch, SourceRelease::keep);
      if (at_the_end || message.is_handed_on) builder_.after_end(copy, runs_before_[device]->last);
      if (sent != nullptr) sent->push_back(copy);
    }
  }

  void optimize() {
    for (std::size_t slot = slots_.count(); slot-- > 0;) reductions_->add(slot);
    reductions_->add_tied();
    add_optimizer_steps(builder_, problem_, copies_, streams_);
  }

  const Problem& problem_;
  const PipelineParameters& parameters_;
  const Schedule& schedule_;
  const std::vector<ProcessorId>& devices_;
  const std::vector<Slots> placed_, turned_;  ///< by turn; the second direction's, if there is one
  const Slots& slots_;                        ///< as placed for the first turn
  const GradientReductions::Copies copies_;
  TaskRuns runs_;
  PlanBuilder builder_;
  SlotMoves moves_;
  std::optional<GradientReductions> reductions_;
  std::optional<DataLoading> loading_;      ///< where inputs come from another memory
  std::optional<WeightVersions> versions_;  ///< where parameters are updated on the way
  std::vector<std::vector<Time>> times_;    ///< by device: durations of operators, where asked for
  std::vector<LaneId> streams_;
  std::vector<std::optional<StepRange>> runs_before_;  ///< by device: what it ran last
  std::map<Sent, std::vector<StepId>> sent_;           ///< copies
  std::vector<std::vector<StepId>> awaited_;        ///< by device: what holds up what it runs next
  std::vector<std::vector<Channel>> channels_;      ///< by device from, those used so far
  std::vector<bool> forward_done_, backward_done_;  ///< by slot * microbatches + microbatch
};

}  // namespace

Planned plan_schedule(const Problem& problem, const PipelineParameters& parameters,
                      const Schedule& schedule, const Partition& partition,
                      const std::vector<ProcessorId>& devices) {
  if (problem.outline != nullptr) {
    const std::uint32_t before = problem.outline->count;
    *problem.outline = outline_of(problem, parameters, schedule, partition, devices);
    problem.outline->count = before + 1;
    return Infeasible{"only an outline was asked for", MemoryId{}, Bytes{}};
  }
  problem.work.add(kWorkOfTiming * problem.workload.operators.size() *
                   static_cast<std::size_t>(parameters.microbatches));
  Plan plan = PipelinePlanner(problem, parameters, schedule, partition, devices).run();
  plan.claims = claims_of(plan, problem);
  plan.claims.model_period = partition.model_period;
  return plan;
}

Schedule two_directions(std::uint32_t devices, std::uint32_t turned_from) {
  Schedule schedule{.placement = loop_placement(devices, 1), .turned_from = turned_from};
  schedule.turned.emplace_back(schedule.placement.rbegin(), schedule.placement.rend());
  return schedule;
}

}  // namespace plimsoll
