#include "policy/remat/search/any_schedule.hpp"

#include "policy/remat/search/cut_bound.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <limits>
#include <queue>
#include <tuple>

namespace plimsoll {
namespace {

using Kind = ChainAction::Kind;
using Stages = std::uint64_t;  ///< a set of stages, stage i as bit i

constexpr std::uint32_t kNobody = 0xFFFFFFFF;
constexpr int kPriceSteps = 60;

/// States that are compared, and ways to drop outputs, for each state that may be stored, by the
/// square of the stages: together they take about as long as the expansions.
constexpr std::int64_t kWorkPerSquare = 2;

constexpr Stages set_of(std::uint32_t stage) {
  return Stages{1} << stage;
}

std::uint32_t lowest(Stages stages) {
  return static_cast<std::uint32_t>(std::countr_zero(stages));
}

struct State {
  ChainStore store;
  std::int64_t cost = 0;      ///< of the forwards so far
  std::int64_t estimate = 0;  ///< of all forwards, at least
  std::uint32_t parent = kNobody;
  std::uint32_t next = kNobody;  ///< of the same phase and kept set
  ChainAction action;            ///< that led here
  std::uint8_t phase = 0;
  bool dominated = false;
};

/// The states by phase and kept set: chains through State::next.
class States {
 public:
  States() : heads_(1 << 12, kNobody) {}

  std::vector<State> all;

  /// Stores `state` unless another dominates it; marks those that it dominates. Adds to `work` how
  /// many it is compared with.
  std::uint32_t add(const State& state, std::int64_t& work) {
    for (std::uint32_t id = head(state); id != kNobody; id = all[id].next) {
      ++work;
      State& other = all[id];
      if (!same_key(other, state) || other.dominated) continue;
      const Stages ours = state.store.outputs, theirs = other.store.outputs;
      if (other.cost <= state.cost && (ours & ~theirs) == 0) return kNobody;
      if (state.cost <= other.cost && (theirs & ~ours) == 0) other.dominated = true;
    }
    if (all.size() >= heads_.size()) grow();
    const auto id = static_cast<std::uint32_t>(all.size());
    all.push_back(state);
    std::uint32_t& first = head(state);
    all[id].next = first;
    first = id;
    return id;
  }

 private:
  static bool same_key(const State& a, const State& b) {
    return a.phase == b.phase && a.store.kept == b.store.kept;
  }
  std::uint32_t& head(const State& state) {
    std::uint64_t key = state.store.kept * 64 + state.phase;
    key = (key ^ (key >> 31)) * 0x9E3779B97F4A7C15u;
    return heads_[(key >> 20) & (heads_.size() - 1)];
  }
  void grow() {
    heads_.assign(heads_.size() * 4, kNobody);
    for (std::uint32_t id = 0; id < all.size(); ++id) {
      std::uint32_t& first = head(all[id]);
      all[id].next = first;
      first = id;
    }
  }

  std::vector<std::uint32_t> heads_;
};

class Search {
 public:
  Search(const ChainModel& model, std::int64_t budget, const ChainSequence& start,
         std::int64_t most_states)
      : model_(model),
        budget_(budget),
        start_(start),
        most_states_(most_states),
        most_work_(most_states * kWorkPerSquare * model.stages * model.stages) {
    const std::int64_t rest = model.backward_before[model.stages] + model.after;
    least_ =
        start.empty() ? std::numeric_limits<std::int64_t>::max() : time_of(model, start) - rest;
    make_bounds();
  }

  SearchResult run() {
    State first;
    first.phase = static_cast<std::uint8_t>(model_.stages);
    first.action.kind = Kind::backward;
    visit(first);
    while (!open_.empty() && std::get<0>(open_.top()) < least_) {
      const auto [estimate, phase, id] = open_.top();
      if (static_cast<std::int64_t>(states_.all.size()) >= most_states_) return unproven(estimate);
      open_.pop();
      model_.work.add(std::size_t{model_.stages} * model_.stages);
      if (!states_.all[id].dominated) expand(id);
      // What the state may lead to was not all looked at; none of it takes less than the state.
      if (is_spent()) return unproven(estimate);
    }
    return proven();
  }

 private:
  using Entry = std::tuple<std::int64_t, std::uint32_t, std::uint32_t>;  // estimate, phase, id

