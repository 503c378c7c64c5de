#include "plan/check/in_place_order.hpp"

#include "plan/core/changes.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <ranges>
#include <utility>

namespace plimsoll {

namespace {

constexpr std::uint32_t kUnplaced = 0xFFFFFFFF;
/// Conditions of a step that are looked through for every demand.
constexpr std::size_t kPlain = 8;
constexpr std::size_t kTargets = 64;  ///< bits of a mask
/// Conditions that are looked at for a demand that a few steps may meet.
constexpr std::size_t kNear = 64;
/// Users of parts of buffers that are looked at in one plan, some seconds; and for each of its steps: those of
/// a ring of 64 ranks take about 15.
constexpr std::size_t kMostLooks = std::size_t{1} << 27, kLooksOfStep = 64;

std::size_t index(auto id) {
  return static_cast<std::size_t>(id);
}

std::size_t most_looks(const Plan& plan) {
  return kMostLooks + kLooksOfStep * plan.steps.size();
}

/// Something that must have happened before a step starts: the end of another one, or its start.
struct Before {
  StepId step{};
  bool ended = false;
};

/// All that the plan itself orders, and an order of the steps that fits it.
class Precedence {
 public:
  Precedence(const Plan& plan, const Readers& readers)
      : plan_(plan), place_(plan.steps.size(), kUnplaced) {
    gather(readers);
    sort();
  }

  /// The steps that can run, each after all that it waits for.
  [[nodiscard]] const std::vector<StepId>& order() const { return order_; }
  /// Where in order() a step is; kUnplaced in or behind a circle of waits.
  [[nodiscard]] std::uint32_t place(StepId step) const { return place_[index(step)]; }
  [[nodiscard]] std::span<const Before> before(StepId step) const {
    const std::size_t s = index(step);
    return std::span(before_).subspan(begin_[s], begin_[s + 1] - begin_[s]);
  }
  /// The steps that wait for the end or the start of this one.
  [[nodiscard]] std::span<const StepId> after(StepId step) const {
    const std::size_t s = index(step);
    return std::span(after_).subspan(after_begin_[s], after_begin_[s + 1] - after_begin_[s]);
  }
  /// The first step of the chain that a step is in: consecutive steps of its lane of which each waits for
  /// the end of the one before. All those of a stream; the rounds of a collective on a channel.
  [[nodiscard]] StepId chain(StepId step) const { return chain_[index(step)]; }
  /// Whether the end of `first` comes no later than that of `last`, in one chain.
  [[nodiscard]] bool is_chained(StepId first, StepId last) const {
    return first <= last && chain(first) == chain(last);
  }
  /// Of two steps in order: whether that is seen without a search.
  [[nodiscard]] bool is_plain(StepId first, StepId second) const {
    if (is_chained(first, second)) return true;
    const auto conditions = before(second);
    return std::ranges::any_of(
        conditions.first(std::min(conditions.size(), kPlain)),
        [&](const Before& it) { return it.ended && is_chained(first, it.step); });
  }

 private:
  void gather(const Readers& readers) {
    std::vector<StepId> last_in_lane(plan_.lanes.size(), kNoStep);
    IdSet<StepId> ended(plan_.steps.size()), started(plan_.steps.size());
    // A file may name a step any number of times.
    const auto add = [&](const Before& it) {
      if (!ended.has(it.step) && (it.ended ? ended : started).insert(it.step))
        before_.push_back(it);
    };
    begin_.reserve(plan_.steps.size() + 1);
    chain_.reserve(plan_.steps.size());
    begin_.push_back(0);
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      const StepId last = std::exchange(last_in_lane[index(step.lane)], StepId{s});
      const bool on_stream = plan_[step.lane].kind == Lane::Kind::stream;
      ended.clear();
      started.clear();
      for (const Dependency& dependency : plan_.after(step))
        add({dependency.on, dependency.edge == Dependency::Edge::after_end});
      if (last != kNoStep) add({last, on_stream});
      for (const BufferId buffer : plan_.list(step.reads))
        if (const StepId maker = readers.producer(buffer); maker != kNoStep) add({maker, true});
      begin_.push_back(static_cast<std::uint32_t>(before_.size()));
      chain_.push_back(last != kNoStep && ended.has(last) ? chain(last) : StepId{s});
    }
  }

