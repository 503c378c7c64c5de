#include "policy/pipeline/schedule.hpp"

#include "policy/claims.hpp"
#include "policy/stage_steps.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// A tensor that one task makes and a task of another device reads.
struct Message {
  TensorId tensor = kNoTensor;
  std::uint32_t to_device = 0;
};

class PipelinePlanner {
 public:
  PipelinePlanner(const Problem& problem, const PipelineParameters& parameters,
                  const Schedule& schedule, const Partition& partition,
                  const std::vector<ProcessorId>& devices)
      : problem_(problem),
        parameters_(parameters),
        schedule_(schedule),
        partition_(partition),
        devices_(devices),
        builder_(problem.workload, problem.platform, parameters.name),
        steps_(builder_, problem) {
    require_links();
    find_messages();
  }

  Plan run() {
    for (const ProcessorId device : devices_) streams_.push_back(builder_.stream(device));
    std::vector<std::size_t> next(devices_.size(), 0);
    const std::size_t m = static_cast<std::size_t>(parameters_.microbatches);
    forward_done_.assign(partition_.slots() * m, false);
    backward_done_ = forward_done_;
    // Rounds of at most one task a device, so that the issue order is close to the order of
    // execution.
    for (bool progress = true; progress;) {
      progress = false;
      for (std::uint32_t d = 0; d < devices_.size(); ++d) {
        if (next[d] == schedule_.orders[d].size()) continue;
        const Task& task = schedule_.orders[d][next[d]];
        if (!inputs_made(task)) continue;
        emit(task, d);
        ++next[d];
        progress = true;
      }
    }
    optimize();
    return builder_.finish();
  }

 private:
  MemoryId memory(std::uint32_t device) const { return problem_.platform[devices_[device]].memory; }

  void require_links() const {
    for (std::size_t s = 0; s + 1 < schedule_.placement.size(); ++s) {
      const std::uint32_t a = schedule_.placement[s], b = schedule_.placement[s + 1];
      if (problem_.topology.route(memory(a), memory(b)) &&
          problem_.topology.route(memory(b), memory(a)))
        continue;
      refuse_parameter(
          parameters_.where,
          fmt::format("no link joins `{}` and `{}`, which hold neighbouring stages",
                      problem_.platform[memory(a)].name, problem_.platform[memory(b)].name));
    }
  }

  template <class Visit>
  void for_operators(std::size_t slot, Task::Kind kind, Visit visit) const {
    for (std::size_t s = partition_.cuts[slot]; s < partition_.cuts[slot + 1]; ++s) {
      const ChainStage& stage = problem_.chain.stages[s];
      if (kind == Task::Kind::forward)
        for (std::uint32_t op = stage.forward_begin; op < stage.forward_end; ++op)
          visit(OperatorId{op});
      else
        for (const OperatorId op : problem_.chain.backward(s)) visit(op);
    }
  }

  /// For every slot and kind of task, what its tensors are read by elsewhere; and who makes the
  /// gradients of parameters.
  void find_messages() {
    const Workload& workload = problem_.workload;
    const std::size_t slots = partition_.slots();
    std::vector<std::uint32_t> maker(workload.tensors.size(), kNone);
    messages_.resize(2 * slots);
    gradient_makers_.resize(workload.tensors.size());
    const auto visit_task = [&](std::size_t slot, Task::Kind kind) {
      const std::uint32_t device = schedule_.placement[slot];
      for_operators(slot, kind, [&](OperatorId op) {
        for (const TensorId value : workload.list(workload[op].reads))
          request(maker, value, device);
        for (const TensorList slice : {workload[op].kept, workload[op].bare})
          for (const TensorId made : workload.list(slice))
            if (workload[made].lifetime == Lifetime::accumulated)
              gradient_makers_[index(made)].push_back(device);
            else if (maker[index(made)] == kNone && workload[made].lifetime == Lifetime::step)
              maker[index(made)] =
                  static_cast<std::uint32_t>(2 * slot + (kind == Task::Kind::backward ? 1 : 0));
      });
    };
    for (std::size_t slot = 0; slot < slots; ++slot) visit_task(slot, Task::Kind::forward);
    for (std::size_t slot = slots; slot-- > 0;) visit_task(slot, Task::Kind::backward);
  }

