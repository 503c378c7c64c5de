#include "policy/remat/graph/search/exact_search.hpp"

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <utility>

namespace plimsoll {

namespace {

using Mask = std::uint32_t;

constexpr std::uint32_t kNoNode = 0xFFFFFFFF;

Mask bit(std::uint32_t i) {
  return Mask{1} << i;
}

/// What is there, and how far the plan is: the nodes that have run where first runs are free; else
/// the stage, and the first node that may still run in it.
struct Place {
  Mask there = 0, run = 0;
  [[nodiscard]] std::uint64_t key() const { return std::uint64_t{run} << 32 | there; }
};

constexpr std::uint32_t kStageShift = 16;

/// Paths of least time within some room, or of least room whatever the time.
class ShortestPaths {
 public:
  enum class Least : std::uint8_t { time, room };

  ShortestPaths(const OperatorGraph& graph, FirstRuns order, const Work& work)
      : graph_(graph), order_(order), work_(work) {
    auto next = static_cast<std::uint32_t>(graph.values.size());
    for (const OperatorGraph::Value& value : graph.values) bytes_.push_back(value.bytes);
    for (const OperatorGraph::Node& node : graph.nodes) {
      Mask reads = 0, makes = 0, lasts = 0;
      generators_.push_back(keeps_generator(node) ? bit(next++) : 0);
      if (keeps_generator(node)) bytes_.push_back(node.generator);
      for (const std::uint32_t value : node.reads) reads |= bit(value);
      for (const std::uint32_t value : node.makes) {
        makes |= bit(value);
        if (!graph.values[value].readers.empty() || graph.values[value].stays) lasts |= bit(value);
      }
      reads_.push_back(reads);
      makes_.push_back(makes);
      lasts_.push_back(lasts);
    }
    for (std::uint32_t value = 0; value < graph.values.size(); ++value)
      if (graph.values[value].stays) stays_ |= bit(value);
  }

  std::optional<ExactSequence> run(Least least, Bytes room) {
    least_ = least;
    room_ = room;
    reach(Place{}, 0, 0, kNoNode);
    while (!queue_.empty()) {
      const auto [cost, key] = queue_.top();
      queue_.pop();
      const Place at{static_cast<Mask>(key), static_cast<Mask>(key >> 32)};
      if (known_.at(key).cost != cost) continue;
      if (is_goal(at)) return sequence_to(key);
      work_.add(graph_.nodes.size() + bytes_.size());
      drop_from(at, cost);
      if (order_ == FirstRuns::free)
        run_any_from(at, cost);
      else
        run_next_from(at, cost);
    }
    return std::nullopt;
  }

 private:
  struct Known {
    std::int64_t cost = 0;
    std::uint64_t before = 0;
    std::uint32_t node = kNoNode;  ///< that ran; none where values were dropped
  };

  [[nodiscard]] Mask all_nodes() const {
    return static_cast<Mask>((std::uint64_t{1} << graph_.nodes.size()) - 1);
  }

  [[nodiscard]] bool is_goal(const Place& at) const {
    const bool all_run = order_ == FirstRuns::free ? at.run == all_nodes()
                                                   : at.run >> kStageShift == graph_.nodes.size();
    return all_run && (at.there & stays_) == stays_;
  }

  [[nodiscard]] Bytes bytes_of(Mask there) const {
    Bytes sum;
    for (std::uint32_t i = 0; i < bytes_.size(); ++i)
      if ((there & bit(i)) != 0) sum += bytes_[i];
    return sum;
  }

  void reach(const Place& place, std::int64_t cost, std::uint64_t before, std::uint32_t node) {
    const auto [known, is_new] = known_.try_emplace(place.key(), Known{cost, before, node});
    if (!is_new) {
      if (known->second.cost <= cost) return;
      known->second = {cost, before, node};
    }
    queue_.emplace(cost, place.key());
  }

  void drop_from(const Place& at, std::int64_t cost) {
    for (std::uint32_t i = 0; i < bytes_.size(); ++i)
      if ((at.there & bit(i)) != 0) reach({at.there & ~bit(i), at.run}, cost, at.key(), kNoNode);
  }

