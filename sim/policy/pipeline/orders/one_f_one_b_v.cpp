#include "policy/interface/registry.hpp"
#include "policy/pipeline/planning/plan_pipeline.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// What the search may cost, in slots of all devices.
constexpr std::uint64_t kMostSlots = 20'000'000;
constexpr std::uint32_t kBlockLength = 6;

/// Forwards and backwards of both chunks, the latter as two slots, of which W is the second.
enum UnitKind : std::uint32_t { kF0, kF1, kB1, kW1, kB0, kW0, kUnitKinds };

bool is_backward(UnitKind kind) {
  return kind == kB0 || kind == kB1;
}

/// All devices' unit slots, first as one building block for every microbatch, then compacted.
class Slotted {
 public:
  Slotted(std::uint32_t devices, std::uint32_t microbatches)
      : p_(devices),
        m_(microbatches),
        at_(std::size_t{devices} * kUnitKinds * microbatches),
        taken_(devices),
        held_(devices) {
    place_block();
    for (std::uint32_t i = 0; i < p_; ++i) count_held(i);
  }

  void compact() {
    int cap = 0;
    for (const auto& held : held_) cap = std::max(cap, *std::ranges::max_element(held));
    for (const Op& op : operations()) move_up(op, cap);
  }

  [[nodiscard]] std::vector<Task> order(std::uint32_t i) const {
    std::vector<std::pair<std::uint32_t, Task>> slots;
    for (const UnitKind kind : {kF0, kF1, kB1, kB0})
      for (std::uint32_t k = 0; k < m_; ++k)
        slots.push_back({at(i, kind, k),
                         {is_backward(kind) ? Task::Kind::backward : Task::Kind::forward,
                          kind == kF0 || kind == kB0 ? i : 2 * p_ - 1 - i, k}});
    std::ranges::sort(slots, {}, [](const auto& slot) { return slot.first; });
    std::vector<Task> order;
    for (const auto& slot : slots) order.push_back(slot.second);
    return order;
  }

 private:
  struct Op {
    std::uint32_t slot, device;
    UnitKind kind;
    std::uint32_t microbatch;
  };

  std::uint32_t& at(std::uint32_t i, UnitKind kind, std::uint32_t k) {
    return at_[(std::size_t{i} * kUnitKinds + kind) * m_ + k];
  }
  std::uint32_t at(std::uint32_t i, UnitKind kind, std::uint32_t k) const {
    return at_[(std::size_t{i} * kUnitKinds + kind) * m_ + k];
  }

  void place(std::uint32_t i, UnitKind kind, std::uint32_t slot) {
    for (std::uint32_t k = 0; k < m_; ++k) at(i, kind, k) = slot + kBlockLength * k;
  }

  void place_block() {
    std::uint32_t t = 2 * p_ + 1 + (p_ % 3 == 0 ? 3 : 0);
    std::uint32_t n = (3 - (p_ + 2) % 3) % 3;
    const auto backward = [&](std::uint32_t i, UnitKind input, UnitKind weight) {
      place(i, input, t);
      place(i, weight, t + 1);
      t += 2;
      if (++n < 3) return;
      n = 0;
      t += 3;
    };
    for (std::uint32_t i = 0; i < p_; ++i) {
      place(i, kF0, i + 1);
      place(i, kF1, 2 * p_ - i);
      backward(i, kB1, kW1);
    }
    for (std::uint32_t i = p_; i-- > 0;) backward(i, kB0, kW0);
  }

  /// Fills what a device holds after each slot: from the forward until the end of the backward.
  void count_held(std::uint32_t i) {
    std::uint32_t last = 0;
    for (const UnitKind kind : {kF0, kF1, kB1, kW1, kB0, kW0})
      last = std::max(last, at(i, kind, m_ - 1));
    taken_[i].assign(last + std::size_t{2}, false);
    held_[i].assign(last + std::size_t{2}, 0);
    for (const UnitKind kind : {kF0, kF1, kB1, kW1, kB0, kW0})
      for (std::uint32_t k = 0; k < m_; ++k) {
        taken_[i][at(i, kind, k)] = true;
        held_[i][at(i, kind, k)] += change(kind);
      }
    for (std::size_t slot = 1; slot < held_[i].size(); ++slot) held_[i][slot] += held_[i][slot - 1];
  }

