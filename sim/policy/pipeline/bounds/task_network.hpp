/// The tasks of a pipeline with a flush as a network: what searches for orders evaluate.
///
/// A task is of a class, which is a forward, a backward or a weight half of one slot, and of a
/// microbatch. The tasks of a class run on one device, take one time and hand over to the same
/// microbatch's tasks of at most two classes. A message takes its turn on a port, after those that
/// the device has sent over it before; it leaves when what it carries is made, and only holds up
/// what reads it, which may be within a task of several operators. A class keeps bytes from its
/// start on, or frees them at its end.
///
/// Turned round in time a network is one, too, so what moves tasks to earlier places can move them
/// to later ones.
#pragma once

#include "policy/pipeline/schedule/schedule.hpp"
#include "policy/pipeline/schedule/slot_slack.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace plimsoll {

struct TaskNetwork {
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  struct Handover {
    std::uint32_t to = kNone;  ///< a class
    std::uint32_t port = kNone;
    std::int64_t time = 0;  ///< of the message, in ps
    /// What the giver still does when the message can leave, and the taker before it needs it.
    std::int64_t after = 0, ahead = 0;
    /// From the end of the giver to the start of the taker, at least.
    [[nodiscard]] std::int64_t lag() const { return time - after - ahead; }
  };
  struct Class {
    std::uint32_t device = 0;
    std::uint32_t inputs = 0;  ///< handovers to it
    std::int64_t time = 0;     ///< in ps
    std::int64_t kept = 0;     ///< bytes; where negative, freed at the end
    std::array<Handover, 2> next;
  };

  std::uint32_t devices = 0, microbatches = 0, ports = 0;
  bool splits = false;                      ///< whether backwards are in halves
  std::vector<Class> classes;               ///< by 3 * slot + kind, see class_of()
  std::vector<std::int64_t> before, after;  ///< by device: ps in which it does something else
  Work work;                                ///< where searches for orders count their steps

  /// Tasks have dense ids: class * microbatches + microbatch.
  [[nodiscard]] std::size_t tasks() const { return classes.size() * microbatches; }
  [[nodiscard]] const Class& of(std::uint32_t task) const { return classes[task / microbatches]; }
  [[nodiscard]] TaskNetwork turned_round() const;
};

/// When `handover` of a task that ends at `end` allows the taker to start. `ports`: until when they
/// are taken.
[[nodiscard]] inline std::int64_t arrival_of(const TaskNetwork::Handover& handover,
                                             std::int64_t end, std::vector<std::int64_t>& ports) {
  const std::int64_t leaves = end - handover.after;
  if (handover.port == TaskNetwork::kNone) return leaves + handover.time - handover.ahead;
  std::int64_t& port = ports[handover.port];
  port = std::max(leaves, port) + handover.time;
  return port - handover.ahead;
}

/// By device: its tasks, in order.
using TaskOrders = std::vector<std::vector<std::uint32_t>>;

/// `after`: by device, what follows its tasks (update_times.hpp). `splits`: whether each backward
/// is two tasks. Throws QuantityOverflow where all tasks and messages, one after the other, leave
/// the range.
[[nodiscard]] TaskNetwork task_network(const SlotCosts& costs, const SlotSlack& slack,
                                       std::uint32_t microbatches, const std::vector<Time>& after,
                                       bool splits);

[[nodiscard]] std::uint32_t task_of(const TaskNetwork& network, const Task& task);
[[nodiscard]] TaskOrders orders_of(const TaskNetwork& network, const Schedule& schedule);
[[nodiscard]] Schedule schedule_of(const TaskNetwork& network, const SlotCosts& costs,
                                   const TaskOrders& orders);

/// What orders are compared by, the makespan first.
struct OrderValue {
  std::int64_t makespan = 0, span = 0;  ///< ps; the largest span of a device
  auto operator<=>(const OrderValue&) const = default;
};

/// Executes orders: every task as early as its device, its inputs and their messages allow.
class OrderEvaluator {
 public:
  /// `network` must outlive it.
  explicit OrderEvaluator(const TaskNetwork& network);

  /// nullopt where the orders wait for each other. O(tasks), without allocations.
  [[nodiscard]] std::optional<OrderValue> evaluate(const TaskOrders& orders);

  /// By task, of the last evaluation.
  [[nodiscard]] const std::vector<std::int64_t>& starts() const { return starts_; }

 private:
  void run(const TaskOrders& orders, std::uint32_t device);

  const TaskNetwork& network_;
  std::vector<std::int64_t> starts_, arrivals_;  ///< by task
  std::vector<std::uint8_t> missing_;            ///< by task: inputs
  std::vector<std::int64_t> clocks_, ports_;
  std::vector<std::size_t> next_;       ///< by device
  std::vector<std::uint32_t> awake_;    ///< devices that may go on
  std::vector<std::uint32_t> waiting_;  ///< by device: the task that it waits for, or kNone
};

/// By device: the most bytes that its order keeps.
[[nodiscard]] std::vector<std::int64_t> kept_by(const TaskNetwork& network,
                                                const TaskOrders& orders);
/// Whether no device keeps more than its limit.
[[nodiscard]] bool keeps_to(const TaskNetwork& network, const TaskOrders& orders,
                            const std::vector<std::int64_t>& limits);

}  // namespace plimsoll