  /// The first run of a node, after which the plan is at `run`. It may keep the state of its
  /// generator.
  void run_first(const Place& at, std::int64_t cost, std::uint32_t node, Mask run) {
    run_node(at, cost, node, run, 0);
    if (generators_[node] != 0) run_node(at, cost, node, run, generators_[node]);
  }

  /// A later one, which needs that state.
  void run_again(const Place& at, std::int64_t cost, std::uint32_t node, Mask run) {
    const Mask needed = generators_[node];
    if (!graph_.nodes[node].runs_once && (at.there & needed) == needed)
      run_node(at, cost, node, run, 0);
  }

  void run_node(const Place& at, std::int64_t cost, std::uint32_t node, Mask run, Mask keeps) {
    if ((at.there & reads_[node]) != reads_[node]) return;
    const Bytes needs = bytes_of(at.there | makes_[node] | keeps) + graph_.nodes[node].workspace;
    if (needs > room_) return;
    const std::int64_t after = least_ == Least::time ? cost + graph_.nodes[node].time.count()
                                                     : std::max(cost, needs.count());
    reach({at.there | lasts_[node] | keeps, run}, after, at.key(), node);
  }

  void run_any_from(const Place& at, std::int64_t cost) {
    for (std::uint32_t node = 0; node < graph_.nodes.size(); ++node)
      if ((at.run & bit(node)) == 0)
        run_first(at, cost, node, at.run | bit(node));
      else
        run_again(at, cost, node, at.run);
  }

  /// In stage t, the nodes before it in turn, each or not, and then t.
  void run_next_from(const Place& at, std::int64_t cost) {
    const std::uint32_t stage = at.run >> kStageShift, next = at.run & (bit(kStageShift) - 1);
    if (stage == graph_.nodes.size()) return;
    for (std::uint32_t node = next; node < stage; ++node)
      run_again(at, cost, node, stage << kStageShift | (node + 1));
    run_first(at, cost, stage, (stage + 1) << kStageShift);
  }

  ExactSequence sequence_to(std::uint64_t key) const {
    ExactSequence sequence;
    for (Known known = known_.at(key); known.before != 0 || known.node != kNoNode || key != 0;
         key = known.before, known = known_.at(key))
      if (known.node != kNoNode) {
        sequence.computations.push_back(known.node);
        sequence.time += graph_.nodes[known.node].time;
        const Mask kept = static_cast<Mask>(key) & generators_[known.node];
        const Mask there = static_cast<Mask>(known.before) | makes_[known.node] | kept;
        sequence.peak =
            std::max(sequence.peak, bytes_of(there) + graph_.nodes[known.node].workspace);
      }
    std::ranges::reverse(sequence.computations);
    return sequence;
  }

  const OperatorGraph& graph_;
  const FirstRuns order_;
  const Work& work_;
  std::vector<Mask> reads_, makes_, lasts_;  ///< by node; what it makes and is not freed at once
  std::vector<Mask> generators_;             ///< by node; none where it keeps no state
  std::vector<Bytes> bytes_;                 ///< of the values, then of those states
  Mask stays_ = 0;
  Least least_ = Least::time;
  Bytes room_;
  std::unordered_map<std::uint64_t, Known> known_;  ///< looked up only
  using Entry = std::pair<std::int64_t, std::uint64_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

}  // namespace

bool keeps_generator(const OperatorGraph::Node& node) {
  return node.generator > Bytes{} && !node.runs_once;
}

std::optional<ExactSequence> fastest_sequence(const OperatorGraph& graph, Bytes room,
                                              FirstRuns order, const Work& work) {
  return ShortestPaths(graph, order, work).run(ShortestPaths::Least::time, room);
}

Bytes least_room(const OperatorGraph& graph, FirstRuns order, const Work& work) {
  return ShortestPaths(graph, order, work)
      .run(ShortestPaths::Least::room, Bytes::unlimited())
      ->peak;
}

}  // namespace plimsoll
