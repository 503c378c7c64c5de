#include "policy/hybrid/paging/paging_search.hpp"

#include "engine/wide.hpp"

#include <algorithm>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>

namespace plimsoll {

namespace {

using ValueSet = std::uint32_t;

constexpr std::uint32_t kValueBits = 24;
constexpr ValueSet kAllValueBits = (ValueSet{1} << kValueBits) - 1;

ValueSet one(std::uint32_t value) {
  return ValueSet{1} << value;
}

/// Where a path has come.
struct PagingState {
  ValueSet there = 0, saved = 0;
  std::uint32_t next = 0;  ///< the node whose first run comes next

  [[nodiscard]] std::uint64_t key() const {
    return std::uint64_t{next} << 2 * kValueBits | std::uint64_t{saved} << kValueBits | there;
  }
  static PagingState of(std::uint64_t key) {
    return {static_cast<ValueSet>(key) & kAllValueBits,
            static_cast<ValueSet>(key >> kValueBits) & kAllValueBits,
            static_cast<std::uint32_t>(key >> 2 * kValueBits)};
  }
};

class PagingPaths {
 public:
  enum class Least : std::uint8_t { cost, room };
  using Cost = Signed128;  ///< zJ, or bytes of room

  PagingPaths(const PagingTask& task, Least least, const Work& work)
      : task_(task), graph_(task.graph), least_(least), work_(work) {
    for (const OperatorGraph::Node& node : graph_.nodes) {
      ValueSet reads = 0, makes = 0;
      for (const std::uint32_t value : node.reads) reads |= one(value);
      for (const std::uint32_t value : node.makes) makes |= one(value);
      reads_.push_back(reads);
      makes_.push_back(makes);
    }
    for (std::uint32_t value = 0; value < graph_.values.size(); ++value)
      if (graph_.values[value].stays) stays_ |= one(value);
    for (std::uint32_t next = 0; next <= graph_.nodes.size(); ++next)
      useful_.push_back(useful_before(next));
    to_come_.assign(graph_.nodes.size() + 1, 0);
    if (least == Least::cost)
      for (std::size_t node = graph_.nodes.size(); node-- > 0;)
        to_come_[node] = to_come_[node + 1] + task.runs[node].count();
  }

  /// The state at the end of the best path.
  std::optional<std::uint64_t> run() {
    reach({}, 0, PagingState{}.key(), {});
    while (!queue_.empty()) {
      const auto [bound, key] = queue_.top();
      queue_.pop();
      const PagingState at = PagingState::of(key);
      const Cost cost = known_.at(key).cost;
      if (cost + to_come_[at.next] != bound) continue;
      if (is_goal(at)) return key;
      work_.add(static_cast<std::int64_t>(graph_.nodes.size() + graph_.values.size()));
      run_from(at, cost);
      if (task_.paging) read_back_from(at, cost);
      drop_from(at, cost);
    }
    return std::nullopt;
  }

  [[nodiscard]] Cost cost_of(std::uint64_t key) const { return known_.at(key).cost; }
  [[nodiscard]] std::vector<PagingStep> steps_to(std::uint64_t key) const {
    const std::uint64_t start = PagingState{}.key();
    std::vector<PagingStep> steps;
    for (; key != start; key = known_.at(key).before) {
      const PagingStep& step = known_.at(key).step;
      if (step.move == PagingMove::copy_out) steps.push_back({PagingMove::drop, step.id});
      steps.push_back(step);
    }
    std::ranges::reverse(steps);
    return steps;
  }

 private:
  struct Known {
    Cost cost = 0;
    std::uint64_t before = 0;
    PagingStep step;  ///< a copy out drops the value, too
  };

  /// Values that may still be read once the nodes before `next` have run, or that stay.
  [[nodiscard]] ValueSet useful_before(std::uint32_t next) const {
    ValueSet useful = 0;
    for (std::uint32_t v = static_cast<std::uint32_t>(graph_.values.size()); v-- > 0;) {
      const OperatorGraph::Value& value = graph_.values[v];
      const bool is_read = std::ranges::any_of(value.readers, [&](std::uint32_t reader) {
        return reader >= next || (may_rerun(reader) && (makes_[reader] & useful) != 0);
      });
      if (is_read || value.stays) useful |= one(v);
    }
    return useful;
  }

  [[nodiscard]] bool may_rerun(std::uint32_t node) const {
    return task_.recompute && !graph_.nodes[node].runs_once;
  }

  [[nodiscard]] bool is_goal(const PagingState& at) const {
    return at.next == graph_.nodes.size() && (at.there & stays_) == stays_;
  }

