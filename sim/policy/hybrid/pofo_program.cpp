#include "policy/hybrid/pofo_program.hpp"

#include "base/dense_id.hpp"
#include "policy/offload/model/fluid_amount.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace plimsoll {
namespace {

std::size_t most_states(std::size_t stages) {
  constexpr std::size_t kShort = 128;
  if (stages <= kShort) return kPofoStates;
  return std::max<std::size_t>(1, kPofoStates * kShort * kShort / (stages * stages));
}

/// Whole bytes that `rate` moves in `time`.
Bytes moved_in(Time time, ByteRate rate) {
  constexpr FluidAmount kFar = FluidAmount{1} << 60;
  return Bytes{static_cast<std::int64_t>(std::min(fluid_moved(time, rate) / kFluidByte, kFar))};
}

/// What takes so long is no choice: sums of a few such times stay in range.
constexpr Time kLongest{std::int64_t{1} << 59};

/// How long `bytes` take, at most kLongest.
Time time_of(Bytes bytes, ByteRate rate) {
  return bytes > moved_in(kLongest, rate) ? kLongest : transfer_time(bytes, rate);
}

Bytes positive(Bytes bytes) {
  return std::max(bytes, Bytes{});
}

struct State {
  Bytes kept, out, in;
  Time cost;
  Time least;                  ///< of any whole that begins so, beyond all forwards and backwards
  std::int64_t units = 0;      ///< of the block before, where it runs again
  std::uint32_t from = kNone;  ///< the stage at which that block begins
  std::uint32_t parent = 0;    ///< in the states before that stage
  bool after_keep = false;     ///< the block before kept
  bool moved = false;          ///< its input
};

auto order_of(const State& s) {
  return std::tie(s.least, s.cost, s.kept, s.out, s.in, s.after_keep, s.moved, s.from, s.parent);
}

bool is_no_worse(const State& a, const State& b) {
  return a.kept <= b.kept && a.out <= b.out && a.in <= b.in && a.cost <= b.cost &&
         a.after_keep <= b.after_keep;
}

/// The bare forwards of a segment that begins at a given stage.
struct BareRun {
  Time forward, backward;
  Bytes sent;      ///< in all forwards
  Bytes need;      ///< the most that one of them needs
  Bytes short_of;  ///< the most that one of them needs beyond what has left before it
};

class CutProgram {
 public:
  CutProgram(const ChainCosts& costs, const PofoLink& link, const PofoInner& inner,
             std::int64_t slots, std::size_t count)
      : costs_(costs),
        link_(link),
        inner_(inner),
        stages_(static_cast<std::uint32_t>(costs.stages.size())),
        cell_(std::max<std::int64_t>(1, inner.available().count() / slots)),
        count_(count),
        most_states_(most_states(stages_)),
        backward_need_(stages_),
        spent_(stages_ + 1),
        to_send_(stages_ + 1),
        to_fetch_(stages_ + 1),
        layers_(stages_ + 1) {
    Bytes lasting;
    for (std::uint32_t s = stages_; s-- > 0;) {
      const StageCosts& stage = costs.stages[s];
      lasting += stage.lasting;
      const Bytes before = s > 0 ? costs.stages[s - 1].gradient : costs.input_gradient;
      backward_need_[s] =
          stage.saved + stage.gradient + before + stage.backward_workspace + lasting;
    }
    for (std::uint32_t s = 0; s < stages_; ++s)
      spent_[s + 1] = spent_[s] + costs.stages[s].forward + costs.stages[s].backward;
    Time forward, backward;
    for (std::uint32_t s = stages_; s-- > 0;) {
      to_send_[s] = moved_in(forward += costs.stages[s].forward, link.out);
      to_fetch_[s] = moved_in(backward += costs.stages[s].backward, link.in);
    }
    const std::int64_t again = inner.recomputed(0, stages_ - 1, inner.units(inner.available()));
    if (again < kNever) most_more_ = Time{again};
  }

  std::vector<PofoCut> run() {
    layers_[0].push_back(State{});
    for (std::uint32_t s = 0; s < stages_; ++s) {
      thin_out(layers_[s]);
      find_runs(s);
      for (std::uint32_t p = 0; p < layers_[s].size(); ++p) {
        keep(s, p);
        run_again(s, p);
      }
    }
    return finish();
  }

