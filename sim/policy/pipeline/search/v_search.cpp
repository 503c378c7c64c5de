#include "policy/pipeline/search/v_search.hpp"

#include "policy/pipeline/search/best_schedules.hpp"

#include <algorithm>
#include <deque>

namespace plimsoll {

namespace {

/// A task is timed and put behind others.
constexpr std::size_t kStepsAVTask = 8;
constexpr int kMostRepeats = 8;

struct VOptions {
  bool fill_backwards = true, fill_forwards = true;
};

struct VDevice {
  Time clock, gap;
  Bytes memory;
  std::uint32_t forwards[2]{}, inputs[2]{};  ///< by chunk
  std::deque<Task> pending;                  ///< weight halves, the oldest first
  std::vector<Task> order;
};

class VAttempt {
 public:
  VAttempt(const SlotCosts& costs, std::uint32_t microbatches, const std::vector<Bytes>& limits,
           VOptions options, std::vector<Time> allowed)
      : costs_(costs),
        m_(microbatches),
        p_(costs.devices),
        limits_(limits),
        options_(options),
        allowed_(std::move(allowed)),
        largest_allowed_(allowed_.empty() ? Time{} : std::ranges::max(allowed_)),
        devices_(p_),
        forward_end_(2 * std::size_t{p_}),
        input_end_(forward_end_) {}

  /// Whether memory was enough.
  bool run() {
    first_forwards();
    warm_up();
    for (std::uint32_t round = 0; round < 2 * m_ && fits_; ++round) {
      backwards();
      if (fits_) forwards();
    }
    for (std::uint32_t j = 0; j < p_ && fits_; ++j)
      while (!devices_[j].pending.empty()) put_weight(j);
    return fits_;
  }

  [[nodiscard]] Time largest_gap() const { return largest_gap_; }
  [[nodiscard]] std::vector<Time> gaps() const {
    std::vector<Time> gaps;
    for (const VDevice& it : devices_) gaps.push_back(it.gap);
    return gaps;
  }
  [[nodiscard]] Time makespan() const {
    return std::ranges::max(devices_, {}, &VDevice::clock).clock;
  }

  [[nodiscard]] Schedule schedule() && {
    Schedule schedule{costs_.placement, {}};
    for (VDevice& it : devices_) schedule.orders.push_back(std::move(it.order));
    return schedule;
  }

 private:
  std::uint32_t slot(std::uint32_t j, int chunk) const { return chunk == 0 ? j : 2 * p_ - 1 - j; }
  const SlotCosts::Slot& cost(std::uint32_t j, int chunk) const {
    return costs_.slots[slot(j, chunk)];
  }
  static bool has(const std::vector<Time>& ends, std::uint32_t k) { return k < ends.size(); }

  /// Whether the input of the next forward of the chunk was made.
  bool forward_made(std::uint32_t j, int chunk) const {
    const std::uint32_t s = slot(j, chunk), k = devices_[j].forwards[chunk];
    return k < m_ && (s == 0 || has(forward_end_[s - 1], k));
  }
  bool input_made(std::uint32_t j, int chunk) const {
    const std::uint32_t s = slot(j, chunk), k = devices_[j].inputs[chunk];
    return k < m_ && has(forward_end_[s], k) && (s + 1 == 2 * p_ || has(input_end_[s + 1], k));
  }
  Time forward_ready(std::uint32_t j, int chunk) const {
    const std::uint32_t s = slot(j, chunk), k = devices_[j].forwards[chunk];
    return s == 0 ? Time{} : forward_end_[s - 1][k] + costs_.slots[s - 1].forward_message;
  }
  Time input_ready(std::uint32_t j, int chunk) const {
    const std::uint32_t s = slot(j, chunk), k = devices_[j].inputs[chunk];
    return s + 1 == 2 * p_ ? Time{} : input_end_[s + 1][k] + costs_.slots[s + 1].backward_message;
  }

