#include "policy/pipeline/orders/v_block.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace plimsoll {

namespace {

/// In the order in which one microbatch passes a device; W is the weight half of either chunk.
enum BlockKind : std::uint32_t { F0, F1, B1, B0, W, kKinds };

constexpr std::uint32_t kEmpty = 0xFFFFFFFF;
constexpr std::uint32_t kPeriod = 6;

struct Op {
  std::uint32_t slot, device;
  BlockKind kind;
  std::uint32_t number;  ///< microbatch; for W the place among those of the device
};

/// One device: what is in each slot, and where everything is.
class DeviceRow {
 public:
  explicit DeviceRow(std::uint32_t microbatches)
      : m_(microbatches), at_(std::size_t{6} * microbatches, kEmpty) {}

  [[nodiscard]] std::uint32_t at(BlockKind kind, std::uint32_t number) const {
    return at_[kind * m_ + number];
  }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(cells_.size()); }
  [[nodiscard]] bool free(std::uint32_t slot) const { return cells_[slot] == kEmpty; }
  [[nodiscard]] BlockKind kind(std::uint32_t slot) const {
    return static_cast<BlockKind>(std::min(cells_[slot] / m_, std::uint32_t{W}));
  }
  [[nodiscard]] std::uint32_t number(std::uint32_t slot) const {
    return cells_[slot] - kind(slot) * m_;
  }

  void put(BlockKind kind, std::uint32_t number, std::uint32_t slot) {
    if (slot >= cells_.size()) cells_.resize(slot + std::size_t{1}, kEmpty);
    cells_[slot] = kind * m_ + number;
    at_[kind * m_ + number] = slot;
  }
  void move(BlockKind kind, std::uint32_t number, std::uint32_t slot) {
    cells_[at(kind, number)] = kEmpty;
    put(kind, number, slot);
  }
  void drop_weights() {
    for (std::uint32_t& cell : cells_)
      if (cell != kEmpty && cell >= W * m_) cell = kEmpty;
    while (!cells_.empty() && cells_.back() == kEmpty) cells_.pop_back();
  }

  /// Scanning upwards, an empty slot takes a weight half that is pending; the rest comes after.
  void fill_weights() {
    std::uint32_t backwards = 0, weights = 0;
    for (std::uint32_t slot = 0; slot < size() || weights < backwards; ++slot) {
      if (slot < size() && !free(slot))
        backwards += is_backward(kind(slot)) ? 1U : 0U;
      else if (weights < backwards)
        put(W, weights++, slot);
    }
  }

  /// The most chunks held after any slot: from the forward until the weight half.
  [[nodiscard]] int peak() const {
    int held = 0, most = 0;
    for (std::uint32_t slot = 0; slot < size(); ++slot) {
      held += change(slot);
      most = std::max(most, held);
    }
    return most;
  }

  /// The peak with weight halves filled in, where there are none.
  [[nodiscard]] int filled_peak() const {
    int held = 0, most = 0, pending = 0;
    for (std::uint32_t slot = 0; slot < size(); ++slot) {
      if (!free(slot)) {
        pending += is_backward(kind(slot)) ? 1 : 0;
        held += is_forward(kind(slot)) ? 1 : 0;
      } else if (pending > 0) {
        --pending;
        --held;
      }
      most = std::max(most, held);
    }
    return most;
  }

  /// The slot of the n-th backward of either chunk, from 0.
  [[nodiscard]] std::uint32_t backward(std::uint32_t n) const {
    std::uint32_t slot = 0;
    for (;; ++slot)
      if (!free(slot) && is_backward(kind(slot)) && n-- == 0) return slot;
  }

  /// Change of what is held in a slot.
  [[nodiscard]] int change(std::uint32_t slot) const {
    if (free(slot)) return 0;
    return is_forward(kind(slot)) ? 1 : kind(slot) == W ? -1 : 0;
  }

  static bool is_forward(BlockKind kind) { return kind == F0 || kind == F1; }
  static bool is_backward(BlockKind kind) { return kind == B0 || kind == B1; }

