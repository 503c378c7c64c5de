#include "policy/order/exact_order.hpp"

#include "base/dense_id.hpp"
#include "policy/order/look_ahead.hpp"

#include <algorithm>
#include <bit>
#include <queue>
#include <tuple>
#include <unordered_map>

namespace plimsoll {

namespace {

using Downset = std::uint64_t;

Downset one(std::uint32_t node) {
  return Downset{1} << node;
}

/// Paths over downsets, by their bottleneck.
class DownsetPaths {
 public:
  DownsetPaths(const OrderGraph& graph, std::int64_t bound, std::int64_t known,
               std::size_t most_states, const Work& work)
      : graph_(graph),
        empty_(graph),
        bound_(bound),
        known_(known),
        most_states_(most_states),
        work_(work),
        all_(graph.nodes() == kMostOrderNodes
                 ? ~Downset{0}
                 : one(static_cast<std::uint32_t>(graph.nodes())) - 1) {}

  ExactOrder run() {
    OrderState state = empty_;
    reach(state, 0, std::max(bound_, state.there()), {});
    while (!queue_.empty() && reached_.size() < most_states_) {
      const auto [level, left, set] = queue_.top();
      queue_.pop();
      if (reached_.at(set).level != level) continue;
      if (set == all_) return {true, order_to(set), reached_.size()};
      expand(set, level);
    }
    return {queue_.empty(), {}, reached_.size()};
  }

 private:
  struct Reached {
    std::int64_t level = 0;
    Downset from = 0;
    std::uint32_t node = kNone;  ///< that ran in `from`, before the safe chains; none at first
  };

  [[nodiscard]] OrderState state_of(Downset set) const {
    OrderState state = empty_;
    for (const std::uint32_t node : graph_.given)
      if ((set & one(node)) != 0) state.run(node);
    return state;
  }

  /// Runs safe chains as long as there are any.
  Downset close(OrderState& state, Downset set, std::int64_t level,
                std::vector<std::uint32_t>* ran) {
    while (true) {
      const auto chains = look_.chains(state, level);
      if (!look_.is_safe(state)) return set;
      for (const std::uint32_t node : chains.front().all()) {
        set |= one(node);
        state.run(node);
        if (ran != nullptr) ran->push_back(node);
      }
    }
  }

  void reach(OrderState& state, Downset set, std::int64_t level, const Reached& by) {
    set = close(state, set, level, nullptr);
    const auto [at, is_new] = reached_.try_emplace(set, Reached{level, by.from, by.node});
    if (!is_new) {
      if (at->second.level <= level) return;
      at->second = {level, by.from, by.node};
    }
    const auto left =
        static_cast<std::uint32_t>(graph_.nodes()) - static_cast<std::uint32_t>(std::popcount(set));
    queue_.emplace(level, left, set);
  }

  void expand(Downset set, std::int64_t level) {
    const OrderState state = state_of(set);
    for (const std::uint32_t node : state.ready()) {
      const std::int64_t reached = std::max(level, state.need(node));
      if (reached >= known_) continue;
      OrderState next = state;
      next.run(node);
      reach(next, set | one(node), reached, {0, set, node});
    }
    work_.add(static_cast<std::int64_t>(look_.looks() - counted_ + graph_.size()));
    counted_ = look_.looks();
  }

  /// Runs each step again, as it was found.
  std::vector<std::uint32_t> order_to(Downset set) {
    std::vector<Reached> steps;
    for (Reached step = reached_.at(set);; step = reached_.at(step.from)) {
      steps.push_back(step);
      if (step.node == kNone) break;
    }
    std::vector<std::uint32_t> order;
    while (!steps.empty()) {
      const Reached step = steps.back();
      steps.pop_back();
      OrderState state = state_of(step.from);
      Downset reached = step.from;
      if (step.node != kNone) {
        state.run(step.node);
        reached |= one(step.node);
        order.push_back(step.node);
      }
      close(state, reached, step.level, &order);
    }
    return order;
  }

  const OrderGraph& graph_;
  const OrderState empty_;
  const std::int64_t bound_, known_;
  const std::size_t most_states_;
  const Work& work_;
  const Downset all_;
  LookAhead look_{kMostOrderNodes};
  std::size_t counted_ = 0;
  std::unordered_map<Downset, Reached> reached_;  ///< looked up only
  using Entry = std::tuple<std::int64_t, std::uint32_t, Downset>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

}  // namespace

ExactOrder exact_order(const OrderGraph& graph, std::int64_t bound, std::int64_t known,
                       std::size_t most_states, const Work& work) {
  return DownsetPaths(graph, bound, known, most_states, work).run();
}

}  // namespace plimsoll