  void sort() {
    const auto n = static_cast<std::uint32_t>(plan_.steps.size());
    std::vector<std::uint32_t> waits(n);
    after_begin_.resize(n + std::size_t{2});
    // Counted two places on, so that every begin comes to where it belongs as the steps are put down.
    for (const Before& it : before_) ++after_begin_[index(it.step) + 2];
    for (std::size_t s = 0; s < n; ++s) after_begin_[s + 2] += after_begin_[s + 1];
    after_.resize(before_.size());
    for (std::uint32_t s = 0; s < n; ++s)
      for (const Before& it : before(StepId{s}))
        after_[after_begin_[index(it.step) + 1]++] = StepId{s};
    order_.reserve(n);
    for (std::uint32_t s = 0; s < n; ++s) {
      waits[s] = static_cast<std::uint32_t>(before(StepId{s}).size());
      if (waits[s] == 0) order_.push_back(StepId{s});
    }
    for (std::uint32_t i = 0; i < order_.size(); ++i) {
      const std::size_t s = index(order_[i]);
      place_[s] = i;
      for (const StepId next : after(order_[i]))
        if (--waits[index(next)] == 0) order_.push_back(next);
    }
  }

  const Plan& plan_;
  std::vector<std::uint32_t> begin_;  ///< by step, in before_
  std::vector<Before> before_;
  std::vector<std::uint32_t> after_begin_;  ///< by step, in after_
  std::vector<StepId> after_;
  std::vector<StepId> chain_;  ///< by step
  std::vector<StepId> order_;
  std::vector<std::uint32_t> place_;
};

/// Whether all steps run one after the other, in one stream.
bool are_in_one_stream(const Plan& plan, std::span<const StepId> steps) {
  const LaneId lane = plan[steps.front()].lane;
  return plan[lane].kind == Lane::Kind::stream &&
         std::ranges::all_of(steps, [&](StepId s) { return plan[s].lane == lane; });
}

/// The changes of buffers whose users only more than the order of one stream puts in order.
Changes across_lanes(const Plan& plan, const Changes& changes, const Readers& readers) {
  Changes across;
  for (auto begin = changes.begin(); begin != changes.end();) {
    const BufferId buffer = begin->first;
    const auto end =
        std::find_if(begin, changes.end(), [&](const auto& it) { return it.first != buffer; });
    if (!are_in_one_stream(plan, readers.of(buffer))) across.insert(across.end(), begin, end);
    begin = end;
  }
  return across;
}

/// That `first` ends before `second` starts: where it does not, the two are unordered, as the
/// precedence has `first` first.
struct Demand {
  StepId first{}, second{};
  BufferId buffer{};
  bool first_changes = false, second_changes = false;
};

/// The users of a buffer that can run, each once, in the order of the precedence.
void gather_users(BufferId buffer, const Readers& readers, const Precedence& precedence,
                  std::vector<StepId>& users) {
  users.clear();
  for (const StepId user : readers.of(buffer))
    if (precedence.place(user) != kUnplaced) users.push_back(user);
  std::ranges::sort(users, {}, [&](StepId s) { return precedence.place(s); });
  users.erase(std::unique(users.begin(), users.end()), users.end());
}

/// The parts of a buffer that a reduction reads, or changes: of several rounds all.
Reduction parts_used(const Plan& plan, StepId reduction, bool changes) {
  Reduction it = plan.reductions[plan[reduction].reduction];
  if (it.rounds != 1) return {};
  if (changes) it.first = it.brings.value_or(it.first);
  return it;
}

/// Whether its two steps use the same bytes: but for two reductions, all of the buffer.
bool is_of_a_part(const Demand& demand, const Plan& plan) {
  if (plan[demand.first].kind != StepKind::reduce || plan[demand.second].kind != StepKind::reduce)
    return true;
  const Reduction a = parts_used(plan, demand.first, demand.first_changes);
  const Reduction b = parts_used(plan, demand.second, demand.second_changes);
  const auto starts_before_end = [](const Reduction& it, const Reduction& other) {
    return std::uint64_t{it.first} * other.of < (std::uint64_t{other.first} + other.count) * it.of;
  };
  return starts_before_end(a, b) && starts_before_end(b, a);
}

/// Finds all demands that are not plain. In the order of the precedence every change of a part
/// comes after the change before it and after the reads since, every read after the change before
/// it: the rest follows from these.
class OpenDemands {
 public:
  OpenDemands(const Plan& plan, const Changes& changes, const Readers& readers,
              const Precedence& precedence, const OrderLimits& limits)
      : plan_(plan),
        changes_(changes),
        readers_(readers),
        precedence_(precedence),
        most_parts_(limits.common_parts) {}

