#include "policy/pipeline/schedule/slot_slack.hpp"

#include "workload/cost/cost_model.hpp"

#include <algorithm>
#include <span>

namespace plimsoll {

namespace {

class Slack {
 public:
  Slack(const Problem& problem, const Slots& slots, const std::vector<ProcessorId>& devices)
      : workload_(problem.workload), slots_(slots) {
    for (const ProcessorId device : devices)
      times_.push_back(durations(problem.workload, problem.platform, device));
  }

  SlotSlack run() const {
    SlotSlack slack{std::vector<SlotSlack::Times>(slots_.count())};
    for (std::size_t s = 0; s + 1 < slots_.count(); ++s) {
      const auto &first = operators(s, true), &second = operators(s + 1, true);
      slack.slots[s].forward_after = after(s, first, second);
      slack.slots[s + 1].forward_ahead = ahead(s + 1, first, second);
      const auto &gives = operators(s + 1, false), &takes = operators(s, false);
      slack.slots[s + 1].backward_after = after(s + 1, gives, takes);
      slack.slots[s].backward_ahead = ahead(s, gives, takes);
    }
    return slack;
  }

 private:
  using Operators = std::vector<OperatorId>;

  Operators operators(std::size_t slot, bool forward) const {
    Operators all;
    if (forward) slots_.for_forwards(slot, [&](OperatorId op) { all.push_back(op); });
    if (!forward)
      slots_.for_backwards(slot, [&](Slots::StageBackward backward) {
        for (const OperatorId op : backward)
          if (workload_[op].phase != Phase::backward_weight) all.push_back(op);
      });
    return all;
  }

  Time time(std::size_t slot, OperatorId op) const {
    return times_[slots_.device(slot)][index(op)];
  }

  std::vector<TensorId> made(const Operators& operators) const {
    std::vector<TensorId> made;
    for (const OperatorId op : operators)
      for (const TensorList slice : {workload_[op].kept, workload_[op].bare, workload_[op].updates})
        for (const TensorId tensor : workload_.list(slice))
          if (workload_[tensor].lifetime == Lifetime::step) made.push_back(tensor);
    std::ranges::sort(made);
    return made;
  }

  bool reads_any(OperatorId op, const std::vector<TensorId>& sorted) const {
    return std::ranges::any_of(workload_.list(workload_[op].reads), [&](TensorId read) {
      return std::ranges::binary_search(sorted, read);
    });
  }

  /// The end of `gives` that makes nothing that the first of `takes` reads which waits for it: where
  /// something is carried beside a value, others may wait for more.
  Time after(std::size_t slot, const Operators& gives, const Operators& takes) const {
    const std::vector<TensorId> all = made(gives);
    const auto first =
        std::ranges::find_if(takes, [&](OperatorId op) { return reads_any(op, all); });
    Time sum;
    for (std::size_t n = gives.size(); n-- > 0;) {
      if (first != takes.end() && reads_any(*first, made({gives[n]}))) break;
      sum += time(slot, gives[n]);
    }
    return sum;
  }

  /// The begin of `takes` that reads nothing that `gives` makes.
  Time ahead(std::size_t slot, const Operators& gives, const Operators& takes) const {
    const std::vector<TensorId> all = made(gives);
    Time sum;
    for (const OperatorId op : takes) {
      if (reads_any(op, all)) break;
      sum += time(slot, op);
    }
    return sum;
  }

  const Workload& workload_;
  const Slots& slots_;
  std::vector<std::vector<Time>> times_;  ///< by device
};

}  // namespace

SlotSlack slot_slack(const Problem& problem, const Slots& slots,
                     const std::vector<ProcessorId>& devices) {
  return Slack(problem, slots, devices).run();
}

}  // namespace plimsoll