  void request(const std::vector<std::uint32_t>& maker, TensorId value, std::uint32_t device) {
    const std::uint32_t from = maker[index(value)];
    if (from == kNone || memory(schedule_.placement[from / 2]) == memory(device)) return;
    auto& list = messages_[from];
    const auto same = [&](const Message& m) {
      return m.tensor == value && memory(m.to_device) == memory(device);
    };
    if (std::ranges::none_of(list, same)) list.push_back({value, device});
  }

  bool inputs_made(const Task& task) const {
    const std::size_t m = static_cast<std::size_t>(parameters_.microbatches);
    const auto done = [&](const std::vector<bool>& of, std::size_t slot) {
      return of[slot * m + task.microbatch];
    };
    if (task.kind == Task::Kind::forward)
      return task.slot == 0 || done(forward_done_, task.slot - 1);
    return done(forward_done_, task.slot) &&
           (task.slot + 1 == partition_.slots() || done(backward_done_, task.slot + 1));
  }

  void emit(const Task& task, std::uint32_t device) {
    const std::size_t begin = partition_.cuts[task.slot], end = partition_.cuts[task.slot + 1];
    const bool forward = task.kind == Task::Kind::forward;
    if (forward)
      for (std::size_t s = begin; s < end; ++s)
        steps_.forward(streams_[device], s, Form::keep, task.microbatch);
    else
      for (std::size_t s = end; s-- > begin;) steps_.backward(streams_[device], s, task.microbatch);
    for (const Message& message : messages_[2 * task.slot + (forward ? 0 : 1)])
      builder_.copy(builder_.channel(memory(device), memory(message.to_device)), message.tensor,
                    task.microbatch, SourceRelease::keep);
    const std::size_t m = static_cast<std::size_t>(parameters_.microbatches);
    (forward ? forward_done_ : backward_done_)[task.slot * m + task.microbatch] = true;
  }

  /// An optimizer operator runs where a gradient that it reads was made, once for every memory.
  void optimize() {
    const Workload& workload = problem_.workload;
    for (std::uint32_t op = workload.optimizer_begin; op < workload.operators.size(); ++op) {
      std::vector<MemoryId> done;
      for (const TensorId read : workload.list(workload.operators[op].reads))
        for (const std::uint32_t d : gradient_makers_[index(read)]) {
          if (std::ranges::find(done, memory(d)) != done.end()) continue;
          builder_.compute(streams_[d], OperatorId{op});
          done.push_back(memory(d));
        }
    }
  }

  const Problem& problem_;
  const PipelineParameters& parameters_;
  const Schedule& schedule_;
  const Partition& partition_;
  const std::vector<ProcessorId>& devices_;
  PlanBuilder builder_;
  StageSteps steps_;
  std::vector<LaneId> streams_;
  std::vector<std::vector<std::uint32_t>> gradient_makers_;  ///< by tensor: devices that add to it
  std::vector<std::vector<Message>> messages_;               ///< by 2 * slot, + 1 for the backward
  std::vector<bool> forward_done_, backward_done_;  ///< by slot * microbatches + microbatch
};

/// The most steps of a pipeline's plan: a few GB.
constexpr std::size_t kMostSteps = 10'000'000;

void refuse_too_many_steps(const Problem& problem, const PipelineParameters& parameters) {
  const std::size_t operators = problem.workload.operators.size();
  if (operators <= kMostSteps / static_cast<std::size_t>(parameters.microbatches)) return;
  refuse_parameter(parameters.where,
                   fmt::format("{} microbatches of {} operators are more than {} steps",
                               parameters.microbatches, operators, kMostSteps));
}

}  // namespace

Planned plan_pipeline(const Problem& problem, const PipelineParameters& parameters,
                      ScheduleRule rule) {
  refuse_too_many_steps(problem, parameters);
  const std::vector<ProcessorId> devices = pipeline_devices(problem, parameters);
  const Partition partition = partition_for(problem, parameters, devices);
  const Schedule schedule = rule(static_cast<std::uint32_t>(devices.size()),
                                 static_cast<std::uint32_t>(parameters.microbatches),
                                 static_cast<std::uint32_t>(parameters.virtual_stages));
  Plan plan = PipelinePlanner(problem, parameters, schedule, partition, devices).run();
  plan.claims = claims_of(plan, problem);
  return plan;
}

}  // namespace plimsoll