  std::vector<Demand> run() {
    for (auto begin = changes_.begin(); begin != changes_.end();) {
      const BufferId buffer = begin->first;
      const auto end =
          std::find_if(begin, changes_.end(), [&](const auto& it) { return it.first != buffer; });
      gather(buffer, {begin, end});
      look_at(buffer);
      begin = end;
    }
    return std::move(demands_);
  }

 private:
  struct User {
    StepId step{};
    bool changes = false;  ///< the buffer
    bool reduces = false;

    bool operator==(const User&) const = default;
  };

  void gather(BufferId buffer, std::ranges::subrange<Changes::const_iterator> changes) {
    gather_users(buffer, readers_, precedence_, steps_);
    users_.clear();
    for (const StepId step : steps_)
      users_.push_back({step, std::ranges::binary_search(changes, std::pair{buffer, step}),
                        plan_[step].kind == StepKind::reduce});
    reductions_before_.swap(reductions_);
    reductions_.clear();
    for (const User& user : users_)
      if (user.reduces) reductions_.push_back(user);
    is_like_before_ = reductions_ == reductions_before_;
  }

  void look_at(BufferId buffer) {
    if (reductions_.empty()) return follow(buffer, users_, false);
    std::vector<User> others;
    std::ranges::copy_if(users_, std::back_inserter(others),
                         [](const User& it) { return !it.reduces; });
    keep_edges();
    follow(buffer, others, false);
    if (!divide()) return follow(buffer, users_, true);
    const std::size_t pieces = ends_.size() - 1;
    by_piece_.resize(std::max(by_piece_.size(), pieces));
    for (std::size_t p = 0; p < pieces; ++p) by_piece_[p].clear();
    for (const User& user : users_) {
      std::size_t first = 0, end = pieces;
      if (user.reduces) {
        const Reduction it = parts_used(plan_, user.step, user.changes);
        first = piece_at(it.first, it.of);
        end = piece_at(it.first + it.count, it.of);
      }
      for (std::size_t p = first; p < end; ++p) by_piece_[p].push_back(user);
    }
    for (std::size_t p = 0; p < pieces; ++p) follow(buffer, by_piece_[p], true);
  }

  /// Of every run of users between reductions, only what these can meet: the reads before its first
  /// change and after its last one, of each stream the first and the last of them, and the two changes.
  /// What lies between is in order with those of its own run.
  void keep_edges() {
    std::vector<User> kept;
    for (auto begin = users_.begin(); begin != users_.end();) {
      if (begin->reduces) {
        kept.push_back(*begin++);
        continue;
      }
      const auto end = std::find_if(begin, users_.end(), [](const User& it) { return it.reduces; });
      const auto first = std::find_if(begin, end, [](const User& it) { return it.changes; });
      auto last = end;
      while (last != first && !(last - 1)->changes) --last;
      keep_ends_of_streams({begin, first}, kept);
      if (first != end) kept.push_back(*first);
      if (last != first && last - 1 != first) kept.push_back(*(last - 1));
      if (first != end) keep_ends_of_streams({last, end}, kept);
      begin = end;
    }
    users_ = std::move(kept);
  }