  [[nodiscard]] SearchResult found() const {
    SearchResult result;
    result.states = static_cast<std::int64_t>(states_.all.size());
    result.sequence = goal_ == kNobody ? start_ : path(goal_);
    return result;
  }

  [[nodiscard]] SearchResult proven() const {
    SearchResult result = found();
    result.proven = true;
    if (!result.sequence.empty()) result.bound = time_of(model_, result.sequence);
    return result;
  }

  /// All that was not looked at takes `estimate` of forwards or more.
  [[nodiscard]] SearchResult unproven(std::int64_t estimate) const {
    SearchResult result = found();
    result.bound = estimate + model_.backward_before[model_.stages] + model_.after;
    return result;
  }

  /// Few states may be many to compare and to reach: ways to drop outputs grow with their subsets.
  [[nodiscard]] bool is_spent() const { return work_ >= most_work_; }

  [[nodiscard]] ChainSequence path(std::uint32_t id) const {
    ChainSequence sequence;
    for (; states_.all[id].parent != kNobody; id = states_.all[id].parent)
      sequence.push_back(states_.all[id].action);
    std::ranges::reverse(sequence);
    return sequence;
  }

  /// A bound for each phase, its prices fitted to where the known schedule enters the phase.
  void make_bounds();
  [[nodiscard]] std::vector<std::pair<ChainStore, std::int64_t>> entries() const;

  [[nodiscard]] std::int64_t bytes(Stages kept, Stages outputs) const {
    std::int64_t sum = 0;
    for (; kept != 0; kept &= kept - 1) sum += model_.saved[lowest(kept)];
    for (; outputs != 0; outputs &= outputs - 1) sum += model_.output[lowest(outputs)];
    return sum;
  }

  /// Raises the estimate of `state` to its own bound; false where it need not be looked at.
  bool promises(State& state) const {
    const std::int64_t rest = state.phase > 0 ? bounds_[state.phase].forward_time(state.store) : 0;
    state.estimate = std::max(state.estimate, state.cost + rest);
    return state.estimate < least_;
  }

  void visit(State state) {
    const std::uint32_t d = state.phase;
    if (!promises(state)) return;
    const std::uint32_t id = states_.add(state, work_);
    if (id == kNobody) return;
    if (d > 0) {
      open_.emplace(state.estimate, d, id);
    } else {
      goal_ = id;
      least_ = state.cost;
    }
  }

  /// Calls visit with `next` for each minimal way to drop `excess` bytes of `droppable`, the
  /// largest first.
  void drop(State& next, Stages droppable, std::int64_t excess) {
    ++work_;
    if (is_spent()) return;
    if (excess <= 0) {
      visit(next);
      return;
    }
    // What is dropped only raises the bound.
    if (State partly = next; !promises(partly)) return;
    while (droppable != 0) {
      std::uint32_t largest = 0;
      std::int64_t sum = 0;
      for (Stages rest = droppable; rest != 0; rest &= rest - 1) {
        const std::uint32_t i = lowest(rest);
        sum += model_.output[i];
        if (largest == 0 || model_.output[i] > model_.output[largest]) largest = i;
      }
      if (sum < excess) return;
      droppable &= ~set_of(largest);
      next.store.outputs &= ~set_of(largest);
      drop(next, droppable, excess - model_.output[largest]);
      next.store.outputs |= set_of(largest);
    }
  }

  void expand(std::uint32_t id) {
    const State from = states_.all[id];
    const std::uint32_t d = from.phase;
    const Stages readable = from.store.kept | from.store.outputs | 1;
    const std::int64_t used = model_.fixed(d) + bytes(from.store.kept, from.store.outputs);
    State next = from;
    next.parent = id;
    next.next = kNobody;
    if ((from.store.kept & set_of(d)) != 0 && (readable & set_of(d - 1)) != 0 &&
        run_backward(next, used))
      return;
    for (std::uint32_t i = d; i > 0; --i) {
      if ((from.store.kept & set_of(i)) != 0 || (readable & set_of(i - 1)) == 0) continue;
      keep(next, used, i);
      if (i < d && (from.store.outputs & set_of(i)) == 0) bare(next, used, i);
    }
  }