 private:
  std::uint32_t m_;
  std::vector<std::uint32_t> cells_;  ///< by slot: kind * m + number, or kEmpty
  std::vector<std::uint32_t> at_;     ///< by kind * m + number: the slot
};

class Table {
 public:
  Table(std::uint32_t devices, std::uint32_t microbatches, BlockRule block)
      : p_(devices), m_(microbatches), rows_(devices, DeviceRow(microbatches)) {
    for (std::uint32_t i = 0; i < p_; ++i) {
      const BlockSlots first = block(p_, i);
      for (std::uint32_t k = 0; k < m_; ++k) {
        rows_[i].put(F0, k, first.forward_0 + kPeriod * k);
        rows_[i].put(F1, k, first.forward_1 + kPeriod * k);
        rows_[i].put(B1, k, first.backward_1 + kPeriod * k);
        rows_[i].put(B0, k, first.backward_0 + kPeriod * k);
      }
    }
  }

  void compact() {
    fill_weights();
    reorder(true);
    squeeze();
    drop_weights();
    reorder(false);
    fill_weights();
    squeeze();
    drop_weights();
  }

  [[nodiscard]] std::vector<Task> order(std::uint32_t i) const;

 private:
  void fill_weights() {
    for (DeviceRow& row : rows_) row.fill_weights();
  }
  void drop_weights() {
    for (DeviceRow& row : rows_) row.drop_weights();
  }

  /// Visits what is in the slots from `from` to before `to`, by slot and device.
  static void for_operations(const std::vector<DeviceRow>& rows, std::uint32_t from,
                             std::uint32_t to, auto visit) {
    for (std::uint32_t slot = from; slot < to; ++slot)
      for (std::uint32_t i = 0; i < rows.size(); ++i)
        if (slot < rows[i].size() && !rows[i].free(slot))
          visit(Op{slot, i, rows[i].kind(slot), rows[i].number(slot)});
  }

  static std::uint32_t end_of(const std::vector<DeviceRow>& rows) {
    return std::ranges::max(rows, {}, &DeviceRow::size).size();
  }

  /// The first slot after the inputs, the step before on the device and the microbatch before.
  std::uint32_t earliest(const Op& op) const {
    std::uint32_t slot = 0;
    const auto after = [&](std::uint32_t device, BlockKind kind, std::uint32_t k) {
      slot = std::max(slot, rows_[device].at(kind, k) + 1);
    };
    const bool down = op.kind == F0 || op.kind == B1;
    if (down && op.device > 0) after(op.device - 1, op.kind, op.number);
    if (!down && op.device + 1 < p_) after(op.device + 1, op.kind, op.number);
    if (op.kind != F0) after(op.device, static_cast<BlockKind>(op.kind - 1), op.number);
    if (op.number > 0) after(op.device, op.kind, op.number - 1);
    return slot;
  }

  /// Moves operations before the first microbatch has passed (`at_start` only) and after the last
  /// one has begun to the first slots that keep the peak.
  void reorder(bool at_start) {
    const bool weights = at_start;
    int cap = 0;
    for (const DeviceRow& row : rows_)
      cap = std::max(cap, weights ? row.peak() : row.filled_peak());
    const std::uint32_t first_end = at_start ? rows_.front().at(B0, 0) : 0;
    std::pair last_begin(kEmpty, kEmpty);  // slot and device
    for (std::uint32_t i = 0; i < p_; ++i)
      last_begin = std::min(last_begin, std::pair(rows_[i].at(F0, m_ - 1), i));
    std::vector<Op> moving;
    const auto take = [&](const Op& op) { moving.push_back(op); };
    for_operations(rows_, 0, first_end, take);
    for_operations(rows_, std::max(first_end, last_begin.first), end_of(rows_), [&](const Op& op) {
      if (std::pair(op.slot, op.device) > last_begin) take(op);
    });
    for (const Op& op : moving) move_up(op, cap, weights);
  }