  void keep_ends_of_streams(std::span<const User> reads, std::vector<User>& kept) {
    latest_.clear();
    streams_.clear();
    for (const User& read : reads) {
      const LaneId lane = plan_[read.step].lane;
      const bool on_stream = plan_[lane].kind == Lane::Kind::stream;
      const auto found = on_stream ? std::ranges::find(streams_, lane) : streams_.end();
      if (found == streams_.end()) {
        kept.push_back(read);
        if (on_stream) streams_.push_back(lane), latest_.push_back(kNoStep);
      } else {
        latest_[static_cast<std::size_t>(found - streams_.begin())] = read.step;
      }
    }
    for (const StepId step : latest_)
      if (step != kNoStep) kept.push_back({step, false, false});
  }

  /// Divides the buffer into pieces, so that each part that reductions among the users change is some whole ones;
  /// whether that is no more than may be looked at.
  bool divide() {
    parts_ = 1;
    for (const User& reduction : reductions_) {
      parts_ =
          std::lcm(parts_, std::uint64_t{parts_used(plan_, reduction.step, reduction.changes).of});
      if (parts_ > most_parts_) return false;
    }
    ends_ = {0, parts_};
    for (const User& reduction : reductions_) {
      const Reduction it = parts_used(plan_, reduction.step, reduction.changes);
      for (const std::uint64_t end : {std::uint64_t{it.first}, std::uint64_t{it.first} + it.count})
        ends_.push_back(end * (parts_ / it.of));
    }
    std::ranges::sort(ends_);
    const auto rest = std::ranges::unique(ends_);
    ends_.erase(rest.begin(), rest.end());
    std::size_t looks = ends_.size() * (users_.size() - reductions_.size() + 1);
    for (const User& reduction : reductions_) {
      const Reduction it = parts_used(plan_, reduction.step, reduction.changes);
      looks += piece_at(it.first + it.count, it.of) - piece_at(it.first, it.of);
    }
    if (looks > looks_left_) return false;
    looks_left_ -= looks;
    return true;
  }

  /// The piece that begins with a part of so many.
  [[nodiscard]] std::size_t piece_at(std::uint64_t part, std::uint32_t of) const {
    const auto found = std::ranges::lower_bound(ends_, part * (parts_ / of));
    return static_cast<std::size_t>(found - ends_.begin());
  }

  /// Demands of the users of a buffer, or of one part of it; there between two of which at least
  /// one is a reduction. What reductions demand of each other, they do for all buffers that they reduce.
  void follow(BufferId buffer, const std::vector<User>& users, bool of_part) {
    reads_since_.clear();
    const User* last_change = nullptr;
    const auto demand = [&](const User& first, const User& second) {
      if (of_part && !first.reduces && !second.reduces) return;
      if (is_like_before_ && first.reduces && second.reduces) return;
      if (!precedence_.is_plain(first.step, second.step))
        demands_.push_back({first.step, second.step, buffer, first.changes, second.changes});
    };
    for (const User& user : users) {
      if (last_change != nullptr) demand(*last_change, user);
      if (!user.changes) {
        reads_since_.push_back(&user);
        continue;
      }
      for (const User* reader : reads_since_) demand(*reader, user);
      reads_since_.clear();
      last_change = &user;
    }
  }

