#include "policy/pipeline/bounds/slot_passes.hpp"

#include "base/dense_id.hpp"
#include "plan/core/mirror_problems.hpp"
#include "workload/cost/cost_model.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace plimsoll {

namespace {

using Operators = std::vector<OperatorId>;

/// Whether plans run it where they like, before what reads it.
bool is_moved(const Operator& op) {
  return op.collective.kind != CollectiveKind::none &&
         (op.collective.axis == MeshAxis::data || moves_state(op.collective.kind));
}

class Walker {
 public:
  Walker(const Problem& problem, const Slots& slots, const std::vector<ProcessorId>& devices)
      : problem_(problem),
        workload_(problem.workload),
        slots_(slots),
        devices_(devices),
        ready_(workload_.tensors.size()),
        walk_of_(workload_.tensors.size()) {
    for (const ProcessorId device : devices) times_of_.push_back(times_like(device));
  }

  SlotPasses run(bool splits) {
    SlotPasses passes;
    for (std::size_t s = 0; s < slots_.count(); ++s) {
      SlotPasses::Slot& it = passes.slots.emplace_back();
      it.forward = pass(s, true, forwards(s), passes.is_known);
      it.backward = pass(s, false, backwards(s, splits, false), passes.is_known);
      if (splits) it.weight = walk(s, backwards(s, splits, true));
    }
    passes.updates = updates();
    return passes;
  }

 private:
  /// The place in `times_` of what a processor like it takes.
  std::size_t times_like(ProcessorId device) {
    for (std::size_t t = 0; t < timed_.size(); ++t)
      if (are_alike(problem_.platform, timed_[t], device)) return t;
    timed_.push_back(device);
    times_.push_back(durations(workload_, problem_.platform, device));
    return timed_.size() - 1;
  }

  [[nodiscard]] Time time(std::uint32_t device, OperatorId op) const {
    return is_moved(workload_[op]) ? Time{} : times_[times_of_[device]][index(op)];
  }

  [[nodiscard]] Operators forwards(std::size_t slot) const {
    Operators all;
    slots_.for_forwards(slot, [&](OperatorId op) { all.push_back(op); });
    return all;
  }

  /// Of one half where they are split, else all.
  [[nodiscard]] Operators backwards(std::size_t slot, bool splits, bool weight) const {
    Operators all;
    slots_.for_backwards(slot, [&](Slots::StageBackward backward) {
      for (const OperatorId op : backward)
        if (!splits || (workload_[op].phase == Phase::backward_weight) == weight) all.push_back(op);
    });
    return all;
  }

  [[nodiscard]] MemoryId memory(std::size_t slot) const {
    return slots_.memory(slots_.device(slot));
  }

  /// What neighbours on other devices send this one.
  [[nodiscard]] std::vector<TensorId> received(std::size_t slot, bool forward) const {
    const bool is_first = forward ? slot == 0 : slot + 1 == slots_.count();
    if (is_first) return {};
    return sent(forward ? slot - 1 : slot + 1, forward);
  }

  [[nodiscard]] std::vector<TensorId> sent(std::size_t slot, bool forward) const {
    const bool is_last = forward ? slot + 1 == slots_.count() : slot == 0;
    if (is_last) return {};
    const MemoryId to = memory(forward ? slot + 1 : slot - 1);
    std::vector<TensorId> sent;
    for (const Message& message : slots_.messages(slot, forward))
      if (slots_.memory(message.to_device) == to) sent.push_back(message.tensor);
    return sent;
  }

  [[nodiscard]] bool is_handed_on(std::size_t slot, bool forward, TensorId id) const {
    return std::ranges::any_of(slots_.messages(slot, forward), [&](const Message& message) {
      return message.tensor == id && message.is_handed_on;
    });
  }