 private:
  [[nodiscard]] Bytes input(std::uint32_t s, const State& state) const {
    if (s == 0) return Bytes{};
    const StageCosts& before = costs_.stages[s - 1];
    return state.after_keep ? before.saved : before.output;
  }

  void keep(std::uint32_t s, std::uint32_t p) {
    const State state = layers_[s][p];
    const StageCosts& stage = costs_.stages[s];
    const Bytes room = inner_.available() - state.kept - input(s, state);
    const Bytes need = stage.saved + stage.keep_workspace;
    if (need > room || backward_need_[s] > room) return;
    const Bytes wait_out = positive(state.out + need - room);
    const Bytes wait_in = positive(state.in + backward_need_[s] - room);
    State after = state;
    after.cost +=
        stage.forward + stage.backward + time_of(wait_out, link_.out) + time_of(wait_in, link_.in);
    after.in = positive(state.in - moved_in(stage.backward, link_.in) - wait_in);
    after.after_keep = true;
    after.units = 0;
    arrive(s, p, s, after, moved_in(stage.forward, link_.out) + wait_out);
  }

  void find_runs(std::uint32_t s) {
    runs_.clear();
    BareRun run;
    for (std::uint32_t t = s; t + 1 < stages_; ++t) {
      const StageCosts& stage = costs_.stages[t];
      const Bytes need =
          stage.output + stage.bare_workspace + (t > s ? costs_.stages[t - 1].output : Bytes{});
      run.need = std::max(run.need, need);
      run.short_of = std::max(run.short_of, positive(need - run.sent));
      run.forward += stage.forward;
      run.backward += stage.backward;
      run.sent = moved_in(run.forward, link_.out);
      runs_.push_back(run);
    }
  }

  void run_again(std::uint32_t s, std::uint32_t p) {
    const State state = layers_[s][p];
    const Bytes room = inner_.available() - state.kept - input(s, state);
    if (room < Bytes{}) return;
    const Time back = time_of(state.in, link_.in);
    for (std::uint32_t t = s; t < s + runs_.size(); ++t) {
      costs_.work.add(std::int64_t{1});
      const BareRun& run = runs_[t - s];
      // What this costs beyond all forwards and backwards only grows with t.
      if (run.need > room || state.cost - spent_[s] + run.forward > most_more_) return;
      State after = state;
      const auto again = time_again(s, t, room, state.in, back, after.units);
      if (!again) continue;
      const Bytes wait = positive(run.short_of + state.out - room);
      after.cost += run.forward + time_of(wait, link_.out) + *again;
      after.in = Bytes{};
      after.after_keep = false;
      arrive(s, p, t, after, run.sent + wait);
    }
  }

  /// T of a segment, and the units in which it is had.
  std::optional<Time> time_again(std::uint32_t s, std::uint32_t t, Bytes room, Bytes in, Time back,
                                 std::int64_t& units) const {
    const Time once = runs_[t - s].forward + runs_[t - s].backward;
    units = inner_.units(room);
    const std::int64_t all = inner_.recomputed(s, t, units);
    if (once + Time{all} >= kLongest) return std::nullopt;
    const Time alone = once + Time{all};
    if (in == Bytes{}) return alone;
    const Time mixed{((std::max(alone, back) + alone + back).count() + 1) / 2};
    if (room < in) return mixed;
    const std::int64_t rest = inner_.units(room - in);
    const std::int64_t less = inner_.recomputed(s, t, rest);
    if (less == kNever || std::max(once + Time{less}, back) > mixed) return mixed;
    units = rest;
    return std::max(once + Time{less}, back);
  }

  /// The states after block s..t, whose input stays or moves.
  void arrive(std::uint32_t s, std::uint32_t p, std::uint32_t t, State after, Bytes sent) {
    const Bytes size = input(s, layers_[s][p]);
    after.from = s;
    after.parent = p;
    const Bytes backlog = after.out;
    if (s > 0 && t + 1 < stages_ && size > Bytes{}) {
      State moved = after;
      moved.out = positive(backlog + size - sent);
      moved.in += size;
      moved.moved = true;
      add(t + 1, moved);
    }
    after.out = positive(backlog - sent);
    after.kept += size;
    after.moved = false;
    add(t + 1, after);
  }