  const Plan& plan_;
  const Changes& changes_;
  const Readers& readers_;
  const Precedence& precedence_;
  const std::uint64_t most_parts_;
  std::size_t looks_left_ = most_looks(plan_);
  std::vector<Demand> demands_;
  std::vector<User> users_;          ///< of the buffer that is looked at
  std::uint64_t parts_ = 1;          ///< common to all of its reductions
  std::vector<std::uint64_t> ends_;  ///< of its pieces, in parts; the first begins at 0
  std::vector<std::vector<User>> by_piece_;
  std::vector<User> reductions_, reductions_before_;  ///< of it, and of the one before
  bool is_like_before_ = false;                       ///< these are the same
  std::vector<const User*> reads_since_;
  std::vector<StepId> steps_, latest_;
  std::vector<LaneId> streams_;
};

/// Leaves one of those that ask the same of the same two steps, as of rounds that reduce many gradients together.
void drop_repeated(std::vector<Demand>& demands) {
  const auto pair = [](const Demand& it) { return std::pair(it.first, it.second); };
  std::ranges::stable_sort(demands, {}, pair);
  const auto rest = std::ranges::unique(demands, {}, pair);
  demands.erase(rest.begin(), rest.end());
}

/// Takes out the demands that a condition of the second step itself meets, however many it has.
void drop_direct(std::vector<Demand>& demands, const Plan& plan, const Precedence& precedence) {
  std::vector<std::uint32_t> order(demands.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, {}, [&](std::uint32_t d) { return demands[d].second; });
  IdSet<StepId> chains(plan.steps.size());
  std::vector<StepId> latest(plan.steps.size());  // by the first of a chain
  std::vector<bool> is_met(demands.size(), false);
  StepId loaded = kNoStep;
  const auto load = [&](StepId second) {
    chains.clear();
    for (const Before& it : precedence.before(second)) {
      if (!it.ended) continue;
      StepId& last = latest[index(precedence.chain(it.step))];
      last = chains.insert(precedence.chain(it.step)) ? it.step : std::max(last, it.step);
    }
    loaded = second;
  };
  for (const std::uint32_t d : order) {
    const Demand& it = demands[d];
    if (it.second != loaded) load(it.second);
    const StepId chain = precedence.chain(it.first);
    is_met[d] = chains.has(chain) && latest[index(chain)] >= it.first;
  }
  std::uint32_t d = 0;
  std::erase_if(demands, [&](const Demand&) { return is_met[d++]; });
}

/// Takes out demands that few steps before the second or after the first meet: most of those that are left, and each
/// of them far cheaper than a walk along all steps between them.
class NearDemands {
 public:
  NearDemands(const Plan& plan, const Precedence& precedence)
      : precedence_(precedence), seen_(plan.steps.size()) {}

  void drop(std::vector<Demand>& demands) {
    std::erase_if(demands, [&](const Demand& it) { return is_met_before(it) || is_met_after(it); });
  }

 private:
  /// Looks on from the first step; all that it comes to starts after that has ended.
  bool is_met_after(const Demand& demand) {
    const std::uint32_t until = precedence_.place(demand.second);
    started_.clear();
    seen_.clear();
    const auto add = [&](StepId step) {
      if (precedence_.place(step) <= until && seen_.insert(step)) started_.push_back(step);
    };
    std::size_t looked = 0;
    for (const StepId next : precedence_.after(demand.first)) {
      if (++looked > kNear) return false;
      const auto conditions = precedence_.before(next);
      if (std::ranges::any_of(
              conditions.first(std::min(conditions.size(), kPlain)),
              [&](const Before& it) { return it.ended && it.step == demand.first; }))
        add(next);
    }
    for (std::size_t i = 0; i < started_.size(); ++i) {
      if (precedence_.is_chained(started_[i], demand.second)) return true;
      for (const StepId next : precedence_.after(started_[i])) {
        if (++looked > kNear) return false;
        add(next);
      }
    }
    return false;
  }

  /// Looks back from the second step; all that it comes to has started before that.
  bool is_met_before(const Demand& demand) {
    const std::uint32_t from = precedence_.place(demand.first);
    started_.clear();
    seen_.clear();
    const auto add = [&](StepId step) {
      if (precedence_.place(step) >= from && seen_.insert(step)) started_.push_back(step);
    };
    add(demand.second);
    std::size_t looked = 0;
    for (std::size_t i = 0; i < started_.size(); ++i) {
      for (const Before& it : precedence_.before(started_[i])) {
        if (it.ended && precedence_.is_chained(demand.first, it.step)) return true;
        if (++looked > kNear) return false;
        add(it.step);
      }
      add(precedence_.chain(started_[i]));
    }
    return false;
  }