  [[nodiscard]] Bytes bytes_of(ValueSet values) const {
    Bytes sum;
    for (std::uint32_t value = 0; value < graph_.values.size(); ++value)
      if ((values & one(value)) != 0) sum += graph_.values[value].bytes;
    return sum;
  }

  void reach(PagingState state, Cost cost, std::uint64_t before, const PagingStep& step) {
    state.there &= useful_[state.next];
    state.saved &= useful_[state.next];
    const auto [known, is_new] = known_.try_emplace(state.key(), Known{cost, before, step});
    if (!is_new) {
      if (known->second.cost <= cost) return;
      known->second = {cost, before, step};
    }
    if (known_.size() > kMostPagingStates) throw TooManyPagingStates();
    queue_.emplace(cost + to_come_[state.next], state.key());
  }

  /// A step that needs so much room and costs so much.
  void move(const PagingState& from, Cost cost, const PagingState& to, const PagingStep& step,
            Bytes needs, Energy costs) {
    if (needs > task_.room) return;
    const Cost after =
        least_ == Least::cost ? cost + costs.count() : std::max<Cost>(cost, needs.count());
    reach(to, after, from.key(), step);
  }

  void run_from(const PagingState& at, Cost cost) {
    for (std::uint32_t node = 0; node <= at.next && node < graph_.nodes.size(); ++node) {
      if ((at.there & reads_[node]) != reads_[node]) continue;
      const bool is_first = node == at.next;
      const bool makes_more = (makes_[node] & useful_[at.next] & ~at.there) != 0;
      if (!is_first && (!may_rerun(node) || !makes_more)) continue;
      const ValueSet there = at.there | makes_[node];
      move(at, cost, {there, at.saved, at.next + (is_first ? 1 : 0)}, {PagingMove::run, node},
           bytes_of(there) + graph_.nodes[node].workspace, task_.runs[node]);
    }
  }

  void read_back_from(const PagingState& at, Cost cost) {
    for (std::uint32_t value = 0; value < graph_.values.size(); ++value)
      if ((at.saved & ~at.there & one(value)) != 0)
        move(at, cost, {at.there | one(value), at.saved, at.next}, {PagingMove::read_back, value},
             bytes_of(at.there | one(value)), task_.backs[value]);
  }

  void drop_from(const PagingState& at, Cost cost) {
    for (std::uint32_t value = 0; value < graph_.values.size(); ++value) {
      const ValueSet it = one(value);
      if ((at.saved & it) != 0 && !task_.storage.is_unlimited())
        reach({at.there, at.saved & ~it, at.next}, cost, at.key(), {PagingMove::drop_saved, value});
      if ((at.there & it) == 0) continue;
      reach({at.there & ~it, at.saved, at.next}, cost, at.key(), {PagingMove::drop, value});
      if (!task_.paging || (at.saved & it) != 0) continue;
      if (!task_.storage.is_unlimited() && bytes_of(at.saved | it) > task_.storage) continue;
      move(at, cost, {at.there & ~it, at.saved | it, at.next}, {PagingMove::copy_out, value},
           Bytes{}, task_.outs[value]);
    }
  }

  const PagingTask& task_;
  const OperatorGraph& graph_;
  const Least least_;
  const Work& work_;
  std::vector<ValueSet> reads_, makes_;  ///< by node
  ValueSet stays_ = 0;
  std::vector<ValueSet> useful_;                    ///< by the node that runs next
  std::vector<Cost> to_come_;                       ///< of first runs, likewise
  std::unordered_map<std::uint64_t, Known> known_;  ///< looked up only
  using Entry = std::pair<Cost, std::uint64_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

}  // namespace

TooManyPagingStates::TooManyPagingStates()
    : std::runtime_error("more than " + std::to_string(kMostPagingStates) + " states") {}

std::optional<PagingSequence> cheapest_paging(const PagingTask& task, const Work& work) {
  PagingPaths paths(task, PagingPaths::Least::cost, work);
  const auto goal = paths.run();
  if (!goal) return std::nullopt;
  return PagingSequence{paths.steps_to(*goal), Energy{paths.cost_of(*goal)}};
}

Bytes least_paging_room(const PagingTask& task, const Work& work) {
  PagingTask roomy = task;
  roomy.room = Bytes::unlimited();
  PagingPaths paths(roomy, PagingPaths::Least::room, work);
  return Bytes{static_cast<std::int64_t>(paths.cost_of(*paths.run()))};
}

}  // namespace plimsoll
