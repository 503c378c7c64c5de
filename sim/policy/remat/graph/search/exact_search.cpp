#include "policy/remat/graph/search/exact_search.hpp"

#include "policy/graph/computations.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>
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
constexpr std::int64_t kAllStates = std::numeric_limits<std::int64_t>::max();

/// Paths of least time of reruns within a room. What is there goes only in front of a run that needs
/// its place, and no more than that needs: more there never hurts.
class ShortestPaths {
 public:
  ShortestPaths(const OperatorGraph& graph, Bytes room, const ExactLimits& limits, const Work& work)
      : graph_(graph), limits_(limits), work_(work), room_(room) {
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
    by_size_.resize(bytes_.size());
    std::iota(by_size_.begin(), by_size_.end(), 0u);
    std::ranges::stable_sort(by_size_, std::ranges::greater{},
                             [&](std::uint32_t it) { return bytes_[it]; });
  }

  ExactOutcome run() {
    reach(Place{}, 0, {});
    while (!queue_.empty()) {
      const auto [cost, left, key] = queue_.top();
      queue_.pop();
      const Place at{static_cast<Mask>(key), static_cast<Mask>(key >> 32)};
      if (known_.at(key).cost != cost) continue;
      if (is_goal(at)) return {.sequence = sequence_to(key), .is_closed = true};
      if (++states_ > limits_.states) return {};
      work_.add(graph_.nodes.size() + bytes_.size());
      if (limits_.order == FirstRuns::free)
        run_any_from(at, cost);
      else
        run_next_from(at, cost);
    }
    return {.is_closed = true};
  }

  /// After a run without a plan, no less room has one.
  [[nodiscard]] Bytes next_room() const { return next_room_; }

 private:
  struct Known {
    std::int64_t cost = 0;
    std::uint64_t before = 0;
    std::uint32_t node = kNoNode;  ///< that ran
    Mask there = 0;                ///< what was there meanwhile
  };

  /// A run that is looked at: where it leads to, and what it needs.
  struct Run {
    std::uint32_t node = 0;
    Mask run = 0, needs = 0, lasts = 0;
    std::int64_t cost = 0;
    std::uint64_t before = 0;
  };

  [[nodiscard]] std::uint32_t first_runs_left(const Place& at) const {
    const auto run = limits_.order == FirstRuns::free
                         ? static_cast<std::uint32_t>(std::popcount(at.run))
                         : at.run >> kStageShift;
    return static_cast<std::uint32_t>(graph_.nodes.size()) - run;
  }

  [[nodiscard]] bool is_goal(const Place& at) const {
    return first_runs_left(at) == 0 && (at.there & stays_) == stays_;
  }

  [[nodiscard]] Bytes bytes_of(Mask there) const {
    Bytes sum;
    for (; there != 0; there &= there - 1)
      sum += bytes_[static_cast<std::size_t>(std::countr_zero(there))];
    return sum;
  }

  void reach(const Place& place, std::int64_t cost, const Known& by) {
    const auto [known, is_new] = known_.try_emplace(place.key(), by);
    if (!is_new) {
      if (known->second.cost <= cost) return;
      known->second = by;
    }
    queue_.emplace(cost, first_runs_left(place), place.key());
  }

  /// The first run of a node, after which the plan is at `run`. It may keep the state of its
  /// generator.
  void run_first(const Place& at, std::int64_t cost, std::uint32_t node, Mask run) {
    run_node(at, {node, run, reads_[node], lasts_[node], cost, at.key()});
    if (const Mask state = generators_[node]; state != 0)
      run_node(at, {node, run, reads_[node], lasts_[node] | state, cost, at.key()});
  }

  /// A later one, which needs that state; of use where it makes what is not there.
  void run_again(const Place& at, std::int64_t cost, std::uint32_t node, Mask run) {
    if (!limits_.may_rerun || graph_.nodes[node].runs_once) return;
    if ((lasts_[node] & ~at.there) == 0) return;
    run_node(at, {node, run, reads_[node] | generators_[node], lasts_[node],
                  cost + graph_.nodes[node].time.count(), at.key()});
  }

