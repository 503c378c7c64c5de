#include "policy/interface/registry.hpp"
#include "policy/pipeline/planning/plan_pipeline.hpp"
#include "policy/pipeline/search/best_schedules.hpp"
#include "policy/pipeline/search/memory_limit.hpp"
#include "policy/pipeline/search/v_search.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

enum class OrderBy : std::uint8_t { search, hand };

struct ZbVParameters : LimitedParameters {
  OrderBy order = OrderBy::search;
};

/// One device's list by hand, for a number of microbatches that the rule holds for; those beyond
/// the real number are left out.
class HandOrder {
 public:
  HandOrder(std::uint32_t devices, std::uint32_t device, std::uint32_t microbatches)
      : slots_{device, 2 * devices - 1 - device}, m_(microbatches) {}

  void forward(int chunk) { put(Task::Kind::forward, chunk, forwards_[chunk]++); }
  void input(int chunk) { put(Task::Kind::backward_input, chunk, inputs_[chunk]++); }
  void weight(int chunk) { put(Task::Kind::backward_weight, chunk, weights_[chunk]++); }

  std::uint32_t forwards(int chunk) const { return forwards_[chunk]; }
  bool weight_pending(int chunk) const { return weights_[chunk] < inputs_[chunk]; }
  std::vector<Task> take() && { return std::move(order_); }

 private:
  void put(Task::Kind kind, int chunk, std::uint32_t k) {
    if (k < m_) order_.push_back({kind, slots_[chunk], k});
  }

  std::uint32_t slots_[2];
  std::uint32_t m_;
  std::uint32_t forwards_[2]{}, inputs_[2]{}, weights_[2]{};
  std::vector<Task> order_;
};

std::vector<Task> hand_order(std::uint32_t p, std::uint32_t i, std::uint32_t microbatches) {
  HandOrder order(p, i, microbatches);
  const std::uint32_t m = std::max(microbatches, 2 * p - 1);
  const auto whole = [&](int chunk) {
    order.input(chunk);
    order.weight(chunk);
  };
  for (std::uint32_t n = 0; n < 2 * (p - i) - 1; ++n) order.forward(0);
  for (std::uint32_t n = 0; n < i; ++n) {
    order.forward(1);
    order.forward(0);
  }
  for (std::uint32_t n = 0; n < p - i; ++n) {
    order.forward(1);
    whole(1);
  }
  while (order.forwards(0) < m || order.forwards(1) < order.forwards(0)) {
    if (order.forwards(0) < m) order.forward(0);
    whole(0);
    order.forward(1);
    whole(1);
  }
  for (std::uint32_t n = 0; n < i; ++n) {
    order.input(0);
    order.input(1);
  }
  for (std::uint32_t n = 0; n < p - i; ++n) {
    order.input(0);
    order.weight(0);
  }
  for (const int chunk : {1, 0})
    while (order.weight_pending(chunk)) order.weight(chunk);
  return std::move(order).take();
}

Schedule by_hand(std::uint32_t devices, std::uint32_t microbatches, std::uint32_t) {
  Schedule schedule{v_placement(devices), {}};
  for (std::uint32_t i = 0; i < devices; ++i)
    schedule.orders.push_back(hand_order(devices, i, microbatches));
  return schedule;
}

std::optional<Schedule> by_search(const SlotCosts& costs, std::uint32_t microbatches,
                                  const std::vector<Bytes>& kept) {
  if (auto found = first_of(v_schedules(costs, microbatches, kept))) return found;
  // The rule by hand keeps to 2p chunks, whatever the times.
  const std::int64_t most = 2 * std::int64_t{costs.devices};
  for (std::uint32_t slot = 0; slot < costs.slots.size(); ++slot)
    if (kept[costs.placement[slot]] < costs.slots[slot].saved * most) return std::nullopt;
  return by_hand(costs.devices, microbatches, 2);
}

Planned plan_zb_v(const Problem& problem, const ZbVParameters& parameters) {
  require_two_virtual_stages(parameters);
  if (parameters.order == OrderBy::hand) {
    if (parameters.memory_limit)
      refuse(parameters.memory_limit->where,
             "the order by hand looks at no limit; expected `order: search`");
    return plan_pipeline(problem, parameters, by_hand, wave_placement);
  }
  const std::int64_t most = 2 * std::ssize(pipeline_devices(problem, parameters));
  return plan_limited(problem, parameters, wave_placement, most, by_search);
}

}  // namespace

PolicyInfo pipeline_zb_v_policy() {
  Record<ZbVParameters> record = pipeline_record<ZbVParameters>("pipeline/zb-v", 2);
  record.optional("order", &ZbVParameters::order,
                  one_of<OrderBy>({{"search", OrderBy::search}, {"hand", OrderBy::hand}}),
                  "`search`, which looks at times, or `hand`, PyTorch's rule for equal ones; "
                  "default search");
  add_memory_limit(record);
  return make_policy<ZbVParameters>(
      {.name = "pipeline/zb-v",
       .summary =
           "Two chunks a device on a V and split backwards: next to no bubble in 1F1B's memory.",
       .paper = "Qi et al. 2024, \"Zero Bubble Pipeline Parallelism\", ICLR, arXiv:2401.10241: "
                "search as in its published code; order by hand as in PyTorch's "
                "ScheduleZBVZeroBubble",
       .assumes = "a chain whose stages give both halves of their backward, or a network",
       .guarantees =
           "heuristic; every device keeps at most 2p chunks. By hand, at F = B = W "
           "without message latency and m >= 2p-1: no bubble in the largest span, "
           "makespan p-1 chunk times above the work. Under `memory_limit` the peak of no "
           "device is above it, or the answer is the limit that the leanest order needs. "
           "With `improve` eighths of the peak without a limit are tried as well, so that "
           "none of them has a faster plan",
       .complexity = "O(microbatches x devices + microbatches x operators)",
       .facts = {.splits_backward = true}},
      record, plan_zb_v);
}

}  // namespace plimsoll
