#include "policy/pipeline/bounds/task_network.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace plimsoll {

namespace {

enum Part : std::uint32_t { kForward, kBackward, kWeight, kParts };

Part part_of(Task::Kind kind) {
  if (kind == Task::Kind::forward) return kForward;
  return kind == Task::Kind::backward_weight ? kWeight : kBackward;
}

/// Numbers the ways from one device to another.
class Ports {
 public:
  std::uint32_t of(std::uint32_t from, std::uint32_t to) {
    return ways_.emplace(std::pair(from, to), count()).first->second;
  }
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(ways_.size()); }

 private:
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> ways_;
};

/// What goes from one slot to another.
struct Passing {
  Time message, after, ahead;
};

void require_range(const SlotCosts& costs, std::uint32_t microbatches,
                   const std::vector<Time>& after) {
  Time once;
  Bytes kept;
  for (const SlotCosts::Slot& slot : costs.slots) {
    once += slot.forward + slot.backward_input + slot.backward_weight + slot.forward_message +
            slot.backward_message;
    kept += slot.saved;
  }
  Time all = once * std::int64_t{microbatches};
  for (const Time time : after) all += time;
  kept *= std::int64_t{microbatches};
}

}  // namespace

TaskNetwork TaskNetwork::turned_round() const {
  TaskNetwork turned = *this;
  std::swap(turned.before, turned.after);
  for (Class& it : turned.classes) {
    it.inputs = 0;
    it.kept = -it.kept;
    it.next = {};
  }
  for (std::uint32_t c = 0; c < classes.size(); ++c)
    for (const Handover& handover : classes[c].next) {
      if (handover.to == kNone) continue;
      Class& from = turned.classes[handover.to];
      from.next[from.next[0].to == kNone ? 0 : 1] = {c, handover.port, handover.time,
                                                     handover.ahead, handover.after};
      ++turned.classes[c].inputs;
    }
  return turned;
}

TaskNetwork task_network(const SlotCosts& costs, const SlotSlack& slack, std::uint32_t microbatches,
                         const std::vector<Time>& after, bool splits) {
  require_range(costs, microbatches, after);
  const auto slots = static_cast<std::uint32_t>(costs.slots.size());
  TaskNetwork network;
  network.devices = costs.devices;
  network.microbatches = microbatches;
  network.splits = splits;
  network.work = costs.work;
  network.classes.resize(kParts * std::size_t{slots});
  network.before.assign(costs.devices, 0);
  for (const Time time : after) network.after.push_back(time.count());
  Ports ports;
  const auto hand_over = [&](std::uint32_t from, std::uint32_t to, const Passing& passing = {}) {
    auto& giver = network.classes[from];
    auto& taker = network.classes[to];
    TaskNetwork::Handover handover{to};
    if (giver.device != taker.device)
      handover = {to, ports.of(giver.device, taker.device), passing.message.count(),
                  passing.after.count(), passing.ahead.count()};
    giver.next[giver.next[0].to == TaskNetwork::kNone ? 0 : 1] = handover;
    ++taker.inputs;
  };
  for (std::uint32_t s = 0; s < slots; ++s)
    for (std::uint32_t part = 0; part < kParts; ++part)
      network.classes[kParts * s + part].device = costs.placement[s];
  for (std::uint32_t s = 0; s < slots; ++s) {
    const SlotCosts::Slot& slot = costs.slots[s];
    TaskNetwork::Class* const parts = &network.classes[kParts * std::size_t{s}];
    parts[kForward].time = slot.forward.count();
    parts[kForward].kept = slot.saved.count();
    parts[kBackward].time =
        (splits ? slot.backward_input : slot.backward_input + slot.backward_weight).count();
    parts[kBackward].kept = -(splits ? slot.saved - slot.held : slot.saved).count();
    if (s + 1 < slots)
      hand_over(
          kParts * s + kForward, kParts * (s + 1) + kForward,
          {slot.forward_message, slack.slots[s].forward_after, slack.slots[s + 1].forward_ahead});
    else
      hand_over(kParts * s + kForward, kParts * s + kBackward);
    if (s > 0)
      hand_over(kParts * s + kBackward, kParts * (s - 1) + kBackward,
                {slot.backward_message, slack.slots[s].backward_after,
                 slack.slots[s - 1].backward_ahead});
    if (!splits) continue;
    parts[kWeight].time = slot.backward_weight.count();
    parts[kWeight].kept = -slot.held.count();
    hand_over(kParts * s + kBackward, kParts * s + kWeight);
  }
  network.ports = ports.count();
  return network;
}

std::uint32_t task_of(const TaskNetwork& network, const Task& task) {
  return (kParts * task.slot + part_of(task.kind)) * network.microbatches + task.microbatch;
}

