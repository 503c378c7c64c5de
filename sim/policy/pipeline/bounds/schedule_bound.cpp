#include "policy/pipeline/bounds/schedule_bound.hpp"

#include "base/dense_id.hpp"
#include "policy/pipeline/bounds/slot_passes.hpp"
#include "policy/pipeline/bounds/task_network.hpp"

#include <algorithm>
#include <utility>

namespace plimsoll {

namespace {

bool is_work(const Task& task) {
  switch (task.kind) {
    case Task::Kind::forward:
    case Task::Kind::backward:
    case Task::Kind::backward_input:
    case Task::Kind::backward_weight:
      return true;
    default:
      return false;
  }
}

bool any_task(const Schedule& schedule, const auto& is) {
  return std::ranges::any_of(schedule.orders, [&](const std::vector<Task>& order) {
    return std::ranges::any_of(order, is);
  });
}

/// Whether each task runs by itself, on the device of its slot, with the parameters of the step.
bool is_plain(const Schedule& schedule, const PipelineParameters& parameters) {
  return schedule.dealt.empty() && schedule.turned.empty() && schedule.updates.every == 0 &&
         schedule.updates.read.empty() && schedule.updates.begun.empty() &&
         !parameters.is_folded() &&
         !any_task(schedule, [](const Task& task) { return task.overlaps_next; });
}

bool is_recomputed(const Schedule& schedule, std::size_t slot) {
  return !schedule.recomputed.empty() && schedule.recomputed[slot];
}

class TimeBound {
 public:
  TimeBound(const Problem& problem, const PipelineParameters& parameters, const Schedule& schedule,
            const Slots& slots, const std::vector<ProcessorId>& devices)
      : schedule_(schedule),
        slots_(slots),
        microbatches_(static_cast<std::uint32_t>(parameters.microbatches)),
        splits_(any_task(
            schedule, [](const Task& task) { return task.kind == Task::Kind::backward_weight; })),
        passes_(slot_passes(problem, slots, devices, splits_)) {
    costs_.placement = schedule.placement;
    costs_.devices = static_cast<std::uint32_t>(devices.size());
    costs_.work = problem.work;
  }

  Time run() {
    if (!passes_.is_known) return Time{};
    for (std::size_t s = 0; s < slots_.count(); ++s) add(s);
    const TaskNetwork network =
        task_network(costs_, slack_, microbatches_, passes_.updates, splits_);
    TaskOrders orders;
    for (const auto& order : schedule_.orders) {
      auto& tasks = orders.emplace_back();
      for (const Task& task : order)
        if (is_work(task)) tasks.push_back(task_of(network, task));
    }
    const auto value = OrderEvaluator(network).evaluate(orders);
    return value ? Time{value->makespan} : Time{};
  }

 private:
  void add(std::size_t slot) {
    const SlotPasses::Slot& it = passes_.slots[slot];
    const Time again = is_recomputed(schedule_, slot) ? it.forward.ahead + it.forward.rest : Time{};
    SlotCosts::Slot cost;
    SlotSlack::Times slack;
    cost.forward = it.forward.ahead + it.forward.rest;
    cost.backward_input = again + it.backward.ahead + it.backward.rest;
    cost.backward_weight = it.weight;
    slack.forward_ahead = it.forward.ahead;
    slack.backward_ahead = again + it.backward.ahead;
    add_message(slot, true, it.forward, cost.forward_message, slack.forward_after);
    add_message(slot, false, it.backward, cost.backward_message, slack.backward_after);
    costs_.slots.push_back(cost);
    slack_.slots.push_back(slack);
  }

  /// What does not hold the way is of its own, as if the message left later.
  void add_message(std::size_t slot, bool forward, const SlotPass& pass, Time& message,
                   Time& after) const {
    const MessageTime time = slots_.least_message_time(slot, forward);
    message = time.holds_way ? time.all() : time.transfer;
    after = pass.rest - pass.sends;
    if (!time.holds_way) after -= time.latency;
  }

  const Schedule& schedule_;
  const Slots& slots_;
  const std::uint32_t microbatches_;
  const bool splits_;
  const SlotPasses passes_;
  SlotCosts costs_;
  SlotSlack slack_;
};

/// What a device surely has in its memory.
class BytesBound {
 public:
  BytesBound(const Problem& problem, const Schedule& schedule, const Slots& slots)
      : workload_(problem.workload), schedule_(schedule), slots_(slots) {
    for (std::size_t s = 0; s < slots.count(); ++s) of_slot_.push_back(look_at(s));
  }

