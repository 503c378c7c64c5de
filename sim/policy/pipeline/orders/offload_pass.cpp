#include "policy/pipeline/orders/offload_pass.hpp"

#include "policy/pipeline/bounds/task_network.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace plimsoll {

namespace {

using Kind = Task::Kind;
using Chunk = std::pair<std::uint32_t, std::uint32_t>;  ///< slot, microbatch

std::int64_t rounded_up(std::int64_t dividend, std::int64_t divisor) {
  return (dividend + divisor - 1) / divisor;
}

struct Timed {
  Task task;
  std::int64_t start = 0, end = 0;  ///< ps
};

/// The tasks of all devices on the pass's clock.
class Clock {
 public:
  explicit Clock(const OffloadPass& pass) : pass_(pass), costs_(pass.costs) {
    const auto slotted = gis_tasks(costs_, pass.microbatches, pass.group);
    orders_.resize(slotted.size());
    if (pass.group == 1)
      start_at_slots(slotted);
    else
      start_as_executed(slotted);
    for (auto& order : orders_)
      for (Timed& it : order) it.end = it.start + time(it.task);
    for (std::uint32_t device = costs_.devices; device-- > 0;) postpone_warm_up(device);
  }

  [[nodiscard]] const std::vector<Timed>& order(std::uint32_t device) const {
    return orders_[device];
  }

  [[nodiscard]] std::int64_t time(const Task& task) const {
    const SlotCosts::Slot& slot = costs_.slots[task.slot];
    switch (task.kind) {
      case Kind::forward:
        return slot.forward.count();
      case Kind::backward_input:
        return slot.backward_input.count();
      default:
        return slot.backward_weight.count();
    }
  }

 private:
  void start_at_slots(const std::vector<std::vector<SlottedTask>>& slotted) {
    std::int64_t longest = 0;
    for (const SlotCosts::Slot& it : costs_.slots)
      longest = std::max(longest, (it.forward + it.backward_input + it.backward_weight).count());
    const std::int64_t length = rounded_up(longest, 3), most = free_slots(slotted);
    for (std::uint32_t i = 0; i < slotted.size(); ++i)
      for (const SlottedTask& it : slotted[i])
        orders_[i].push_back({it.task, (it.slot + std::min<std::int64_t>(i, most)) * length});
  }

  /// x of the header.
  [[nodiscard]] std::int64_t free_slots(
      const std::vector<std::vector<SlottedTask>>& slotted) const {
    std::map<std::uint32_t, std::int64_t> first;  // by slot of the network, of microbatch 0
    for (const auto& tasks : slotted)
      for (const SlottedTask& it : tasks)
        if (it.task.kind == Kind::forward && it.task.microbatch == 0) first[it.task.slot] = it.slot;
    const std::uint32_t p = costs_.devices;
    std::int64_t least = p;
    for (std::uint32_t slot = p; slot < costs_.slots.size(); slot += p)
      least = std::min(least, first.at(slot) - first.at(slot - 1));
    return std::min<std::int64_t>(p, least) - 1;
  }

  void start_as_executed(const std::vector<std::vector<SlottedTask>>& slotted) {
    const SlotSlack none{std::vector<SlotSlack::Times>(costs_.slots.size())};
    const TaskNetwork network =
        task_network(costs_, none, pass_.microbatches, std::vector<Time>(costs_.devices), true);
    TaskOrders orders;
    for (const auto& tasks : slotted) {
      auto& order = orders.emplace_back();
      for (const SlottedTask& it : tasks) order.push_back(task_of(network, it.task));
    }
    OrderEvaluator evaluator(network);
    (void)evaluator.evaluate(orders);
    for (std::uint32_t i = 0; i < slotted.size(); ++i)
      for (const SlottedTask& it : slotted[i])
        orders_[i].push_back({it.task, evaluator.starts()[task_of(network, it.task)]});
  }

  /// From the last forward before the first backward back to the first of the last chunk.
  void postpone_warm_up(std::uint32_t device) {
    std::vector<Timed>& order = orders_[device];
    const auto first = std::ranges::find(order, Kind::backward_input,
                                         [](const Timed& it) { return it.task.kind; });
    std::int64_t latest = first->start - time(first->task);
    for (auto it = first; it-- != order.begin();) {
      const Task& task = it->task;
      const bool is_last_chunk = task.slot + costs_.devices >= costs_.slots.size();
      if (is_last_chunk && task.microbatch == 0) return;
      const std::int64_t end = std::min(latest, consumer_of(task));
      const std::int64_t later = std::max<std::int64_t>(0, end - it->end);
      it->start += later;
      it->end += later;
      latest = it->start;
      note(task, it->start);
    }
  }

  /// When what a forward makes has to leave at the latest.
  [[nodiscard]] std::int64_t consumer_of(const Task& task) {
    if (task.slot + std::size_t{1} == costs_.slots.size()) return Time::unlimited().count();
    const std::uint32_t next = task.slot + 1;
    return starts_of(next % costs_.devices).at({next, task.microbatch}) -
           costs_.slots[task.slot].forward_message.count();
  }

  using Starts = std::map<Chunk, std::int64_t>;

  /// Starts of the forwards of a device.
  Starts& starts_of(std::uint32_t device) {
    starts_.resize(costs_.devices);
    Starts& starts = starts_[device];
    if (starts.empty())
      for (const Timed& it : orders_[device])
        if (it.task.kind == Kind::forward) starts[{it.task.slot, it.task.microbatch}] = it.start;
    return starts;
  }