  Time put(std::uint32_t j, const Task& task, Time ready, Time time) {
    VDevice& it = devices_[j];
    const Time start = std::max(it.clock, ready);
    if (!it.order.empty()) it.gap += start - it.clock;
    largest_gap_ = std::max(largest_gap_, it.gap);
    it.clock = start + time;
    it.order.push_back(task);
    return it.clock;
  }

  void put_forward(std::uint32_t j, int chunk) {
    if (!forward_made(j, chunk)) {
      fits_ = false;
      return;
    }
    VDevice& it = devices_[j];
    const Time ready = forward_ready(j, chunk);
    it.memory += cost(j, chunk).saved;
    forward_end_[slot(j, chunk)].push_back(
        put(j, {Task::Kind::forward, slot(j, chunk), it.forwards[chunk]++}, ready,
            cost(j, chunk).forward));
  }

  void put_input(std::uint32_t j, int chunk) {
    if (!input_made(j, chunk)) {
      fits_ = false;
      return;
    }
    VDevice& it = devices_[j];
    const Time ready = input_ready(j, chunk);
    it.memory -= cost(j, chunk).saved - cost(j, chunk).held;
    const Task task{Task::Kind::backward_input, slot(j, chunk), it.inputs[chunk]++};
    input_end_[task.slot].push_back(put(j, task, ready, cost(j, chunk).backward_input));
    it.pending.push_back({Task::Kind::backward_weight, task.slot, task.microbatch});
  }

  Time weight_time(std::uint32_t j) const {
    return costs_.slots[devices_[j].pending.front().slot].backward_weight;
  }
  void put_weight(std::uint32_t j) {
    const Task task = devices_[j].pending.front();
    devices_[j].memory -= costs_.slots[task.slot].held;
    put(j, task, Time{}, weight_time(j));
    devices_[j].pending.pop_front();
  }

  void make_room(std::uint32_t j, int chunk) {
    while (devices_[j].memory + cost(j, chunk).saved > limits_[j]) {
      if (devices_[j].pending.empty()) {
        fits_ = false;
        return;
      }
      put_weight(j);
    }
  }

  /// What device j may still wait for without delaying the whole.
  Time allowance(std::uint32_t j) const {
    const Time granted = allowed_.empty() ? Time{} : largest_allowed_ - allowed_[j];
    return std::max(largest_gap_, granted) - devices_[j].gap;
  }

  void fill(std::uint32_t j, Time ready, bool short_gaps) {
    const VDevice& it = devices_[j];
    while (!it.pending.empty() && ready >= it.clock + weight_time(j)) put_weight(j);
    if (short_gaps && !it.pending.empty() && ready > it.clock && ready - it.clock > allowance(j))
      put_weight(j);
  }

  void first_forwards() {
    for (std::uint32_t j = 0; j < p_ && fits_; ++j) {
      make_room(j, 0);
      if (fits_) put_forward(j, 0);
    }
    for (std::uint32_t j = p_; j-- > 0 && fits_;) {
      if (j + 1 < p_) {
        const std::uint32_t after = slot(j + 1, 1);
        const Time ready = forward_end_[after][0] + costs_.slots[after].forward_message;
        const Bytes chunk = std::max(cost(j, 0).saved, cost(j, 1).saved);
        while (devices_[j].memory + chunk * (2 + 2 * std::int64_t{j}) <= limits_[j] &&
               devices_[j].clock + cost(j, 0).forward <= ready && devices_[j].forwards[0] < m_)
          for (std::uint32_t i = 0; i <= j; ++i) put_forward(i, 0);
      }
      make_room(j, 1);
      if (fits_) put_forward(j, 1);
    }
  }