  static int change(UnitKind kind) {
    if (is_backward(kind)) return 0;
    return kind == kF0 || kind == kF1 ? 1 : -1;
  }

  std::vector<Op> operations() const {
    std::vector<Op> all;
    for (std::uint32_t i = 0; i < p_; ++i)
      for (const UnitKind kind : {kF0, kF1, kB1, kW1, kB0, kW0})
        for (std::uint32_t k = 0; k < m_; ++k) all.push_back({at(i, kind, k), i, kind, k});
    std::ranges::sort(all, {}, [](const Op& op) { return std::tuple(op.slot, op.device); });
    return all;
  }

  /// The first slot after what the operation needs and the same one of the microbatch before.
  std::uint32_t earliest(const Op& op) const {
    const std::uint32_t i = op.device, k = op.microbatch;
    const std::uint32_t before = k > 0 ? at(i, op.kind, k - 1) : 0;
    const auto input = [&]() -> std::uint32_t {
      switch (op.kind) {
        case kF0:
          return i > 0 ? at(i - 1, kF0, k) : 0;
        case kF1:
          return i + 1 < p_ ? at(i + 1, kF1, k) : at(i, kF0, k);
        case kB1:
          return i > 0 ? at(i - 1, kW1, k) : at(i, kF1, k);
        case kB0:
          return i + 1 < p_ ? at(i + 1, kW0, k) : at(i, kW1, k);
        default:
          return at(i, op.kind == kW1 ? kB1 : kB0, k);
      }
    };
    return 1 + std::max(before, input());
  }

  void move_up(const Op& op, int cap) {
    std::vector<bool>& taken = taken_[op.device];
    std::vector<int>& held = held_[op.device];
    std::uint32_t slot = earliest(op);
    const auto usable = [&](std::uint32_t s) { return !taken[s] || s == op.slot; };
    if (op.kind == kF0 || op.kind == kF1) {
      const std::uint32_t lowest = slot;
      for (slot = op.slot; slot > lowest && held[slot - 1] < cap;) --slot;
    }
    while (slot < op.slot && !(usable(slot) && (!is_backward(op.kind) || usable(slot + 1)))) ++slot;
    if (slot >= op.slot) return;
    taken[op.slot] = false;
    taken[slot] = true;
    for (std::uint32_t s = slot; s < op.slot; ++s) held[s] += change(op.kind);
    at(op.device, op.kind, op.microbatch) = slot;
  }

  std::uint32_t p_, m_;
  std::vector<std::uint32_t> at_;  ///< by device, kind and microbatch: the slot, from 1
  std::vector<std::vector<bool>> taken_;
  std::vector<std::vector<int>> held_;
};

Planned plan_1f1b_v(const Problem& problem, const PipelineParameters& parameters) {
  require_two_virtual_stages(parameters);
  const auto rule = [&](std::uint32_t devices, std::uint32_t microbatches, std::uint32_t) {
    const std::uint64_t slots = std::uint64_t{kBlockLength} * devices * (devices + microbatches);
    if (slots > kMostSlots)
      refuse(parameters.where,
             fmt::format("{} microbatches on {} devices are too many for `{}`: about {} "
                         "slots; at most {}",
                         microbatches, devices, parameters.name, slots, kMostSlots));
    Slotted table(devices, microbatches);
    table.compact();
    Schedule schedule{v_placement(devices), {}};
    for (std::uint32_t i = 0; i < devices; ++i) schedule.orders.push_back(table.order(i));
    return schedule;
  };
  return plan_pipeline(problem, parameters, rule, wave_placement);
}

}  // namespace

PolicyInfo pipeline_1f1b_v_policy() {
  return make_policy<PipelineParameters>(
      {.name = "pipeline/1f1b-v",
       .summary = "1F1B with two chunks a device on a V, in about two thirds of its memory.",
       .paper = "Qi et al. 2024, \"Pipeline Parallelism with Controllable Memory\", NeurIPS, "
                "arXiv:2405.15362, with the compaction of its published code",
       .assumes = "a backward that is not split; an order for backwards twice as long as forwards, "
                  "executed with the real times",
       .guarantees = "at BW = 2F without message latency and m >= 2p every device keeps at most "
                     "ceil((2p+1)/3) microbatches",
       .complexity = "O(devices x (microbatches + devices) log + microbatches x operators)"},
      pipeline_record("pipeline/1f1b-v", 2), plan_1f1b_v);
}

}  // namespace plimsoll
