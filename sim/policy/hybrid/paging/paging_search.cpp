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
    to_come_.resize(graph_.nodes.size() + 1);
    for (std::size_t node = graph_.nodes.size(); node-- > 0;)
      to_come_[node] = after(to_come_[node + 1], task.runs[node], Bytes{});
  }

  /// The end of the best path.
  std::optional<std::uint32_t> run() {
    reach({}, {}, kNoPath, {});
    while (!queue_.empty()) {
      const auto [bound, path] = queue_.top();
      queue_.pop();
      const PagingState at = PagingState::of(paths_[path].key);
      if (bound_of(at, paths_[path].spent) != bound) continue;
      if (is_goal(at)) return path;
      work_.add(static_cast<std::int64_t>(graph_.nodes.size() + graph_.values.size()));
      run_from(at, path);
      if (task_.paging) read_back_from(at, path);
      drop_from(at, path);
    }
    return std::nullopt;
  }

  [[nodiscard]] Cost cost_of(std::uint32_t path) const { return paths_[path].spent.cost; }
  [[nodiscard]] std::vector<PagingStep> steps_to(std::uint32_t path) const {
    std::vector<PagingStep> steps;
    for (; paths_[path].before != kNoPath; path = paths_[path].before) {
      const PagingStep& step = paths_[path].step;
      if (step.move == PagingMove::copy_out) steps.push_back({PagingMove::drop, step.id});
      steps.push_back(step);
      if (step.move == PagingMove::run) drop_what_is_made_again(path, steps);
    }
    std::ranges::reverse(steps);
    return steps;
  }

 private:
  static constexpr std::uint32_t kNoPath = UINT32_MAX;

  /// By the steps of a path. The time is that of all steps where it is limited, else none.
  struct Spent {
    Cost cost = 0;
    std::int64_t time = 0;

    [[nodiscard]] bool is_no_worse_than(const Spent& other) const {
      return cost <= other.cost && time <= other.time;
    }
  };

  /// A way to a state. Paths that go on from one that a better one replaces are no worse for it.
  struct Path {
    std::uint64_t key = 0;
    Spent spent;
    std::uint32_t before = kNoPath;
    std::uint32_t other = kNoPath;  ///< to the same state, which costs more and is shorter, or less
    PagingStep step;                ///< a copy out drops the value, too
  };

  /// A rerun makes all its values; those that are there take room twice unless they go before.
  void drop_what_is_made_again(std::uint32_t run, std::vector<PagingStep>& steps) const {
    const PagingState before = PagingState::of(paths_[paths_[run].before].key);
    const ValueSet again = before.there & makes_[paths_[run].step.id];
    for (std::uint32_t value = 0; value < graph_.values.size(); ++value)
      if ((again & one(value)) != 0) steps.push_back({PagingMove::drop, value});
  }

  [[nodiscard]] bool is_timed() const { return !task_.most_time.is_unlimited(); }

  /// After a step that costs so much and needs so much room.
  [[nodiscard]] Spent after(Spent spent, const PagingCost& step, Bytes needs) const {
    if (is_timed()) spent.time += step.time.count();
    if (least_ == Least::cost)
      spent.cost += step.energy.count();
    else
      spent.cost = std::max<Cost>(spent.cost, needs.count());
    return spent;
  }

  /// Of what the whole way costs.
  [[nodiscard]] Cost bound_of(const PagingState& at, const Spent& spent) const {
    return least_ == Least::cost ? spent.cost + to_come_[at.next].cost : spent.cost;
  }

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

  void reach(PagingState state, const Spent& spent, std::uint32_t before, const PagingStep& step) {
    if (is_timed() && spent.time + to_come_[state.next].time > task_.most_time.count()) return;
    state.there &= useful_[state.next];
    state.saved &= useful_[state.next];
    const std::uint64_t key = state.key();
    std::uint32_t& first = first_.try_emplace(key, kNoPath).first->second;
    for (std::uint32_t it = first; it != kNoPath; it = paths_[it].other)
      if (paths_[it].spent.is_no_worse_than(spent)) return;
    const std::uint32_t path = place_for(first, spent);
    paths_[path].spent = spent;
    paths_[path].key = key;
    paths_[path].before = before;
    paths_[path].step = step;
    queue_.emplace(bound_of(state, spent), path);
  }

  /// The path to the state of `first` that a better one replaces, without others that it replaces, too;
  /// a new one where there is none.
  std::uint32_t place_for(std::uint32_t& first, const Spent& better) {
    std::uint32_t place = kNoPath;
    for (std::uint32_t* it = &first; *it != kNoPath;) {
      Path& path = paths_[*it];
      if (!better.is_no_worse_than(path.spent)) {
        it = &path.other;
      } else if (place == kNoPath) {
        place = *it;
        it = &path.other;
      } else {
        path.spent.cost = -1;  // so that the queue passes it over
        *it = path.other;
      }
    }
    if (place != kNoPath) return place;
    if (paths_.size() >= kMostPagingStates) throw TooManyPagingStates();
    place = static_cast<std::uint32_t>(paths_.size());
    paths_.push_back({.other = first});
    return first = place;
  }

  void move(std::uint32_t from, const PagingState& to, const PagingStep& step, Bytes needs,
            const PagingCost& costs) {
    if (needs <= task_.room) reach(to, after(paths_[from].spent, costs, needs), from, step);
  }

  void run_from(const PagingState& at, std::uint32_t path) {
    for (std::uint32_t node = 0; node <= at.next && node < graph_.nodes.size(); ++node) {
      if ((at.there & reads_[node]) != reads_[node]) continue;
      const bool is_first = node == at.next;
      const bool makes_more = (makes_[node] & useful_[at.next] & ~at.there) != 0;
      if (!is_first && (!may_rerun(node) || !makes_more)) continue;
      const ValueSet there = at.there | makes_[node];
      move(path, {there, at.saved, at.next + (is_first ? 1 : 0)}, {PagingMove::run, node},
           bytes_of(there) + graph_.nodes[node].workspace, task_.runs[node]);
    }
  }

  void read_back_from(const PagingState& at, std::uint32_t path) {
    for (std::uint32_t value = 0; value < graph_.values.size(); ++value)
      if ((at.saved & ~at.there & one(value)) != 0)
        move(path, {at.there | one(value), at.saved, at.next}, {PagingMove::read_back, value},
             bytes_of(at.there | one(value)), task_.backs[value]);
  }

  void drop_from(const PagingState& at, std::uint32_t path) {
    for (std::uint32_t value = 0; value < graph_.values.size(); ++value) {
      const ValueSet it = one(value);
      if ((at.saved & it) != 0 && !task_.storage.is_unlimited())
        move(path, {at.there, at.saved & ~it, at.next}, {PagingMove::drop_saved, value}, {}, {});
      if ((at.there & it) == 0) continue;
      move(path, {at.there & ~it, at.saved, at.next}, {PagingMove::drop, value}, {}, {});
      if (!task_.paging || (at.saved & it) != 0) continue;
      if (!task_.storage.is_unlimited() && bytes_of(at.saved | it) > task_.storage) continue;
      move(path, {at.there & ~it, at.saved | it, at.next}, {PagingMove::copy_out, value}, {},
           task_.outs[value]);
    }
  }

  const PagingTask& task_;
  const OperatorGraph& graph_;
  const Least least_;
  const Work& work_;
  std::vector<ValueSet> reads_, makes_;  ///< by node
  ValueSet stays_ = 0;
  std::vector<ValueSet> useful_;  ///< by the node that runs next
  std::vector<Spent> to_come_;    ///< by first runs, likewise
  std::vector<Path> paths_;
  std::unordered_map<std::uint64_t, std::uint32_t> first_;  ///< to a state; looked up only
  using Entry = std::pair<Cost, std::uint32_t>;
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
