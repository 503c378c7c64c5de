#include "policy/pipeline/search/order_search.hpp"

#include "policy/pipeline/partition/placement.hpp"
#include "policy/pipeline/search/building_blocks.hpp"
#include "policy/pipeline/search/order_compaction.hpp"
#include "policy/pipeline/search/order_polish.hpp"
#include "policy/pipeline/search/warm_ups.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

constexpr AllowedDelay kAllowedDelays[] = {{0, 0}, {4, 0}, {4, 4}, {2, 2}, {0, 4}};
constexpr std::size_t kMostBlocks = 16;
/// Orders that are worked on further once they have been moved.
constexpr std::size_t kMostKept = 4;
/// A move of all tasks takes as long as so many evaluations.
constexpr std::int64_t kCompaction = 8;
constexpr OrderValue kWorst{INT64_MAX, INT64_MAX};

TaskOrders turned_round(TaskOrders orders) {
  for (auto& order : orders) std::ranges::reverse(order);
  return orders;
}

struct Candidate : FoundOrders {
  enum class State : std::uint8_t {
    fresh,   ///< not moved yet
    better,  ///< for its last move
    settled  ///< moving it does not help, or others are better
  };
  State state = State::fresh;
};

class Search {
 public:
  explicit Search(const OrderSearch& search)
      : search_(search),
        network_(search.network),
        turned_(network_.turned_round()),
        evaluator_(network_),
        left_(search.evaluations) {}

  std::optional<FoundOrders> run(const std::vector<TaskOrders>& from) {
    for (const TaskOrders& orders : from)
      if (keeps_to(network_, orders, search_.limits)) offer(orders);
    move();
    if (!meets_bound()) begin();
    if (found_.empty()) return std::nullopt;
    move();
    finish();
    return std::move(found_.front());
  }

 private:
  using State = Candidate::State;

  bool meets_bound() const {
    return !found_.empty() && found_.front().value.makespan <= search_.bound;
  }
  bool is_over() const { return left_ <= 0 || meets_bound(); }

  OrderValue value_of(const TaskOrders& orders) {
    --left_;
    return evaluator_.evaluate(orders).value_or(kWorst);
  }

  void offer(TaskOrders orders) {
    const OrderValue value = value_of(orders);
    if (value < kWorst) found_.push_back({{std::move(orders), value}});
  }

  void begin() {
    TaskOrders leanest = one_at_a_time(network_);
    if (keeps_to(network_, leanest, search_.limits)) offer(std::move(leanest));
    const auto most = static_cast<std::size_t>(std::max<std::int64_t>(left_, 0));
    for (TaskOrders& orders : warm_ups(network_, search_.placement, search_.limits, most))
      offer(std::move(orders));
    if (left_ > 0 && search_.placement == v_placement(network_.devices))
      for (TaskOrders& orders : building_blocks(network_, search_.limits, kMostBlocks))
        offer(std::move(orders));
  }

  /// The best of what `orders` become by moving everything up, then back down and up again.
  FoundOrders moved(const TaskOrders& orders) {
    FoundOrders best{{}, kWorst};
    const auto take = [&](const TaskOrders& result) {
      if (const OrderValue value = value_of(result); value < best.value) best = {result, value};
    };
    for (const AllowedDelay& allowed_delay : kAllowedDelays) {
      if (left_ <= 0 && best.value < kWorst) break;
      left_ -= 4 * kCompaction;
      const TaskOrders up = compacted(network_, orders, search_.limits, allowed_delay);
      take(up);
      take(turned_round(compacted(turned_, turned_round(up), search_.limits, allowed_delay)));
      const TaskOrders down =
          turned_round(compacted(turned_, turned_round(orders), search_.limits, allowed_delay));
      take(down);
      take(compacted(network_, down, search_.limits, allowed_delay));
    }
    return best;
  }

  /// The best first, as long as it gets better; every order that there is to begin with once.
  void move() {
    sort();
    while (!is_over()) {
      const auto next = std::ranges::find_if(
          found_, [](State it) { return it != State::settled; }, &Candidate::state);
      if (next == found_.end()) break;
      FoundOrders better = moved(next->orders);
      next->state = better.value < next->value ? State::better : State::settled;
      if (next->state == State::better) static_cast<FoundOrders&>(*next) = std::move(better);
      sort();
      for (std::size_t i = kMostKept; i < found_.size(); ++i)
        if (found_[i].state == State::better) found_[i].state = State::settled;
    }
  }

  void finish() {
    if (found_.size() > kMostKept) found_.resize(kMostKept);
    for (FoundOrders& it : found_) {
      if (is_over()) break;
      it.value = polish(network_, it.orders, search_.limits, left_);
      if (left_ <= 0) break;
      if (FoundOrders better = moved(it.orders); better.value < it.value) it = std::move(better);
    }
    sort();
  }

  void sort() { std::ranges::stable_sort(found_, {}, &Candidate::value); }

  const OrderSearch& search_;
  const TaskNetwork& network_;
  const TaskNetwork turned_;
  OrderEvaluator evaluator_;
  std::int64_t left_;
  std::vector<Candidate> found_;  ///< from `move` on the best first
};

}  // namespace

std::optional<FoundOrders> search_orders(const OrderSearch& search,
                                         const std::vector<TaskOrders>& from) {
  return Search(search).run(from);
}

TaskOrders one_at_a_time(const TaskNetwork& network) {
  TaskOrders orders(network.devices);
  const auto slots = static_cast<std::uint32_t>(network.classes.size()) / 3;
  const auto add = [&](std::uint32_t c, std::uint32_t k) {
    orders[network.classes[c].device].push_back(c * network.microbatches + k);
  };
  for (std::uint32_t k = 0; k < network.microbatches; ++k) {
    for (std::uint32_t s = 0; s < slots; ++s) add(3 * s, k);
    for (std::uint32_t s = slots; s-- > 0;) {
      add(3 * s + 1, k);
      if (network.splits) add(3 * s + 2, k);
    }
  }
  return orders;
}

}  // namespace plimsoll
