#include "policy/pipeline/search/warm_ups.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

/// What differs from one such order to another, for device i of p.
struct Rule {
  std::uint32_t round = 1;       ///< microbatches that pass a chunk before the next one's turn
  std::uint32_t half_steps = 2;  ///< forwards more of warm-up than on the next device, in halves
  std::uint32_t put_off = 0;     ///< weight halves put off on device i, by i
};

class Line {
 public:
  Line(const TaskNetwork& network, std::vector<std::uint32_t> slots, const Rule& rule)
      : network_(network), slots_(std::move(slots)), rule_(rule) {}

  [[nodiscard]] std::uint32_t total() const {
    return network_.microbatches * static_cast<std::uint32_t>(slots_.size());
  }

  [[nodiscard]] std::vector<std::uint32_t> order(std::uint32_t warm_up,
                                                 std::uint32_t put_off) const {
    std::vector<std::uint32_t> order;
    const std::uint32_t all = total();
    std::uint32_t weights = 0;
    for (std::uint32_t n = 0; n < std::min(warm_up, all); ++n) order.push_back(task(kForward, n));
    for (std::uint32_t n = 0; n < all; ++n) {
      if (warm_up + n < all) order.push_back(task(kForward, warm_up + n));
      order.push_back(task(kBackward, n));
      if (network_.splits && n + 1 - weights > put_off) order.push_back(task(kWeight, weights++));
    }
    while (network_.splits && weights < all) order.push_back(task(kWeight, weights++));
    return order;
  }

  /// The deepest warm-up up to `warm_up` with which the device keeps no more than `limit`.
  [[nodiscard]] std::uint32_t depth_within(std::uint32_t warm_up, std::int64_t limit) const {
    std::uint32_t fits = 0, too_deep = warm_up + 1;
    while (too_deep - fits > 1) {
      const std::uint32_t middle = fits + (too_deep - fits) / 2;
      (keeps(middle, 0, limit) ? fits : too_deep) = middle;
    }
    return fits;
  }

  [[nodiscard]] bool keeps(std::uint32_t warm_up, std::uint32_t put_off, std::int64_t limit) const {
    std::int64_t kept = 0, most = 0;
    for (const std::uint32_t task : order(warm_up, put_off)) {
      kept += network_.of(task).kept;
      most = std::max(most, kept);
    }
    return most <= limit;
  }

 private:
  enum Part : std::uint32_t { kForward, kBackward, kWeight };

  /// The n-th forward, backward or weight half; backwards begin with the last chunk.
  [[nodiscard]] std::uint32_t task(Part part, std::uint32_t n) const {
    const auto chunks = static_cast<std::uint32_t>(slots_.size());
    const std::uint32_t first = n / (rule_.round * chunks) * rule_.round;
    const std::uint32_t size = std::min(rule_.round, network_.microbatches - first);
    const std::uint32_t within = n - first * chunks;
    const std::uint32_t along = within / size;
    const std::uint32_t slot = slots_[part == kForward ? along : chunks - 1 - along];
    return (3 * slot + part) * network_.microbatches + first + within % size;
  }

  const TaskNetwork& network_;
  std::vector<std::uint32_t> slots_;
  Rule rule_;
};

TaskOrders orders_of(const TaskNetwork& network, const std::vector<std::uint32_t>& placement,
                     const std::vector<std::int64_t>& limits, const Rule& rule) {
  std::vector<std::vector<std::uint32_t>> slots(network.devices);
  for (std::uint32_t s = 0; s < placement.size(); ++s) slots[placement[s]].push_back(s);
  TaskOrders orders;
  std::uint32_t before = TaskNetwork::kNone;
  for (std::uint32_t i = 0; i < network.devices; ++i) {
    const auto chunks = static_cast<std::uint32_t>(slots[i].size());
    const Line line(network, slots[i], rule);
    const std::uint32_t deep =
        (chunks - 1) * rule.round + (network.devices - 1 - i) * rule.half_steps / 2;
    // A device whose warm-up is deeper than that of the one before it would wait for ever.
    const std::uint32_t depth =
        line.depth_within(std::min({deep, line.total(), before}), limits[i]);
    if (chunks == 1) before = depth;
    const std::uint32_t put_off = i * rule.put_off;
    orders.push_back(line.order(depth, line.keeps(depth, put_off, limits[i]) ? put_off : 0));
  }
  return orders;
}

}  // namespace

std::vector<TaskOrders> warm_ups(const TaskNetwork& network,
                                 const std::vector<std::uint32_t>& placement,
                                 const std::vector<std::int64_t>& limits, std::size_t most) {
  const std::uint32_t p = network.devices;
  std::vector<std::uint32_t> rounds{p};
  if (placement.size() > p) rounds = {p, (p + 1) / 2, 1};
  std::vector<Rule> rules;
  for (const std::uint32_t put_off : {0U, 1U, 2U})
    for (const std::uint32_t half_steps : {2U, 4U, 3U, 1U, 6U, 0U})
      for (const std::uint32_t round : rounds)
        if (put_off == 0 || network.splits)
          rules.push_back({std::min(round, network.microbatches), half_steps, put_off});
  std::vector<TaskOrders> all;
  for (std::size_t n = 0; n < std::min(rules.size(), most); ++n) {
    TaskOrders orders = orders_of(network, placement, limits, rules[n]);
    if (keeps_to(network, orders, limits)) all.push_back(std::move(orders));
  }
  return all;
}

}  // namespace plimsoll