  /// Evens the numbers of forwards out.
  void warm_up() {
    int chunk = 0;
    const auto both = [&](std::uint32_t j) {
      return devices_[j].forwards[0] + devices_[j].forwards[1];
    };
    for (std::uint32_t j = 1; j < p_; ++j)
      while (fits_ &&
             (both(j) < both(j - 1) || (devices_[j].forwards[1] <= devices_[j - 1].forwards[1] &&
                                        devices_[j - 1].forwards[1] < m_))) {
        for (std::uint32_t i = p_; i-- > j && fits_;)
          if (devices_[i].forwards[chunk] < m_) put_forward(i, chunk);
        chunk = 1 - chunk;
      }
  }

  int backward_chunk(std::uint32_t j) const {
    const VDevice& it = devices_[j];
    if (it.inputs[0] >= it.inputs[1]) return 1;
    if (j + 1 == p_ || it.inputs[1] == m_) return 0;
    return has(input_end_[slot(j + 1, 0)], it.inputs[0]) ? 0 : 1;
  }

  void backwards() {
    std::vector<int> chunk(p_);
    for (std::uint32_t j = 0; j < p_; ++j) chunk[j] = backward_chunk(j);
    for (std::uint32_t j = p_; j-- > 0 && fits_;)
      if (chunk[j] == 0) backward(j, 0, j + 1 < p_, true);
    for (std::uint32_t j = 0; j < p_ && fits_; ++j)
      if (chunk[j] == 1) backward(j, 1, j > 0, options_.fill_backwards);
  }

  void backward(std::uint32_t j, int chunk, bool has_neighbour, bool short_gaps) {
    if (has_neighbour && input_made(j, chunk)) fill(j, input_ready(j, chunk), short_gaps);
    put_input(j, chunk);
  }

  /// The chunk of the next forward, or -1 for none now.
  int forward_chunk(std::uint32_t j) const {
    const VDevice& it = devices_[j];
    if (it.forwards[1] == m_) return -1;
    if (it.forwards[1] >= it.forwards[0]) return 0;
    if (j + 1 == p_ || has(forward_end_[slot(j + 1, 1)], it.forwards[1])) return 1;
    return forward_made(j, 0) ? 0 : -1;
  }

  void forwards() {
    for (std::uint32_t j = 0; j < p_ && fits_; ++j) {
      const int chunk = forward_chunk(j);
      if (chunk < 0) continue;
      make_room(j, chunk);
      if (!fits_) return;
      const bool has_neighbour = chunk == 0 ? j > 0 : j + 1 < p_;
      if (has_neighbour && forward_made(j, chunk))
        fill(j, forward_ready(j, chunk), options_.fill_forwards);
      put_forward(j, chunk);
    }
  }

  const SlotCosts& costs_;
  std::uint32_t m_, p_;
  const std::vector<Bytes>& limits_;
  VOptions options_;
  std::vector<Time> allowed_;  ///< gaps of an earlier attempt, by device; empty at first
  Time largest_allowed_;
  std::vector<VDevice> devices_;
  std::vector<std::vector<Time>> forward_end_, input_end_;  ///< by slot and microbatch
  Time largest_gap_;  ///< of all devices so far; gaps only grow
  bool fits_ = true;
};

}  // namespace

std::vector<Schedule> v_schedules(const SlotCosts& costs, std::uint32_t microbatches,
                                  const std::vector<Bytes>& limits) {
  BestSchedules<VAttempt> best;
  for (const bool fill_backwards : {true, false})
    for (const bool fill_forwards : {true, false}) {
      std::vector<Time> allowed;
      for (int repeat = 0; repeat < kMostRepeats; ++repeat) {
        costs.work.add(kStepsAVTask * 3 * costs.slots.size() * microbatches);
        VAttempt attempt(costs, microbatches, limits, {fill_backwards, fill_forwards}, allowed);
        if (!attempt.run()) break;
        const Time gap = attempt.largest_gap();
        const bool shrank = allowed.empty() || gap < *std::ranges::max_element(allowed);
        allowed = attempt.gaps();
        best.offer(gap, attempt);
        if (!shrank) break;
      }
    }
  return std::move(best).take();
}

}  // namespace plimsoll
