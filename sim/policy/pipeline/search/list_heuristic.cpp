#include "policy/pipeline/search/list_heuristic.hpp"

#include "policy/pipeline/search/best_schedules.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

/// A task is timed and put behind others.
constexpr std::size_t kStepsAListedTask = 8;

struct Options {
  bool early = true;  ///< no extra forward that would end after the first backward's input
  bool prefer_backward = true;  ///< a forward waits where it would delay the next device's backward
  bool greedy = true;           ///< a weight half may fill a gap that is too short for it
};

struct Device {
  Time clock, first_start, gap;
  Bytes memory;
  std::uint32_t forwards = 0, inputs = 0, weights = 0;
  std::vector<Time> forward_end, input_end;
  std::vector<Task> order;

  [[nodiscard]] std::uint32_t pending() const { return inputs - weights; }
};

class Attempt {
 public:
  Attempt(const SlotCosts& costs, std::uint32_t microbatches, const std::vector<Bytes>& limits,
          Options options)
      : costs_(costs),
        m_(microbatches),
        p_(costs.devices),
        limits_(limits),
        options_(options),
        devices_(p_) {}

  /// Whether memory was enough.
  bool run() {
    first_microbatch();
    for (std::uint32_t k = 1; k < m_ && fits_; ++k) {
      forwards();
      backwards(k);
    }
    for (std::uint32_t j = 0; j < p_; ++j) put_all_weights(j);
    return fits_;
  }

  [[nodiscard]] Time largest_span() const {
    Time span;
    for (const Device& it : devices_) span = std::max(span, it.clock - it.first_start);
    return span;
  }

  [[nodiscard]] Time makespan() const {
    return std::ranges::max(devices_, {}, &Device::clock).clock;
  }

  [[nodiscard]] Schedule schedule() && {
    Schedule schedule{costs_.placement, {}};
    for (Device& it : devices_) schedule.orders.push_back(std::move(it.order));
    return schedule;
  }

 private:
  const SlotCosts::Slot& cost(std::uint32_t j) const { return costs_.slots[j]; }

  /// When the gradient that device j + 1 finishes at `end` is on device j.
  Time from_next(std::uint32_t j, Time end) const { return end + cost(j + 1).backward_message; }
  Time forward_input(std::uint32_t j, std::uint32_t k) const {
    return j == 0 ? Time{} : devices_[j - 1].forward_end[k] + cost(j - 1).forward_message;
  }
  Time backward_input(std::uint32_t j, std::uint32_t k) const {
    return j + 1 == p_ ? Time{} : from_next(j, devices_[j + 1].input_end[k]);
  }

  Time put(Device& it, Task::Kind kind, std::uint32_t slot, std::uint32_t k, Time ready,
           Time time) {
    const Time start = std::max(it.clock, ready);
    if (it.order.empty())
      it.first_start = start;
    else
      it.gap += start - it.clock;
    largest_gap_ = std::max(largest_gap_, it.gap);
    it.clock = start + time;
    it.order.push_back({kind, slot, k});
    return it.clock;
  }

  void put_forward(std::uint32_t j) {
    Device& it = devices_[j];
    it.memory += cost(j).saved;
    const std::uint32_t k = it.forwards++;
    it.forward_end.push_back(
        put(it, Task::Kind::forward, j, k, forward_input(j, k), cost(j).forward));
  }
  void put_input(std::uint32_t j) {
    Device& it = devices_[j];
    it.memory -= cost(j).saved - cost(j).held;
    const std::uint32_t k = it.inputs++;
    it.input_end.push_back(
        put(it, Task::Kind::backward_input, j, k, backward_input(j, k), cost(j).backward_input));
  }
  void put_weight(std::uint32_t j) {
    Device& it = devices_[j];
    it.memory -= cost(j).held;
    put(it, Task::Kind::backward_weight, j, it.weights++, Time{}, cost(j).backward_weight);
  }
  void put_all_weights(std::uint32_t j) {
    while (devices_[j].pending() > 0) put_weight(j);
  }

  void make_room(std::uint32_t j) {
    while (devices_[j].memory + cost(j).saved > limits_[j]) {
      if (devices_[j].pending() == 0) {
        fits_ = false;
        return;
      }
      put_weight(j);
    }
  }

