#include "policy/hybrid/pofo_program.hpp"

#include "base/dense_id.hpp"
#include "policy/offload/model/fluid_amount.hpp"

#include <algorithm>
#include <bit>
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

/// An odd number that spreads numbers over all bits: 2^64 over the golden ratio.
constexpr std::uint64_t kCellSpread = 0x9e3779b97f4a7c15;

/// What takes so long is no choice: sums of a few such times stay in range.
constexpr Time kLongest{std::int64_t{1} << 59};

/// One way of the link.
class LinkWay {
 public:
  explicit LinkWay(ByteRate rate) : rate_(rate), most_(moved_in(kLongest, rate)) {}

  [[nodiscard]] Bytes moved(Time time) const { return moved_in(time, rate_); }
  /// How long `bytes` take, at most kLongest.
  [[nodiscard]] Time time_of(Bytes bytes) const {
    if (bytes == Bytes{}) return Time{};
    return bytes > most_ ? kLongest : transfer_time(bytes, rate_);
  }

 private:
  const ByteRate rate_;
  const Bytes most_;
};

Bytes positive(Bytes bytes) {
  return std::max(bytes, Bytes{});
}

/// Bits of one side of a cell's number: the room has less than 2 * kMostPofoSlots cells.
constexpr int kCellSideBits = 21;
static_assert(2 * kMostPofoSlots <= std::int64_t{1} << kCellSideBits);
/// The lowest bit of each side.
constexpr std::uint64_t kCellSides =
    (std::uint64_t{1} << 2 * kCellSideBits | std::uint64_t{1} << kCellSideBits | 1) << 1;

