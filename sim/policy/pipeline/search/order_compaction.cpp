#include "policy/pipeline/search/order_compaction.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace plimsoll {

namespace {

/// So many places of an order are looked at for room.
constexpr std::size_t kCompactionReach = 256;

/// The tasks of one class, by place in the order of its device.
struct Queue {
  std::uint32_t of = 0;  ///< the class
  std::vector<std::uint32_t> places;
  std::size_t next = 0;
};

struct DeviceLine {
  std::vector<Queue> queues;
  std::vector<bool> done;  ///< by place
  std::size_t head = 0;    ///< the first place that is not done
  std::int64_t free_at = 0, kept = 0;
};

/// A task is queued, looked for and started.
constexpr std::size_t kStepsATask = 8;

class Compactor {
 public:
  Compactor(const TaskNetwork& network, const TaskOrders& orders,
            const std::vector<std::int64_t>& limits, const AllowedDelay& allowed_delay)
      : network_(network),
        orders_(orders),
        limits_(limits),
        allowed_delay_(allowed_delay),
        lines_(network.devices),
        arrivals_(network.tasks(), 0),
        missing_(network.tasks()),
        ports_(network.ports, 0),
        result_(network.devices) {
    for (std::uint32_t c = 0; c < network.classes.size(); ++c)
      std::fill_n(missing_.begin() + std::ptrdiff_t{c} * network.microbatches, network.microbatches,
                  static_cast<std::uint8_t>(network.classes[c].inputs));
    for (std::uint32_t d = 0; d < network.devices; ++d) queue_up(d);
  }

  TaskOrders run() {
    network_.work.add(kStepsATask * network_.tasks());
    for (std::uint32_t d = 0; d < network_.devices; ++d) {
      lines_[d].free_at = network_.before[d];
      moments_.emplace(lines_[d].free_at, d);
    }
    while (!moments_.empty()) {
      const auto [now, device] = moments_.top();
      moments_.pop();
      if (lines_[device].free_at <= now) go_on(device, now);
    }
    return std::move(result_);
  }

 private:
  void queue_up(std::uint32_t d) {
    std::vector<Queue>& queues = lines_[d].queues;
    for (std::uint32_t place = 0; place < orders_[d].size(); ++place) {
      const std::uint32_t c = orders_[d][place] / network_.microbatches;
      auto queue = std::ranges::find(queues, c, &Queue::of);
      if (queue == queues.end()) queue = queues.insert(queues.end(), Queue{c, {}, 0});
      queue->places.push_back(place);
    }
    lines_[d].done.assign(orders_[d].size(), false);
    result_[d].reserve(orders_[d].size());
  }

  bool is_ready(std::uint32_t task, std::int64_t now) const {
    return missing_[task] == 0 && arrivals_[task] <= now;
  }

  void go_on(std::uint32_t d, std::int64_t now) {
    DeviceLine& line = lines_[d];
    const auto& order = orders_[d];
    while (line.head < order.size() && line.done[line.head]) ++line.head;
    if (line.head == order.size()) return;
    Queue* chosen = nullptr;
    for (Queue& queue : line.queues) {
      if (queue.next == queue.places.size()) continue;
      const std::uint32_t place = queue.places[queue.next];
      if (chosen != nullptr && place > chosen->places[chosen->next]) continue;
      if (is_ready(order[place], now) && (place == line.head || may_overtake(d, place, now)))
        chosen = &queue;
    }
    if (chosen != nullptr) start(d, chosen->places[chosen->next++], now);
  }

  bool may_overtake(std::uint32_t d, std::size_t place, std::int64_t now) const {
    const DeviceLine& line = lines_[d];
    const std::uint32_t task = orders_[d][place], first = orders_[d][line.head];
    const TaskNetwork::Class& it = network_.of(task);
    if (missing_[first] == 0) {
      const bool is_weight = task / network_.microbatches % 3 == 2;
      const std::int64_t quarters =
          4 - (is_weight ? allowed_delay_.of_weights : allowed_delay_.of_others);
      if (now + it.time / 4 * quarters + it.time % 4 * quarters / 4 > arrivals_[first])
        return false;
    }
    return it.kept <= 0 || has_room(d, place, it.kept);
  }

  /// Whether so much more may be kept from now on until `place`.
  bool has_room(std::uint32_t d, std::size_t place, std::int64_t more) const {
    const DeviceLine& line = lines_[d];
    if (place - line.head > kCompactionReach) return false;
    std::int64_t kept = line.kept + more;
    if (kept > limits_[d]) return false;
    for (std::size_t i = line.head; i < place; ++i) {
      if (line.done[i]) continue;
      kept += network_.of(orders_[d][i]).kept;
      if (kept > limits_[d]) return false;
    }
    return true;
  }

  void start(std::uint32_t d, std::size_t place, std::int64_t now) {
    DeviceLine& line = lines_[d];
    const std::uint32_t task = orders_[d][place], m = network_.microbatches;
    const TaskNetwork::Class& it = network_.of(task);
    line.done[place] = true;
    line.kept += it.kept;
    line.free_at = now + it.time;
    moments_.emplace(line.free_at, d);
    result_[d].push_back(task);
    for (const TaskNetwork::Handover& handover : it.next) {
      if (handover.to == TaskNetwork::kNone) break;
      const std::uint32_t taker = handover.to * m + task % m;
      arrivals_[taker] = std::max(arrivals_[taker], arrival_of(handover, line.free_at, ports_));
      if (--missing_[taker] != 0) continue;
      // A taker that need not wait for all of the giver may be ready since before now.
      const std::uint32_t other = network_.classes[handover.to].device;
      moments_.emplace(std::max(arrivals_[taker], lines_[other].free_at), other);
    }
  }

  using Moment = std::pair<std::int64_t, std::uint32_t>;  ///< time, device

  const TaskNetwork& network_;
  const TaskOrders& orders_;
  const std::vector<std::int64_t>& limits_;
  const AllowedDelay allowed_delay_;
  std::vector<DeviceLine> lines_;
  std::vector<std::int64_t> arrivals_;  ///< by task
  std::vector<std::uint8_t> missing_;   ///< by task: inputs
  std::vector<std::int64_t> ports_;
  std::priority_queue<Moment, std::vector<Moment>, std::greater<>> moments_;
  TaskOrders result_;
};

}  // namespace

TaskOrders compacted(const TaskNetwork& network, const TaskOrders& orders,
                     const std::vector<std::int64_t>& limits, const AllowedDelay& allowed_delay) {
  return Compactor(network, orders, limits, allowed_delay).run();
}

}  // namespace plimsoll
