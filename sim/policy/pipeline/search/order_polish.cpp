#include "policy/pipeline/search/order_polish.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

/// Iterations without a gain after which a search ends.
constexpr int kPatience = 60;
/// Iterations for which a task that has moved stays.
constexpr std::int64_t kTenure = 12;
/// Moves within a run reach so far.
constexpr std::size_t kPolishReach = 24;

struct Place {
  std::uint32_t device = 0;
  std::size_t at = 0;
};

/// The task at `from` goes to place `to` of the device; those between make room.
struct Move {
  std::uint32_t device = 0;
  std::size_t from = 0, to = 0;
  [[nodiscard]] Move back() const { return {device, to, from}; }
};

class Polish {
 public:
  Polish(const TaskNetwork& network, TaskOrders& orders, const std::vector<std::int64_t>& limits,
         std::int64_t& evaluations)
      : network_(network),
        turned_(network.turned_round()),
        evaluator_(network),
        orders_(orders),
        limits_(limits),
        left_(evaluations),
        stays_until_(network.tasks(), 0),
        place_(network.tasks()) {}

  OrderValue run() {
    OrderValue best = *evaluator_.evaluate(orders_);
    TaskOrders best_orders = orders_;
    for (int idle = 0; idle < kPatience && left_ > 0; ++now_) {
      const auto made = best_move(best);
      if (!made) break;
      if (*made < best) {
        best = *made;
        best_orders = orders_;
        idle = 0;
      } else {
        ++idle;
      }
    }
    orders_ = std::move(best_orders);
    return best;
  }

 private:
  std::optional<OrderValue> best_move(const OrderValue& best) {
    (void)evaluator_.evaluate(orders_);
    std::optional<OrderValue> chosen_value;
    Move chosen;
    for (const Move& move : moves()) {
      if (--left_ < 0) break;
      const std::uint32_t task = orders_[move.device][move.from];
      make(move);
      const auto value = fits(move) ? evaluator_.evaluate(orders_) : std::nullopt;
      make(move.back());
      if (!value || (chosen_value && *value >= *chosen_value)) continue;
      if (stays_until_[task] > now_ && *value >= best) continue;
      chosen_value = value;
      chosen = move;
    }
    if (!chosen_value) return std::nullopt;
    stays_until_[orders_[chosen.device][chosen.from]] = now_ + kTenure;
    make(chosen);
    return chosen_value;
  }

  /// Of the runs of the chain that ends last, from its end to its begin.
  std::vector<Move> moves() {
    for (std::uint32_t d = 0; d < network_.devices; ++d)
      for (std::size_t i = 0; i < orders_[d].size(); ++i) place_[orders_[d][i]] = {d, i};
    std::vector<Move> moves;
    std::optional<Place> end = last_place();
    while (end) {
      const std::size_t begin = begin_of_run(*end);
      add_moves(moves, end->device, begin, end->at);
      end = giver(orders_[end->device][begin]);
    }
    return moves;
  }

  std::optional<Place> last_place() const {
    std::optional<Place> last;
    std::int64_t latest = -1;
    for (std::uint32_t d = 0; d < network_.devices; ++d) {
      if (orders_[d].empty()) continue;
      const std::int64_t end = end_of(orders_[d].back()) + network_.after[d];
      if (end <= latest) continue;
      latest = end;
      last = Place{d, orders_[d].size() - 1};
    }
    return last;
  }

  std::int64_t start(std::uint32_t task) const { return evaluator_.starts()[task]; }
  std::int64_t end_of(std::uint32_t task) const { return start(task) + network_.of(task).time; }

  std::size_t begin_of_run(const Place& end) const {
    const auto& order = orders_[end.device];
    std::size_t begin = end.at;
    while (begin > 0 && end_of(order[begin - 1]) == start(order[begin])) --begin;
    return begin;
  }

  /// The task whose result arrives last at `task`.
  std::optional<Place> giver(std::uint32_t task) const {
    const std::uint32_t m = network_.microbatches;
    std::optional<Place> latest;
    std::int64_t arrival = -1;
    for (const TaskNetwork::Handover& from : turned_.of(task).next) {
      if (from.to == TaskNetwork::kNone) break;
      const std::uint32_t giver = from.to * m + task % m;
      if (end_of(giver) + from.lag() <= arrival) continue;
      arrival = end_of(giver) + from.lag();
      latest = place_[giver];
    }
    return latest;
  }

  static void add_moves(std::vector<Move>& moves, std::uint32_t device, std::size_t begin,
                        std::size_t end) {
    const std::size_t most = std::min(end - begin, kPolishReach);
    for (std::size_t by = 1; by <= most; by = by < 4 ? by + 1 : by * 2) {
      moves.push_back({device, end, end - by});
      moves.push_back({device, begin, begin + by});
    }
  }

  void make(const Move& move) {
    auto& order = orders_[move.device];
    const auto at = [&](std::size_t i) { return order.begin() + static_cast<std::ptrdiff_t>(i); };
    if (move.to < move.from)
      std::rotate(at(move.to), at(move.from), at(move.from + 1));
    else
      std::rotate(at(move.from), at(move.from + 1), at(move.to + 1));
  }

  /// Whether the device keeps to its limit.
  bool fits(const Move& move) const {
    std::int64_t kept = 0;
    for (const std::uint32_t task : orders_[move.device]) {
      kept += network_.of(task).kept;
      if (kept > limits_[move.device]) return false;
    }
    return true;
  }

  const TaskNetwork& network_;
  const TaskNetwork turned_;
  OrderEvaluator evaluator_;
  TaskOrders& orders_;
  const std::vector<std::int64_t>& limits_;
  std::int64_t& left_;
  std::int64_t now_ = 0;
  std::vector<std::int64_t> stays_until_;  ///< by task
  std::vector<Place> place_;               ///< by task
};

}  // namespace

OrderValue polish(const TaskNetwork& network, TaskOrders& orders,
                  const std::vector<std::int64_t>& limits, std::int64_t& evaluations) {
  return Polish(network, orders, limits, evaluations).run();
}

}  // namespace plimsoll
