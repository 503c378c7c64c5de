#include "policy/pipeline/search/update_times.hpp"

#include "plan/build/collective.hpp"
#include "plan/core/collective_opening.hpp"
#include "policy/pipeline/schedule/tied_gradients.hpp"
#include "workload/cost/cost_model.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace plimsoll {

namespace {

class UpdateTimes {
 public:
  UpdateTimes(const Problem& problem, const PipelineParameters& parameters, const Slots& slots,
              const std::vector<ProcessorId>& devices, const Plan& plan)
      : problem_(problem),
        workload_(problem.workload),
        all_reduce_(parameters.all_reduce),
        openings_(problem.platform),
        slots_(slots),
        tied_(tied_gradients({&slots})),
        groups_(replica_groups(problem, parameters)),
        optimizers_(devices.size()) {
    for (const ProcessorId device : devices)
      times_.push_back(durations(problem.workload, problem.platform, device));
    for (const Step& step : plan.steps) {
      if (step.kind != StepKind::compute || workload_[step.op].phase != Phase::optimizer) continue;
      const auto device = std::ranges::find(devices, plan[step.lane].processor);
      if (device != devices.end())
        optimizers_[static_cast<std::size_t>(device - devices.begin())].push_back(step.op);
    }
  }

  std::vector<Time> run() const {
    std::vector<std::optional<Time>> least(optimizers_.size());
    for (std::size_t slot = 0; slot < slots_.count(); ++slot) {
      const Time after = after_slot(slot);
      auto& it = least[slots_.device(slot)];
      it = std::min(it.value_or(after), after);
    }
    std::vector<Time> after;
    for (std::uint32_t d = 0; d < optimizers_.size(); ++d) {
      Time all;
      for (const OperatorId op : optimizers_[d]) all += time(d, op);
      after.push_back(std::max(all, least[d].value_or(Time{})));
    }
    return after;
  }

 private:
  Time time(std::uint32_t device, OperatorId op) const { return times_[device][index(op)]; }

  Time after_slot(std::size_t slot) const {
    const std::uint32_t device = slots_.device(slot);
    std::vector<TensorId> gradients = slots_.gradients(slot);
    const Time all = optimizers(device, gradients);
    for (const TiedGradients& tied : tied_)
      std::erase_if(gradients, [&](TensorId gradient) {
        return std::ranges::binary_search(tied.gradients, gradient);
      });
    Time after = all;
    if (const std::optional<Time> rest = after_last(slot, gradients))
      after = std::max(after, optimizers(device, gradients) +
                                  beyond(reduction(replicas(device), gradients), *rest));
    for (const TiedGradients& tied : tied_)
      if (tied.first_slot == slot) after = std::max(after, after_tied(slot, tied));
    return after;
  }

  static Time beyond(Time time, Time rest) { return std::max(time, rest) - rest; }

  /// Where the slot is the last one to make tied gradients: their holders reduce them, and the
  /// device goes on with their optimizer and what follows.
  Time after_tied(std::size_t slot, const TiedGradients& tied) const {
    const std::uint32_t device = slots_.device(slot);
    std::vector<MemoryId> members;
    for (const Holder& holder : tied.all_holders()) members.push_back(holder.memory);
    const std::optional<Time> rest = after_last(slot, tied.gradients);
    if (!rest) return Time{};
    Time after = beyond(reduction(members, tied.gradients), *rest);
    bool follows = false;
    for (const OperatorId op : optimizers_[device]) {
      follows = follows || reads_one(op, tied.gradients);
      if (follows) after += time(device, op);
    }
    return after;
  }

  /// Of those that read one of the gradients.
  Time optimizers(std::uint32_t device, const std::vector<TensorId>& gradients) const {
    Time sum;
    for (const OperatorId op : optimizers_[device])
      if (reads_one(op, gradients)) sum += time(device, op);
    return sum;
  }

  /// What a backward of the slot does at most when it has made the last of these; nothing where
  /// that may be long before the slot's last task, which is of weight halves where there are any.
  std::optional<Time> after_last(std::size_t slot, const std::vector<TensorId>& gradients) const {
    std::vector<OperatorId> operators;
    slots_.for_backwards(slot, [&](Slots::StageBackward stage) {
      operators.insert(operators.end(), stage.begin(), stage.end());
    });
    const auto is_weight_half = [&](OperatorId op) {
      return workload_[op].phase == Phase::backward_weight;
    };
    const bool halves = std::ranges::any_of(operators, is_weight_half);
    std::optional<Time> rest;
    for (const OperatorId op : operators)
      if (makes_one(op, gradients) && (!halves || is_weight_half(op)))
        rest = Time{};
      else if (rest)
        *rest += time(slots_.device(slot), op);
    return rest;
  }

  bool makes_one(OperatorId op, const std::vector<TensorId>& gradients) const {
    return std::ranges::any_of(workload_.list(workload_[op].kept), [&](TensorId made) {
      return std::ranges::binary_search(gradients, made);
    });
  }

  bool reads_one(OperatorId op, const std::vector<TensorId>& gradients) const {
    return std::ranges::any_of(workload_.list(workload_[op].reads), [&](TensorId read) {
      return std::ranges::binary_search(gradients, read);
    });
  }

  std::vector<MemoryId> replicas(std::uint32_t device) const {
    std::vector<MemoryId> members;
    for (const ProcessorId replica : groups_[device]) {
      const MemoryId memory = problem_.platform[replica].memory;
      if (std::ranges::find(members, memory) == members.end()) members.push_back(memory);
    }
    return members;
  }

  Time reduction(const std::vector<MemoryId>& members,
                 const std::vector<TensorId>& gradients) const {
    Time sum;
    if (members.size() < 2) return sum;
    Bytes whole;
    for (const TensorId gradient : gradients) whole += workload_[gradient].bytes;
    const auto n = static_cast<std::uint32_t>(members.size());
    sum += openings_.of(members.front(), Bytes{(whole.count() + n - 1) / n},
                        parts_opened(CollectiveKind::all_reduce, n));
    for (const CollectiveSend& send : sends_of(all_reduce_, n, 0)) {
      const Route& route = *problem_.topology.route(members.front(), members[send.to]);
      const std::int64_t of = send.part.of;
      const Bytes part = Bytes{(whole.count() + of - 1) / of} * std::int64_t{send.part.count};
      sum += route.latency + transfer_time(part, route.bandwidth);
    }
    return sum;
  }

  const Problem& problem_;
  const Workload& workload_;
  const AllReduce all_reduce_;
  const CollectiveOpenings openings_;
  const Slots& slots_;
  const std::vector<TiedGradients> tied_;               ///< reduced by themselves
  const std::vector<std::vector<ProcessorId>> groups_;  ///< by device: its replicas
  std::vector<std::vector<OperatorId>> optimizers_;     ///< by device, as often as they run
  std::vector<std::vector<Time>> times_;                ///< by device
};

}  // namespace

std::vector<Time> update_times(const Problem& problem, const PipelineParameters& parameters,
                               const Slots& slots, const std::vector<ProcessorId>& devices,
                               const Plan& plan) {
  return UpdateTimes(problem, parameters, slots, devices, plan).run();
}

}  // namespace plimsoll