  void fill(std::uint32_t j, Time ready) {
    Device& it = devices_[j];
    while (it.pending() > 0 && it.clock + cost(j).backward_weight <= ready) put_weight(j);
    if (it.pending() == 0 || it.clock >= ready) return;
    if (ready - it.clock > largest_gap_ - it.gap || options_.greedy) put_weight(j);
  }

  void first_microbatch() {
    for (std::uint32_t j = 0; j < p_; ++j) {
      make_room(j);
      if (!fits_) return;
      put_forward(j);
    }
    const std::vector<std::uint32_t> extra = extra_forwards();
    for (std::uint32_t j = 0; j < p_; ++j)
      for (std::uint32_t x = 0; x < extra[j]; ++x) put_forward(j);
    for (std::uint32_t j = p_; j-- > 0;) put_input(j);
  }

  /// How many forwards every device does before the first gradient reaches it.
  std::vector<std::uint32_t> extra_forwards() const {
    std::vector<std::uint32_t> extra(p_, 0);
    Time last = devices_[p_ - 1].clock + cost(p_ - 1).backward_input;
    for (std::uint32_t j = p_ - 1; j-- > 0;) {
      Time t = devices_[j].clock;
      Bytes memory = devices_[j].memory;
      const Time arrival = from_next(j, last);
      while (1 + extra[j] < m_ && memory + cost(j).saved <= limits_[j]) {
        if (options_.early ? t + cost(j).forward > arrival : t >= arrival) break;
        t += cost(j).forward;
        memory += cost(j).saved;
        ++extra[j];
      }
      last = std::max(t, arrival) + cost(j).backward_input;
    }
    for (std::uint32_t j = 1; j < p_; ++j)
      while (extra[j] > 0 &&
             (extra[j] > extra[j - 1] || (extra[j] == extra[j - 1] && 1 + extra[j] < m_)))
        --extra[j];
    return extra;
  }

  void forwards() {
    std::vector<bool> wanted(p_);
    for (std::uint32_t j = p_; j-- > 0;)
      wanted[j] = wants_forward(j) && (j + 1 == p_ || wanted[j + 1]);
    for (std::uint32_t j = 0; j < p_ && fits_; ++j) {
      if (!wanted[j]) continue;
      make_room(j);
      if (!fits_) return;
      if (j > 0) fill(j, forward_input(j, devices_[j].forwards));
      put_forward(j);
    }
  }

  bool wants_forward(std::uint32_t j) const {
    const Device& it = devices_[j];
    if (it.forwards == m_) return false;
    if (!options_.prefer_backward || j + 1 == p_) return true;
    const Device& after = devices_[j + 1];
    if (it.forwards < after.forwards + 2) return true;
    const Time next = from_next(j, after.clock + cost(j + 1).forward + cost(j + 1).backward_input);
    if (it.clock >= next) return false;
    Time end = it.clock + cost(j).forward;
    Bytes memory = it.memory + cost(j).saved;
    for (std::uint32_t w = 0; w < it.pending() && memory > limits_[j]; ++w) {
      end += cost(j).backward_weight;
      memory -= cost(j).held;
    }
    return end <= next || next - it.clock > largest_gap_ - it.gap;
  }

  void backwards(std::uint32_t k) {
    for (std::uint32_t j = p_; j-- > 0 && fits_;) {
      if (j + 1 < p_) fill(j, backward_input(j, k));
      if (j == 0 && devices_[j].forwards == m_) put_all_weights(j);
      put_input(j);
    }
  }

  const SlotCosts& costs_;
  std::uint32_t m_, p_;
  const std::vector<Bytes>& limits_;
  Options options_;
  std::vector<Device> devices_;
  Time largest_gap_;  ///< of all devices so far; gaps only grow
  bool fits_ = true;
};

}  // namespace

std::vector<Schedule> list_schedules(const SlotCosts& costs, std::uint32_t microbatches,
                                     const std::vector<Bytes>& limits) {
  BestSchedules<Attempt> best;
  for (const bool early : {true, false})
    for (const bool prefer_backward : {true, false})
      for (const bool greedy : {true, false}) {
        costs.work.add(kStepsAListedTask * 3 * costs.slots.size() * microbatches);
        Attempt attempt(costs, microbatches, limits, {early, prefer_backward, greedy});
        if (attempt.run()) best.offer(attempt.largest_span(), attempt);
      }
  return std::move(best).take();
}

}  // namespace plimsoll