  void add(std::uint32_t s, State& state) {
    if (state.kept + std::max(state.out, state.in) > inner_.available()) return;
    if (state.cost >= kLongest) return;
    state.least = state.cost - spent_[s] + time_of(positive(state.out - to_send_[s]), link_.out) +
                  time_of(positive(state.in - to_fetch_[s]), link_.in);
    if (state.least > most_more_) return;
    layers_[s].push_back(state);
    if (layers_[s].size() >= 8 * most_states_) thin_out(layers_[s]);
  }

  void thin_out(std::vector<State>& states) const {
    std::int64_t cell = cell_;
    keep_one_a_cell(states, cell);
    std::vector<State> held;
    for (const State& state : states) {
      costs_.work.add(held.size() + 1);
      if (std::ranges::none_of(held, [&](const State& other) { return is_no_worse(other, state); }))
        held.push_back(state);
    }
    states = std::move(held);
    while (states.size() > most_states_) keep_one_a_cell(states, cell *= 2);
  }

  /// The first of each; leaves the states in order.
  static void keep_one_a_cell(std::vector<State>& states, std::int64_t cell) {
    const auto comes_first = [](const State& a, const State& b) {
      return order_of(a) < order_of(b);
    };
    std::vector<std::pair<std::uint64_t, std::uint32_t>> cells;
    cells.reserve(states.size());
    for (std::uint32_t i = 0; i < states.size(); ++i)
      cells.emplace_back(cell_of(states[i], cell), i);
    std::ranges::sort(cells);
    std::vector<State> first;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const State& state = states[cells[i].second];
      if (i == 0 || cells[i - 1].first != cells[i].first)
        first.push_back(state);
      else if (comes_first(state, first.back()))
        first.back() = state;
    }
    std::ranges::sort(first, comes_first);
    states = std::move(first);
  }

  /// The room has less than 2 * kMostPofoSlots cells.
  static std::uint64_t cell_of(const State& state, std::int64_t cell) {
    constexpr int kBits = 21;
    static_assert(2 * kMostPofoSlots <= std::int64_t{1} << kBits);
    const auto part = [&](Bytes bytes) { return static_cast<std::uint64_t>(bytes.count() / cell); };
    return ((part(state.kept) << kBits | part(state.out)) << kBits | part(state.in)) << 1 |
           (state.after_keep ? 1 : 0);
  }

  std::vector<PofoCut> finish() {
    std::vector<State>& last = layers_[stages_];
    std::ranges::sort(last,
                      [](const State& a, const State& b) { return order_of(a) < order_of(b); });
    std::vector<PofoCut> best;
    for (const State& state : last) {
      if (best.size() == count_) break;
      best.push_back({blocks_of(state), spent_[stages_] + state.least + costs_.optimizer});
    }
    return best;
  }

  [[nodiscard]] std::vector<PofoBlock> blocks_of(const State& last) const {
    std::vector<PofoBlock> blocks;
    std::uint32_t end = stages_;
    for (const State* it = &last; it->from != kNone; it = &layers_[it->from][it->parent]) {
      blocks.push_back({it->from, end - 1, !it->after_keep, it->moved, it->units});
      end = it->from;
    }
    std::ranges::reverse(blocks);
    return blocks;
  }

  const ChainCosts& costs_;
  const PofoLink link_;
  const PofoInner& inner_;
  const std::uint32_t stages_;
  const std::int64_t cell_;
  const std::size_t count_, most_states_;
  std::vector<Bytes> backward_need_;        ///< by stage, beyond what is resident
  std::vector<Time> spent_;                 ///< forwards and backwards of the stages before
  std::vector<Bytes> to_send_, to_fetch_;   ///< what can move during those of all others
  Time most_more_ = Time::unlimited();      ///< beyond all of them, of recomputation alone
  std::vector<BareRun> runs_;               ///< by last stage, of the stage at hand
  std::vector<std::vector<State>> layers_;  ///< before each stage
};

}  // namespace

std::vector<PofoCut> best_cuts(const ChainCosts& costs, const PofoLink& link,
                               const PofoInner& inner, std::int64_t slots, std::size_t count) {
  return CutProgram(costs, link, inner, slots, count).run();
}

}  // namespace plimsoll