  const Precedence& precedence_;
  IdSet<StepId> seen_;
  std::vector<StepId> started_;
};

/// Takes out demands that other users of the same buffer meet: the rounds of a collective, of which each
/// waits for what the one before has done to the buffer. Like Search, but along these users alone.
class DemandsAlongBuffers {
 public:
  DemandsAlongBuffers(const Plan& plan, const Readers& readers, const Precedence& precedence)
      : readers_(readers),
        precedence_(precedence),
        looks_left_(most_looks(plan)),
        seen_(plan.steps.size()),
        chains_(plan.steps.size()),
        ended_(plan.steps.size()) {}

  void drop(std::vector<Demand>& demands) {
    std::ranges::stable_sort(demands, {},
                             [](const Demand& it) { return std::pair(it.buffer, it.first); });
    std::vector<Demand> left;
    for (auto begin = demands.begin(); begin != demands.end();) {
      if (begin->buffer != known_) {
        known_ = begin->buffer;
        gather_users(known_, readers_, precedence_, users_);
      }
      begin = answer({begin, demands.end()}, left);
    }
    demands = std::move(left);
  }

 private:
  using Demands = std::vector<Demand>::iterator;

  /// Those of the front that are of the same buffer and of kTargets first steps; the end of the front.
  Demands answer(std::ranges::subrange<Demands> demands, std::vector<Demand>& left) {
    std::vector<StepId> targets;
    auto end = demands.begin();
    for (; end != demands.end() && end->buffer == known_; ++end) {
      if (!targets.empty() && targets.back() == end->first) continue;
      if (targets.size() == kTargets) break;
      targets.push_back(end->first);
    }
    walk(targets);
    for (auto it = demands.begin(); it != end; ++it) {
      const auto bit = std::ranges::lower_bound(targets, it->first) - targets.begin();
      const bool is_met = seen_.has(it->second) && (ended_[index(it->second)] >> bit & 1) != 0;
      if (!is_met) left.push_back(*it);
    }
    return end;
  }

  /// Notes for each user of the buffer which targets have surely ended before it starts.
  void walk(std::span<const StepId> targets) {
    seen_.clear();
    chains_.clear();
    for (const StepId target : targets) chains_.insert(precedence_.chain(target));
    for (const StepId user : users_) {
      const auto before = precedence_.before(user);
      if (before.size() >= looks_left_) return;
      looks_left_ -= before.size() + 1;
      std::uint64_t mask = 0;
      for (const Before& it : before) {
        if (seen_.has(it.step)) mask |= ended_[index(it.step)];
        if (it.ended && chains_.has(precedence_.chain(it.step))) mask |= chained(targets, it.step);
      }
      seen_.insert(user);
      ended_[index(user)] = mask;
    }
  }

  /// The targets that have ended when a step has, as it is in their chain.
  [[nodiscard]] std::uint64_t chained(std::span<const StepId> targets, StepId step) const {
    std::uint64_t mask = 0;
    for (std::size_t t = 0; t < targets.size() && targets[t] <= step; ++t)
      if (precedence_.is_chained(targets[t], step)) mask |= std::uint64_t{1} << t;
    return mask;
  }

  const Readers& readers_;
  const Precedence& precedence_;
  std::size_t looks_left_;
  BufferId known_ = BufferId{kUnplaced};
  std::vector<StepId> users_;  ///< of that buffer, in order
  IdSet<StepId> seen_, chains_;
  std::vector<std::uint64_t> ended_;  ///< by step
};

/// Takes out demands of chains from which many are made, as the rounds of a ring make them: walks the steps in
/// order, for a few chains at a time, and notes for each step how much of every chain has ended before it starts.
class DemandsOfChains {
 public:
  DemandsOfChains(const Plan& plan, const Precedence& precedence, const OrderLimits& limits)
      : precedence_(precedence), most_(limits.walked), slot_(plan.steps.size(), kNoSlot) {}