  /// True where nothing else need be tried.
  bool run_backward(State next, std::int64_t used) {
    const std::uint32_t d = next.phase;
    const std::int64_t alone = model_.fixed(d) + model_.saved[d];
    const std::int64_t peak = used - alone + model_.backward_need(d);
    const bool frees = model_.fixed(d - 1) <= alone && peak <= budget_;
    const Stages input = set_of(d - 1) & ~Stages{1};
    next.action = {Kind::backward, d - 1};
    next.phase = static_cast<std::uint8_t>(d - 1);
    next.store.kept &= ~set_of(d);
    const Stages droppable = next.store.outputs & ~input;
    if (peak <= budget_) {
      next.store.outputs = droppable;  // a_{d-1} has no reader left
      visit(next);
    } else {
      next.store.outputs = droppable;
      drop(next, droppable, peak - budget_);
    }
    return frees;
  }

  void keep(State next, std::int64_t used, std::uint32_t i) {
    if ((next.store.outputs & set_of(i)) != 0) used -= model_.output[i];
    next.action = {Kind::keep, i - 1};
    next.cost += model_.forward[i];
    next.store.outputs &= ~set_of(i);
    const Stages droppable = next.store.outputs & ~set_of(i - 1);
    next.store.kept |= set_of(i);
    drop(next, droppable, used + model_.saved[i] + model_.keep_workspace[i] - budget_);
  }

  void bare(State next, std::int64_t used, std::uint32_t i) {
    next.action = {Kind::bare, i - 1};
    next.cost += model_.forward[i];
    const Stages droppable = next.store.outputs & ~set_of(i - 1);
    next.store.outputs |= set_of(i);
    drop(next, droppable, used + model_.output[i] + model_.bare_workspace[i] - budget_);
  }

  const ChainModel& model_;
  std::int64_t budget_;
  const ChainSequence& start_;
  std::int64_t most_states_, most_work_;
  std::int64_t work_ = 0;
  std::int64_t least_ = 0;        ///< forward time of the best known schedule
  std::uint32_t goal_ = kNobody;  ///< where it ends, unless it is `start`
  std::vector<CutBound> bounds_;  ///< by phase; place 0 is unused
  States states_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open_;
};

/// What the known schedule has stored at the begin of each phase, and its forward time from there.
std::vector<std::pair<ChainStore, std::int64_t>> Search::entries() const {
  std::vector<std::pair<ChainStore, std::int64_t>> entries(model_.stages + 1);
  std::uint32_t phase = 0;
  Stages read_later = 0, kept_later = 0;  // of what is there: what a later action reads
  std::int64_t time = 0;
  for (std::size_t p = start_.size(); p-- > 0;) {
    const auto [kind, stage] = start_[p];
    const std::uint32_t i = stage + 1;
    if (kind == Kind::backward) {
      entries[phase] = {{kept_later, read_later & ~kept_later}, time};
      phase = i;
      kept_later |= set_of(i);
    } else {
      time += model_.forward[i];
      read_later &= ~set_of(i);
      if (kind == Kind::keep) kept_later &= ~set_of(i);
    }
    if (i > 1) read_later |= set_of(i - 1);
  }
  entries[phase] = {{}, time};
  return entries;
}

void Search::make_bounds() {
  std::vector<std::pair<ChainStore, std::int64_t>> known(model_.stages + 1);
  if (!start_.empty()) known = entries();
  bounds_.reserve(model_.stages + 1);
  for (std::uint32_t d = 0; d <= model_.stages; ++d) {
    std::vector<std::uint32_t> cuts;
    for (const std::uint32_t t : {d, d * 3 / 4})
      if (t >= 2 && (cuts.empty() || t < cuts.back())) cuts.push_back(t);
    bounds_.emplace_back(model_, budget_, std::max(d, 1u), cuts);
    if (!start_.empty() && d > 0)
      bounds_.back().raise_prices(known[d].first, known[d].second, kPriceSteps);
  }
}

}  // namespace

SearchResult search_schedules(const ChainModel& model, std::int64_t budget,
                              const ChainSequence& start, std::int64_t most_states) {
  assert(model.stages <= kMostSearchedStages);
  return Search(model, budget, start, most_states).run();
}

std::int64_t time_of(const ChainModel& model, const ChainSequence& sequence) {
  std::int64_t time = model.after;
  for (const auto [kind, stage] : sequence)
    time += kind == Kind::backward ? model.backward[stage + 1] : model.forward[stage + 1];
  return time;
}

}  // namespace plimsoll