  void run_node(const Place& at, const Run& it) {
    if ((at.there & it.needs) != it.needs) return;
    const Mask all = at.there | makes_[it.node] | it.lasts;
    const Bytes needs = bytes_of(all) + graph_.nodes[it.node].workspace;
    drop_and_run(it, all, all & ~(it.needs | makes_[it.node] | it.lasts), 0, needs);
  }

  /// Drops what is enough, and nothing in vain: the larger first, so that the last one was missing.
  void drop_and_run(const Run& it, Mask there, Mask droppable, std::size_t from, Bytes needs) {
    work_.add(std::size_t{1});
    if (needs <= room_) {
      const Mask unread = makes_[it.node] & ~lasts_[it.node];
      reach({there & ~unread, it.run}, it.cost, {it.cost, it.before, it.node, there});
      return;
    }
    for (std::size_t i = from; needs - bytes_of(droppable) <= room_; ++i) {
      const std::uint32_t value = by_size_[i];
      if ((droppable & bit(value)) == 0) continue;
      droppable &= ~bit(value);
      drop_and_run(it, there & ~bit(value), droppable, i + 1, needs - bytes_[value]);
    }
    next_room_ = std::min(next_room_, needs - bytes_of(droppable));
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
    for (; key != 0; key = known_.at(key).before) {
      const Known& known = known_.at(key);
      const OperatorGraph::Node& node = graph_.nodes[known.node];
      sequence.computations.push_back(known.node);
      sequence.time += node.time;
      sequence.peak = std::max(sequence.peak, bytes_of(known.there) + node.workspace);
    }
    std::ranges::reverse(sequence.computations);
    return sequence;
  }

  const OperatorGraph& graph_;
  const ExactLimits limits_;
  const Work& work_;
  std::vector<Mask> reads_, makes_, lasts_;  ///< by node; what it makes and is not freed at once
  std::vector<Mask> generators_;             ///< by node; none where it keeps no state
  std::vector<Bytes> bytes_;                 ///< of the values, then of those states
  std::vector<std::uint32_t> by_size_;       ///< these, the largest first
  Mask stays_ = 0;
  const Bytes room_;
  Bytes next_room_ = Bytes::unlimited();
  std::int64_t states_ = 0;                         ///< looked at
  std::unordered_map<std::uint64_t, Known> known_;  ///< looked up only
  /// Cost; then those first where more has run, and of these the one in the order of the graph.
  using Entry = std::tuple<std::int64_t, std::uint32_t, std::uint64_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

}  // namespace

bool keeps_generator(const OperatorGraph::Node& node) {
  return node.generator > Bytes{} && !node.runs_once;
}

bool is_within_exact_limits(const OperatorGraph& graph) {
  const auto generators =
      static_cast<std::size_t>(std::ranges::count_if(graph.nodes, keeps_generator));
  return graph.nodes.size() <= kMostExactNodes &&
         graph.values.size() + generators <= kMostExactValues;
}

ExactOutcome fastest_sequence_within(const OperatorGraph& graph, Bytes room,
                                     const ExactLimits& limits, const Work& work) {
  return ShortestPaths(graph, room, limits, work).run();
}

std::optional<ExactSequence> fastest_sequence(const OperatorGraph& graph, Bytes room,
                                              FirstRuns order, const Work& work) {
  return ShortestPaths(graph, room, {.order = order, .states = kAllStates}, work).run().sequence;
}

Bytes least_room(const OperatorGraph& graph, FirstRuns order, const Work& work) {
  return *least_room_within(graph, Bytes{}, {.order = order, .states = kAllStates}, work);
}

std::optional<Bytes> least_room_within(const OperatorGraph& graph, Bytes from,
                                       const ExactLimits& limits, const Work& work) {
  Bytes enough = judge_computations(graph, all_once(graph))->peak;
  while (from < enough) {
    const Bytes room = from + Bytes{(enough - from).count() / 2};
    ShortestPaths paths(graph, room, limits, work);
    const ExactOutcome outcome = paths.run();
    if (!outcome.is_closed) return std::nullopt;
    if (outcome.sequence)
      enough = outcome.sequence->peak;
    else
      from = paths.next_room();
  }
  return enough;
}

}  // namespace plimsoll