struct State {
  Bytes kept, out, in;
  Time cost;
  Time again;                  ///< of forwards beyond the first
  Time least;                  ///< of any whole that begins so, beyond all forwards and backwards
  std::uint64_t cell = 0;      ///< of the grid
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
             std::int64_t slots, std::size_t count, Time most_again)
      : costs_(costs),
        out_(link.out),
        in_(link.in),
        inner_(inner),
        stages_(static_cast<std::uint32_t>(costs.stages.size())),
        cell_(std::max<std::int64_t>(1, inner.available().count() / slots)),
        count_(count),
        most_again_(most_again),
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
      to_send_[s] = out_.moved(forward += costs.stages[s].forward);
      to_fetch_[s] = in_.moved(backward += costs.stages[s].backward);
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
    after.cost += stage.forward + stage.backward + out_.time_of(wait_out) + in_.time_of(wait_in);
    after.in = positive(state.in - in_.moved(stage.backward) - wait_in);
    after.after_keep = true;
    after.units = 0;
    arrive(s, p, s, after, out_.moved(stage.forward) + wait_out);
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
      run.sent = out_.moved(run.forward);
      runs_.push_back(run);
    }
  }

  void run_again(std::uint32_t s, std::uint32_t p) {
    const State state = layers_[s][p];
    const Bytes room = inner_.available() - state.kept - input(s, state);
    if (room < Bytes{}) return;
    const Returning in{.bytes = state.in,
                       .time = in_.time_of(state.in),
                       .units = inner_.units(room),
                       .units_beside = room < state.in ? -1 : inner_.units(room - state.in)};
    for (std::uint32_t t = s; t < s + runs_.size(); ++t) {
      costs_.work.add(std::int64_t{1});
      const BareRun& run = runs_[t - s];
      // What this costs beyond all forwards and backwards only grows with t.
      if (run.need > room || state.cost - spent_[s] + run.forward > most_more_) return;
      State after = state;
      const auto again = time_again(s, t, in, after.units);
      if (!again) continue;
      const Bytes wait = positive(run.short_of + state.out - room);
      after.cost += run.forward + out_.time_of(wait) + *again;
      after.again += run.forward + Time{inner_.recomputed(s, t, after.units)};
      if (after.again >= most_again_) continue;
      after.in = Bytes{};
      after.after_keep = false;
      arrive(s, p, t, after, run.sent + wait);
    }
  }

  /// What must be back before a segment has run again.
  struct Returning {
    Bytes bytes;
    Time time;           ///< that it takes on the link
    std::int64_t units;  ///< that the segment has where what is back comes after it
    /// And where it keeps room for all of that; below 0: there is not so much.
    std::int64_t units_beside;
  };

  /// T of a segment, and the units in which it is had.
  std::optional<Time> time_again(std::uint32_t s, std::uint32_t t, const Returning& in,
                                 std::int64_t& units) const {
    const Time once = runs_[t - s].forward + runs_[t - s].backward;
    units = in.units;
    const std::int64_t all = inner_.recomputed(s, t, units);
    if (once + Time{all} >= kLongest) return std::nullopt;
    const Time alone = once + Time{all};
    if (in.bytes == Bytes{}) return alone;
    const Time mixed{((std::max(alone, in.time) + alone + in.time).count() + 1) / 2};
    if (in.units_beside < 0) return mixed;
    const std::int64_t less = inner_.recomputed(s, t, in.units_beside);
    if (less == kNever || std::max(once + Time{less}, in.time) > mixed) return mixed;
    units = in.units_beside;
    return std::max(once + Time{less}, in.time);
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
    state.least = state.cost - spent_[s] + out_.time_of(positive(state.out - to_send_[s])) +
                  in_.time_of(positive(state.in - to_fetch_[s]));
    if (state.least > most_more_) return;
    state.cell = cell_of(state);
    layers_[s].push_back(state);
    if (layers_[s].size() >= 8 * most_states_) thin_out(layers_[s]);
  }

  void thin_out(std::vector<State>& states) {
    int doublings = 0;
    keep_one_a_cell(states, doublings);
    std::vector<State> held;
    for (const State& state : states) {
      costs_.work.add(held.size() + 1);
      if (std::ranges::none_of(held, [&](const State& other) { return is_no_worse(other, state); }))
        held.push_back(state);
    }
    states = std::move(held);
    while (states.size() > most_states_) keep_one_a_cell(states, ++doublings);
  }

  /// The first of each, of cells whose sides are so often doubled; leaves the states in order.
  void keep_one_a_cell(std::vector<State>& states, int doublings) {
    const std::uint64_t mask = ~(((std::uint64_t{1} << doublings) - 1) * kCellSides);
    const auto comes_first = [](const State& a, const State& b) {
      return order_of(a) < order_of(b);
    };
    cells_.assign(std::bit_ceil(2 * states.size() + 1), kNone);
    std::vector<State> first;
    for (const State& state : states) {
      const std::uint64_t number = state.cell & mask;
      std::size_t at = number * kCellSpread >> 32;
      for (;; ++at) {
        std::uint32_t& it = cells_[at & (cells_.size() - 1)];
        if (it == kNone) {
          it = static_cast<std::uint32_t>(first.size());
          first.push_back(state);
        } else if ((first[it].cell & mask) != number) {
          continue;
        } else if (comes_first(state, first[it])) {
          first[it] = state;
        }
        break;
      }
    }
    std::ranges::sort(first, comes_first);
    states = std::move(first);
  }

  [[nodiscard]] std::uint64_t cell_of(const State& state) const {
    const auto side = [&](Bytes bytes) {
      return static_cast<std::uint64_t>(bytes.count() / cell_);
    };
    return ((side(state.kept) << kCellSideBits | side(state.out)) << kCellSideBits | side(state.in))
               << 1 |
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
  const LinkWay out_, in_;
  const PofoInner& inner_;
  const std::uint32_t stages_;
  const std::int64_t cell_;
  const std::size_t count_;
  const Time most_again_;
  const std::size_t most_states_;
  std::vector<Bytes> backward_need_;        ///< by stage, beyond what is resident
  std::vector<Time> spent_;                 ///< forwards and backwards of the stages before
  std::vector<Bytes> to_send_, to_fetch_;   ///< what can move during those of all others
  Time most_more_ = Time::unlimited();      ///< beyond all of them, of recomputation alone
  std::vector<BareRun> runs_;               ///< by last stage, of the stage at hand
  std::vector<std::vector<State>> layers_;  ///< before each stage
  /// Of keep_one_a_cell(): the first state of each cell, by its hash.
  std::vector<std::uint32_t> cells_;
};

}  // namespace

std::vector<PofoCut> best_cuts(const ChainCosts& costs, const PofoLink& link,
                               const PofoInner& inner, std::int64_t slots, std::size_t count,
                               Time most_again) {
  return CutProgram(costs, link, inner, slots, count, most_again).run();
}

}  // namespace plimsoll