  /// At the end of any task. `counts_kept`: what slots keep is known.
  [[nodiscard]] Bytes of(std::uint32_t device, bool counts_kept) {
    counted_.assign(workload_.tensors.size(), false);
    Bytes now = resident(device), peak = now;
    for (const Task& task : schedule_.orders[device]) {
      const Slot& slot = of_slot_[task.slot];
      if (counts_kept && task.kind == Task::Kind::recompute)
        peak = std::max(peak, now - slot.kept + std::max(slot.kept, slot.kept_again));
      if (counts_kept && task.kind == Task::Kind::forward) now += slot.kept;
      if (counts_kept && is_backward(task)) now -= slot.kept;
      if (task.kind == Task::Kind::backward || task.kind == Task::Kind::backward_weight)
        for (const TensorId gradient : slot.gradients) now += first(gradient);
      peak = std::max(peak, now);
    }
    return peak;
  }

 private:
  struct Slot {
    Bytes kept;        ///< of a microbatch between its forward and its backward
    Bytes kept_again;  ///< likewise, once the forward has run again
    std::vector<TensorId> gradients;
  };

  static bool is_backward(const Task& task) {
    return task.kind == Task::Kind::backward || task.kind == Task::Kind::backward_input;
  }

  [[nodiscard]] Slot look_at(std::size_t slot) const {
    const std::vector<bool> used = used_by_forwards(slot);
    const auto bytes = [&](bool recomputed) {
      Bytes sum;
      for (const TensorId id : slots_.kept(slot, recomputed))
        if (used[index(id)]) sum += workload_[id].bytes;
      return sum;
    };
    return {bytes(is_recomputed(schedule_, slot)), bytes(false), slots_.gradients(slot)};
  }

  /// What is there when the forward has ended: not what the backward is sent, nor makes.
  [[nodiscard]] std::vector<bool> used_by_forwards(std::size_t slot) const {
    std::vector<bool> used(workload_.tensors.size(), false);
    slots_.for_forwards(slot, [&](OperatorId op) {
      for (const TensorList list : {workload_[op].reads, workload_[op].kept})
        for (const TensorId id : workload_.list(list)) used[index(id)] = true;
    });
    return used;
  }

  /// Parameters that operators of the device's slots read, and the state of the optimizer beside the
  /// gradients that they make.
  Bytes resident(std::uint32_t device) {
    Bytes sum;
    std::vector<bool> is_changed(workload_.tensors.size(), false);
    const auto use = [&](OperatorId op) {
      for (const TensorList list : {workload_[op].reads, workload_[op].kept})
        for (const TensorId id : workload_.list(list))
          if (workload_[id].lifetime == Lifetime::resident) sum += first(id);
    };
    for (std::size_t s = 0; s < slots_.count(); ++s) {
      if (slots_.device(s) != device) continue;
      slots_.for_forwards(s, use);
      slots_.for_backwards(s, [&](Slots::StageBackward all) { std::ranges::for_each(all, use); });
      for (const TensorId gradient : of_slot_[s].gradients) is_changed[index(gradient)] = true;
    }
    for (std::uint32_t op = workload_.optimizer_begin; op < workload_.operators.size(); ++op) {
      const Operator& update = workload_.operators[op];
      if (std::ranges::none_of(workload_.list(update.reads),
                               [&](TensorId read) { return is_changed[index(read)]; }))
        continue;
      use(OperatorId{op});
      for (const TensorList list : {update.kept, update.updates})
        for (const TensorId id : workload_.list(list)) is_changed[index(id)] = true;
    }
    return sum;
  }

  /// Its bytes, unless they are counted or live elsewhere.
  Bytes first(TensorId id) {
    const Tensor& tensor = workload_[id];
    if (counted_[index(id)] || tensor.home != Home::processor || tensor.inside != kNoTensor)
      return {};
    counted_[index(id)] = true;
    return tensor.bytes;
  }

  const Workload& workload_;
  const Schedule& schedule_;
  const Slots& slots_;
  std::vector<Slot> of_slot_;
  std::vector<bool> counted_;  ///< by tensor, of one device
};

}  // namespace

PlanBound bound_of(const Problem& problem, const PipelineParameters& parameters,
                   const Schedule& schedule, const Partition& partition,
                   const std::vector<ProcessorId>& devices) {
  PlanBound bound{Time{}, std::vector<Bytes>(problem.platform.memories.size())};
  if (!schedule.dealt.empty() || !schedule.turned.empty() || parameters.replicas) return bound;
  const Slots slots(problem, partition, devices, schedule.placement);
  if (is_plain(schedule, parameters))
    bound.makespan = TimeBound(problem, parameters, schedule, slots, devices).run();
  BytesBound bytes(problem, schedule, slots);
  const bool counts_kept = schedule.stores.empty() && schedule.partners.empty() &&
                           parameters.operator_reruns() == nullptr;
  for (std::uint32_t d = 0; d < devices.size(); ++d) {
    Bytes& peak = bound.peaks[index(problem.platform[devices[d]].memory)];
    peak = std::max(peak, bytes.of(d, counts_kept));
  }
  return bound;
}

}  // namespace plimsoll