  SlotPass pass(std::size_t slot, bool forward, const Operators& operators, bool& is_known) {
    const std::vector<TensorId> wanted = received(slot, forward), made = sent(slot, forward);
    const bool is_last = forward ? slot + 1 == slots_.count() : slot == 0;
    if (!is_last && made.empty() && memory(slot) != memory(forward ? slot + 1 : slot - 1))
      is_known = false;
    const auto reads = [&](OperatorId op) {
      return std::ranges::any_of(workload_.list(workload_[op].reads), [&](TensorId read) {
        return std::ranges::find(wanted, read) != wanted.end();
      });
    };
    const auto first = wanted.empty() ? operators.begin() : std::ranges::find_if(operators, reads);
    SlotPass it;
    it.ahead = walk(slot, {operators.begin(), first});
    it.rest = walk(slot, {first, operators.end()});
    it.sends = made.empty() ? it.rest : Time::unlimited();
    for (const TensorId id : made)
      it.sends = std::min(it.sends, is_handed_on(slot, forward, id) ? it.rest : ready_after(id));
    return it;
  }

  /// When a value is whole, of the last walk; of one that was there before, at its start.
  [[nodiscard]] Time ready_after(TensorId id) const {
    return walk_of_[index(id)] == walk_ ? ready_[index(id)] : Time{};
  }

  /// One operator after the other on the device of the slot; the time until the last has ended.
  Time walk(std::size_t slot, std::span<const OperatorId> operators) {
    ++walk_;
    const std::uint32_t device = slots_.device(slot);
    Time clock;
    for (const OperatorId id : operators) {
      const Operator& op = workload_[id];
      for (const TensorId read : workload_.list(op.reads))
        clock = std::max(clock, ready_after(read));
      clock += time(device, id);
      Time whole = clock;
      const bool waits = op.collective.kind != CollectiveKind::none && !is_moved(op);
      if (waits && problem_.bound->collective)
        whole += problem_.bound->collective(id, devices_[device]);
      for (const TensorList list : {op.kept, op.bare, op.updates})
        for (const TensorId made : workload_.list(list)) {
          ready_[index(made)] = whole;
          walk_of_[index(made)] = walk_;
        }
    }
    return clock;
  }

  /// As optimizer_steps.hpp has them run.
  std::vector<Time> updates() {
    std::vector<Time> updates(devices_.size());
    std::vector<std::vector<std::uint32_t>> changed(workload_.tensors.size());
    for (std::uint32_t o = workload_.optimizer_begin; o < workload_.operators.size(); ++o) {
      const Operator& op = workload_.operators[o];
      std::vector<std::uint32_t> on;
      const auto add = [&](const std::vector<std::uint32_t>& devices) {
        on.insert(on.end(), devices.begin(), devices.end());
      };
      for (const TensorId read : workload_.list(op.reads)) {
        add(slots_.makers(read));
        add(changed[index(read)]);
      }
      std::ranges::sort(on);
      on.erase(std::ranges::unique(on).begin(), on.end());
      for (const std::uint32_t device : on) updates[device] += time(device, OperatorId{o});
      for (const TensorList list : {op.kept, op.updates})
        for (const TensorId id : workload_.list(list)) changed[index(id)] = on;
    }
    return updates;
  }

  const Problem& problem_;
  const Workload& workload_;
  const Slots& slots_;
  const std::vector<ProcessorId>& devices_;
  std::vector<ProcessorId> timed_;        ///< one of each kind
  std::vector<std::vector<Time>> times_;  ///< of these, by operator
  std::vector<std::size_t> times_of_;     ///< by device
  std::uint32_t walk_ = 0;
  std::vector<Time> ready_;             ///< by tensor: when it is whole
  std::vector<std::uint32_t> walk_of_;  ///< by tensor: the walk of which that is
};

}  // namespace

SlotPasses slot_passes(const Problem& problem, const Slots& slots,
                       const std::vector<ProcessorId>& devices, bool splits) {
  return Walker(problem, slots, devices).run(splits);
}

}  // namespace plimsoll