  void note(const Task& task, std::int64_t start) {
    starts_of(task.slot % costs_.devices)[{task.slot, task.microbatch}] = start;
  }

  const OffloadPass& pass_;
  const SlotCosts& costs_;
  std::vector<std::vector<Timed>> orders_;  ///< by device
  std::vector<Starts> starts_;              ///< by device, as far as asked for
};

/// Copies of one device.
class DeviceCopies {
 public:
  DeviceCopies(const OffloadPass& pass, const Clock& clock, std::uint32_t device)
      : pass_(pass),
        order_(clock.order(device)),
        length_(std::max<std::int64_t>(1, rounded_up(pass.copy.count() * 10, 7))),
        begin_(clock.order(device - device % 2).front().end + (device % 2) * length_) {
    find_candidates(clock);
    place_ins();
    place_outs();
    hurry_first_outs();
    std::erase_if(away_, [](const Away& it) { return it.in < it.out_end; });
  }

  [[nodiscard]] std::vector<Task> order() const {
    std::vector<std::vector<Task>> behind(order_.size());
    std::vector<std::pair<std::int64_t, Task>> ends, ins;
    for (const Away& it : away_) {
      const auto [slot, microbatch] = it.chunk;
      behind[it.forward].push_back({Kind::offload, slot, microbatch});
      ends.emplace_back(it.out_end, Task{Kind::await_offload, slot, microbatch});
      ins.emplace_back(it.in, Task{Kind::reload, slot, microbatch});
    }
    const auto when = [](const auto& it) { return it.first; };
    std::ranges::stable_sort(ends, {}, when);
    std::ranges::stable_sort(ins, {}, when);
    for (const auto& [in, reload] : ins) {
      const std::size_t before = task_at(in);
      const bool stands_idle = order_[before].end <= in;
      behind[before].push_back(reload);
      if (stands_idle) behind[before].back().kind = Kind::reload_after;
    }
    std::vector<Task> order;
    auto gone = ends.begin();
    for (std::size_t t = 0; t < order_.size(); ++t) {
      for (; gone != ends.end() && gone->first <= order_[t].start; ++gone)
        order.push_back(gone->second);
      order.push_back(order_[t].task);
      order.insert(order.end(), behind[t].begin(), behind[t].end());
    }
    return order;
  }

 private:
  struct Away {
    Chunk chunk;
    std::size_t forward = 0;            ///< its place in the order
    std::int64_t made = 0, needed = 0;  ///< the end of its forward; when it is to be back
    std::int64_t out = 0, out_end = 0, in = 0;
  };

  void find_candidates(const Clock& clock) {
    std::map<Chunk, std::int64_t> needed;
    for (const Timed& it : order_)
      if (it.task.kind == Kind::backward_input)
        needed[{it.task.slot, it.task.microbatch}] = it.start - clock.time(it.task);
    for (std::size_t t = 0; t < order_.size(); ++t) {
      const Task& task = order_[t].task;
      if (task.kind != Kind::forward || task.slot / pass_.costs.devices >= pass_.chunks) continue;
      const Away it{
          {task.slot, task.microbatch}, t, order_[t].end, needed.at({task.slot, task.microbatch})};
      if (it.needed - it.made > 6 * length_) away_.push_back(it);
    }
  }

  /// From the last backward back, the last in-slot that is free and ends in time.
  void place_ins() {
    std::vector<Away*> by_need;
    for (Away& it : away_) by_need.push_back(&it);
    std::ranges::stable_sort(by_need, std::greater<>{}, &Away::needed);
    std::int64_t next = Time::unlimited().count();  // the in-slot taken last: odd
    for (Away* it : by_need) {
      std::int64_t slot = (it->needed - begin_) / length_ - 1;
      slot -= 1 - slot % 2;
      next = std::min(slot, next - 2);
      it->in = begin_ + next * length_;
    }
  }

  /// In the order of the forwards, the first out-slot that is free.
  void place_outs() {
    std::int64_t next = 0;
    for (Away& it : away_) {
      std::int64_t slot = rounded_up(std::max<std::int64_t>(0, it.made - begin_), length_);
      slot += slot % 2;
      next = std::max(slot, next);
      it.out = begin_ + next * length_;
      it.out_end = it.out + length_;
      next += 2;
    }
  }

  /// Copies out that nothing comes back beside.
  void hurry_first_outs() {
    if (away_.empty()) return;
    const std::int64_t first_in = std::ranges::min(away_, {}, &Away::in).in;
    std::int64_t free = 0;
    for (Away& it : away_) {
      if (it.out >= first_in) return;
      const std::int64_t start = std::max(free, it.made);
      it.out_end = std::min(it.out_end, start + pass_.copy.count());
      free = it.out_end;
    }
  }

  /// The last task that has started at `when`.
  [[nodiscard]] std::size_t task_at(std::int64_t when) const {
    const auto later = std::ranges::upper_bound(order_, when, {}, &Timed::start);
    return static_cast<std::size_t>(later - order_.begin()) - 1;
  }

  const OffloadPass& pass_;
  const std::vector<Timed>& order_;
  const std::int64_t length_;  ///< t, in ps
  const std::int64_t begin_;   ///< of the slots for copies
  std::vector<Away> away_;     ///< in the order of their forwards
};

}  // namespace

Schedule with_offload_pass(const OffloadPass& pass) {
  const Clock clock(pass);
  Schedule schedule{pass.costs.placement, {}};
  for (std::uint32_t device = 0; device < pass.costs.devices; ++device)
    schedule.orders.push_back(DeviceCopies(pass, clock, device).order());
  return schedule;
}

}  // namespace plimsoll