  void drop(std::vector<Demand>& demands) {
    const auto chain_of = [&](const Demand& it) { return precedence_.chain(it.first); };
    std::ranges::stable_sort(demands, {}, [&](const Demand& it) {
      return std::pair(precedence_.place(chain_of(it)), precedence_.place(it.first));
    });
    std::vector<Demand> left;
    for (auto begin = demands.begin(); begin != demands.end();) {
      const auto end = std::find_if(
          begin, demands.end(), [&](const Demand& it) { return chain_of(it) != chain_of(*begin); });
      if (end - begin < kMany || walked_ > most_)
        left.insert(left.end(), begin, end);
      else
        take({begin, end}, left);
      begin = end;
    }
    answer(left);
    demands = std::move(left);
  }

 private:
  static constexpr std::size_t kChains = 16;
  /// Demands of a chain from which on it is worth while: Search answers kTargets at a time.
  static constexpr std::ptrdiff_t kMany = kTargets / kChains * 2;
  static constexpr std::uint8_t kNoSlot = 0xFF;
  /// By chain: behind the last of its steps that has surely ended; 0 where none has.
  using Ends = std::array<std::uint32_t, kChains>;

  /// All of one chain.
  void take(std::span<const Demand> of_chain, std::vector<Demand>& left) {
    const StepId chain = precedence_.chain(of_chain.front().first);
    slot_[index(chain)] = static_cast<std::uint8_t>(chains_.size());
    chains_.push_back(chain);
    taken_.insert(taken_.end(), of_chain.begin(), of_chain.end());
    if (chains_.size() == kChains) answer(left);
  }

  void answer(std::vector<Demand>& left) {
    if (taken_.empty()) return;
    std::uint32_t from = kUnplaced, last = 0;
    for (const Demand& it : taken_) {
      from = std::min(from, precedence_.place(it.first));
      last = std::max(last, precedence_.place(it.second));
    }
    walk(from, last);
    for (const Demand& it : taken_) {
      const Ends& ends = ends_[precedence_.place(it.second) - from];
      if (ends[slot_[index(precedence_.chain(it.first))]] <= index(it.first)) left.push_back(it);
    }
    for (const StepId chain : chains_) slot_[index(chain)] = kNoSlot;
    chains_.clear();
    taken_.clear();
  }

  /// Nothing before `from` in the order comes after the first step of a demand.
  void walk(std::uint32_t from, std::uint32_t last) {
    ends_.resize(std::max<std::size_t>(ends_.size(), last - from + std::size_t{1}));
    for (std::uint32_t place = from; place <= last; ++place) {
      Ends ends{};
      const auto before = precedence_.before(precedence_.order()[place]);
      walked_ += before.size() + 1;
      for (const Before& it : before) {
        const std::uint32_t at = precedence_.place(it.step);
        if (at < from) continue;
        const Ends& its = ends_[at - from];
        for (std::size_t c = 0; c < kChains; ++c) ends[c] = std::max(ends[c], its[c]);
        const std::uint8_t slot = slot_[index(precedence_.chain(it.step))];
        if (it.ended && slot != kNoSlot)
          ends[slot] = std::max(ends[slot], static_cast<std::uint32_t>(it.step) + 1);
      }
      ends_[place - from] = ends;
    }
  }

  const Precedence& precedence_;
  const std::size_t most_;
  std::vector<std::uint8_t> slot_;  ///< by the first step of a chain
  std::vector<StepId> chains_;      ///< that have one
  std::vector<Demand> taken_;       ///< theirs
  std::vector<Ends> ends_;          ///< by place, from the first that is walked on
  std::size_t walked_ = 0;
};

/// Answers up to kTargets demands at a time: walks the steps in order and notes for each, in a
/// mask, which of the targets have ended before it starts.
class Search {
 public:
  Search(const Plan& plan, const Precedence& precedence, const OrderLimits& limits)
      : precedence_(precedence),
        most_(limits.walked),
        ended_(plan.steps.size()),
        bit_(plan.steps.size()) {}