  void move_up(const Op& op, int cap, bool weights) {
    DeviceRow& row = rows_[op.device];
    const std::uint32_t lowest = op.kind == W ? row.backward(op.number) + 1 : earliest(op);
    if (weights) {
      const std::uint32_t from =
          DeviceRow::is_forward(op.kind) ? lowest_under(row, op, lowest, cap) : lowest;
      for (std::uint32_t slot = from; slot < op.slot; ++slot)
        if (row.free(slot)) return row.move(op.kind, op.number, slot);
      return;
    }
    for (std::uint32_t slot = lowest; slot < op.slot; ++slot) {
      if (!row.free(slot)) continue;
      row.move(op.kind, op.number, slot);
      if (row.filled_peak() <= cap) return;
      row.move(op.kind, op.number, op.slot);
    }
  }

  /// The lowest slot from which on one more chunk may be held until the operation's own.
  static std::uint32_t lowest_under(const DeviceRow& row, const Op& op, std::uint32_t lowest,
                                    int cap) {
    int held = 0;
    std::uint32_t from = lowest;
    for (std::uint32_t slot = 0; slot < op.slot; ++slot) {
      held += row.change(slot);
      if (slot >= lowest && held + 1 > cap) from = slot + 1;
    }
    return from;
  }

  /// Keeps the orders and gives everything its earliest slot.
  void squeeze() {
    std::vector<std::uint32_t> next(p_, 0);
    const std::vector<DeviceRow> old =
        std::exchange(rows_, std::vector<DeviceRow>(p_, DeviceRow(m_)));
    for_operations(old, 0, end_of(old), [&](const Op& op) {
      const std::uint32_t ready = op.kind == W ? 0 : earliest(op);
      const std::uint32_t slot = std::max(next[op.device], ready);
      rows_[op.device].put(op.kind, op.number, slot);
      next[op.device] = slot + 1;
    });
  }

  std::uint32_t p_, m_;
  std::vector<DeviceRow> rows_;
};

/// The order of a device, weight halves filled in: of the second chunk before those of the first.
std::vector<Task> Table::order(std::uint32_t i) const {
  const DeviceRow& row = rows_[i];
  const std::uint32_t slots[] = {i, 2 * p_ - 1 - i};
  std::vector<Task> order;
  std::uint32_t inputs[2]{}, weights[2]{};
  const auto weight = [&] {
    for (const int chunk : {1, 0})
      if (weights[chunk] < inputs[chunk]) {
        order.push_back({Task::Kind::backward_weight, slots[chunk], weights[chunk]++});
        return true;
      }
    return false;
  };
  for (std::uint32_t slot = 0; slot < row.size(); ++slot) {
    if (row.free(slot)) {
      weight();
      continue;
    }
    const BlockKind kind = row.kind(slot);
    const int chunk = kind == F0 || kind == B0 ? 0 : 1;
    const bool forward = DeviceRow::is_forward(kind);
    order.push_back({forward ? Task::Kind::forward : Task::Kind::backward_input, slots[chunk],
                     row.number(slot)});
    if (!forward) ++inputs[chunk];
  }
  while (weight()) {
  }
  return order;
}

}  // namespace

BlockSlots v_min_block(std::uint32_t devices, std::uint32_t device) {
  const std::uint32_t gap = devices % 3 == 0 ? 2 : 0;
  return {device, 2 * devices - device - 1, 2 * devices + gap + device,
          4 * devices + gap - device - 1};
}

BlockSlots v_half_block(std::uint32_t devices, std::uint32_t device) {
  const std::uint32_t gap = devices % 2 == 0 ? 3 : 0;
  return {2 * device, 3 * devices - device - 2, 3 * devices + gap + 2 * device - 1,
          6 * devices + gap - device - 2};
}

Schedule block_schedule(std::uint32_t devices, std::uint32_t microbatches, BlockRule block) {
  Table table(devices, microbatches, block);
  table.compact();
  Schedule schedule{v_placement(devices), {}};
  for (std::uint32_t i = 0; i < devices; ++i) schedule.orders.push_back(table.order(i));
  return schedule;
}

}  // namespace plimsoll