TaskOrders orders_of(const TaskNetwork& network, const Schedule& schedule) {
  TaskOrders orders;
  for (const auto& order : schedule.orders) {
    auto& tasks = orders.emplace_back();
    tasks.reserve(order.size());
    for (const Task& task : order) tasks.push_back(task_of(network, task));
  }
  return orders;
}

Schedule schedule_of(const TaskNetwork& network, const SlotCosts& costs, const TaskOrders& orders) {
  const Task::Kind kinds[] = {Task::Kind::forward,
                              network.splits ? Task::Kind::backward_input : Task::Kind::backward,
                              Task::Kind::backward_weight};
  Schedule schedule;
  schedule.placement = costs.placement;
  for (const auto& order : orders) {
    auto& tasks = schedule.orders.emplace_back();
    for (const std::uint32_t task : order) {
      const std::uint32_t c = task / network.microbatches;
      tasks.push_back({kinds[c % kParts], c / kParts, task % network.microbatches});
    }
  }
  return schedule;
}

OrderEvaluator::OrderEvaluator(const TaskNetwork& network)
    : network_(network),
      starts_(network.tasks()),
      arrivals_(network.tasks()),
      missing_(network.tasks()),
      clocks_(network.devices),
      ports_(network.ports),
      next_(network.devices),
      waiting_(network.devices) {
  awake_.reserve(network.devices);
}

std::optional<OrderValue> OrderEvaluator::evaluate(const TaskOrders& orders) {
  network_.work.add(network_.tasks());
  const std::uint32_t m = network_.microbatches;
  for (std::size_t c = 0; c < network_.classes.size(); ++c)
    std::fill_n(missing_.begin() + static_cast<std::ptrdiff_t>(c * m), m,
                static_cast<std::uint8_t>(network_.classes[c].inputs));
  std::ranges::fill(arrivals_, 0);
  std::ranges::fill(ports_, 0);
  std::ranges::fill(next_, 0);
  clocks_ = network_.before;
  awake_.clear();
  for (std::uint32_t d = network_.devices; d-- > 0;) awake_.push_back(d);
  std::ranges::fill(waiting_, TaskNetwork::kNone);
  while (!awake_.empty()) {
    const std::uint32_t device = awake_.back();
    awake_.pop_back();
    run(orders, device);
  }
  OrderValue value;
  for (std::uint32_t d = 0; d < network_.devices; ++d) {
    if (next_[d] != orders[d].size()) return std::nullopt;
    const std::int64_t end = clocks_[d] + network_.after[d];
    value.makespan = std::max(value.makespan, end);
    if (!orders[d].empty()) value.span = std::max(value.span, end - starts_[orders[d].front()]);
  }
  return value;
}

void OrderEvaluator::run(const TaskOrders& orders, std::uint32_t device) {
  const std::vector<std::uint32_t>& order = orders[device];
  const std::uint32_t m = network_.microbatches;
  std::int64_t clock = clocks_[device];
  std::size_t& next = next_[device];
  waiting_[device] = TaskNetwork::kNone;
  for (; next < order.size(); ++next) {
    const std::uint32_t task = order[next];
    if (missing_[task] != 0) {
      waiting_[device] = task;
      break;
    }
    const TaskNetwork::Class& it = network_.of(task);
    starts_[task] = std::max(clock, arrivals_[task]);
    clock = starts_[task] + it.time;
    for (const TaskNetwork::Handover& handover : it.next) {
      if (handover.to == TaskNetwork::kNone) break;
      const std::uint32_t taker = handover.to * m + task % m;
      arrivals_[taker] = std::max(arrivals_[taker], arrival_of(handover, clock, ports_));
      if (--missing_[taker] != 0) continue;
      const std::uint32_t other = network_.classes[handover.to].device;
      if (waiting_[other] == taker && other != device) {
        waiting_[other] = TaskNetwork::kNone;
        awake_.push_back(other);
      }
    }
  }
  clocks_[device] = clock;
}

std::vector<std::int64_t> kept_by(const TaskNetwork& network, const TaskOrders& orders) {
  std::vector<std::int64_t> most;
  for (const auto& order : orders) {
    std::int64_t kept = 0, peak = 0;
    for (const std::uint32_t task : order) {
      kept += network.of(task).kept;
      peak = std::max(peak, kept);
    }
    most.push_back(peak);
  }
  return most;
}

bool keeps_to(const TaskNetwork& network, const TaskOrders& orders,
              const std::vector<std::int64_t>& limits) {
  return std::ranges::equal(kept_by(network, orders), limits, std::ranges::less_equal{});
}

}  // namespace plimsoll