  /// Whether there has been more walking than a plan may ask for.
  [[nodiscard]] bool is_over() const { return walked_ > most_; }

  /// Takes those that do not hold out of the front of `demands`, and the front off.
  void answer(std::span<const Demand>& demands, std::vector<Demand>& broken) {
    std::vector<StepId> targets;
    std::size_t taken = 0;
    std::uint32_t last = 0;
    for (; taken < demands.size(); ++taken) {
      const Demand& it = demands[taken];
      if (bit_[index(it.first)] == 0) {
        if (targets.size() == kTargets) break;
        bit_[index(it.first)] = std::uint64_t{1} << targets.size();
        targets.push_back(it.first);
      }
      last = std::max(last, precedence_.place(it.second));
    }
    walk(precedence_.place(demands.front().first), last);
    for (const Demand& it : demands.first(taken))
      if ((ended_[index(it.second)] & bit_[index(it.first)]) == 0) broken.push_back(it);
    for (const StepId target : targets) bit_[index(target)] = 0;
    demands = demands.subspan(taken);
  }

 private:
  /// Nothing before `from` in the order comes after a target.
  void walk(std::uint32_t from, std::uint32_t last) {
    for (std::uint32_t place = from; place <= last; ++place) {
      const StepId step = precedence_.order()[place];
      std::uint64_t mask = 0;
      const auto before = precedence_.before(step);
      walked_ += before.size() + 1;
      for (const Before& it : before) {
        if (precedence_.place(it.step) < from) continue;
        mask |= ended_[index(it.step)] | (it.ended ? bit_[index(it.step)] : 0);
      }
      ended_[index(step)] = mask;
    }
  }

  const Precedence& precedence_;
  const std::size_t most_;
  std::vector<std::uint64_t> ended_, bit_;  ///< by step
  std::size_t walked_ = 0;
};

}  // namespace

std::vector<Unordered> unordered_changes(const Plan& plan, const Readers& readers,
                                         const Workload& workload, const Platform& platform,
                                         std::size_t most, const OrderLimits& limits) {
  const Changes changes = across_lanes(plan, changes_of(plan, workload, platform), readers);
  if (changes.empty()) return {};
  const Precedence precedence(plan, readers);
  std::vector<Demand> demands = OpenDemands(plan, changes, readers, precedence, limits).run();
  drop_repeated(demands);
  drop_direct(demands, plan, precedence);
  NearDemands(plan, precedence).drop(demands);
  DemandsAlongBuffers(plan, readers, precedence).drop(demands);
  DemandsOfChains(plan, precedence, limits).drop(demands);
  std::ranges::stable_sort(demands, {}, [&](const Demand& d) { return precedence.place(d.first); });

  std::vector<Demand> broken;
  std::span<const Demand> left = demands;
  if (!left.empty())
    for (Search search(plan, precedence, limits); !left.empty() && broken.size() < most;) {
      search.answer(left, broken);
      if (search.is_over()) break;
    }

  std::vector<Unordered> found;
  using Doubt = Unordered::Doubt;
  const auto add = [&](const Demand& it, Doubt doubt) {
    if (it.first < it.second)
      found.push_back({it.buffer, it.first, it.second, it.first_changes, it.second_changes, doubt});
    else
      found.push_back({it.buffer, it.second, it.first, it.second_changes, it.first_changes, doubt});
  };
  for (const Demand& it : broken) add(it, is_of_a_part(it, plan) ? Doubt::none : Doubt::parts);
  if (broken.size() < most)
    for (const Demand& it : left.first(std::min(left.size(), most - broken.size())))
      add(it, Doubt::order);
  std::ranges::stable_sort(found, {}, [](const Unordered& it) { return it.first; });
  if (found.size() > most) found.resize(most);
  return found;
}

}  // namespace plimsoll
