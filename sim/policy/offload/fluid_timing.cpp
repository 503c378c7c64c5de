#include "policy/offload/fluid_timing.hpp"

#include "base/dense_id.hpp"
#include "engine/wide.hpp"

#include <algorithm>
#include <tuple>

namespace plimsoll {
namespace {

__extension__ using Signed128 = __int128;

/// 1e-12 B: what one byte a second moves in 1 ps.
constexpr Signed128 kByte = 1'000'000'000'000;
constexpr Signed128 kFar = Signed128{1} << 120;

/// How long `amount` takes at `rate`, and what `rate` moves in a time.
Time time_of(Signed128 amount, ByteRate rate) {
  if (amount <= 0 || rate.is_unlimited()) return Time{};
  const Signed128 ps = (amount + rate.count() - 1) / rate.count();
  return Time{static_cast<std::int64_t>(ps)};
}
Signed128 amount_in(Time time, ByteRate rate) {
  return rate.is_unlimited() ? kFar : static_cast<Signed128>(rate.count()) * time.count();
}

struct State {
  Signed128 kept = 0, out = 0, in = 0;
  Time cost;
  std::uint32_t parent = kNone;  ///< in the states before the stage before
  bool moves = false;            ///< the stage before
};

bool is_no_worse(const State& a, const State& b) {
  return a.kept <= b.kept && a.out <= b.out && a.in <= b.in && a.cost <= b.cost;
}

auto order_of(const State& s) {
  return std::tie(s.cost, s.kept, s.out, s.in, s.moves, s.parent);
}

class TimingProgram {
 public:
  TimingProgram(const OffloadModel& model, std::size_t count)
      : model_(model),
        count_(count),
        budget_(model.budget.is_unlimited() ? kFar : model.budget.count() * kByte) {}

  std::vector<TimedSet> run() {
    const std::size_t stages = model_.stages.size();
    layers_.push_back({State{}});
    for (const OffloadStage& stage : model_.stages) lasting_ += stage.lasting;
    for (std::size_t s = 0; s < stages; ++s) {
      std::vector<State> next;
      for (std::uint32_t p = 0; p < layers_.back().size(); ++p) extend(s, p, next);
      lasting_ -= model_.stages[s].lasting;
      thin_out(next);
      layers_.push_back(std::move(next));
    }
    return finish();
  }

 private:
  /// Runs stage `s` from state `p`, with its input kept or moved.
  void extend(std::size_t s, std::uint32_t p, std::vector<State>& next) {
    const State& state = layers_.back()[p];
    const OffloadStage& stage = model_.stages[s];
    const Signed128 input = s > 0 ? model_.stages[s - 1].moved.count() * kByte : 0;
    const Signed128 own = stage.moved.count();
    const Bytes before = s > 0 ? model_.stages[s - 1].gradient : model_.input_gradient;
    const Bytes beside_backward =
        model_.resident + stage.gradient + before + stage.backward_workspace + lasting_;
    const Signed128 room = budget_ - state.kept - input;
    const Signed128 forward = (own + model_.beside_forward(s).count()) * kByte;
    const Signed128 backward = (own + beside_backward.count()) * kByte;
    if (forward > room || backward > room) return;

    const Signed128 wait_out = std::max<Signed128>(0, state.out + forward - room);
    const Signed128 wait_in = std::max<Signed128>(0, state.in + backward - room);
    State after = state;
    after.cost += stage.forward + stage.backward + time_of(wait_out, model_.out_rate) +
                  time_of(wait_in, model_.in_rate);
    const Signed128 sent = amount_in(stage.forward, model_.out_rate) + wait_out;
    const Signed128 fetched = amount_in(stage.backward, model_.in_rate) + wait_in;
    after.parent = p;
    after.in = std::max<Signed128>(0, state.in - fetched);
    if (s > 0 && s - 1 < model_.candidates && input > 0) {
      State moved = after;
      moved.out = std::max<Signed128>(0, state.out + input - sent);
      moved.in += input;
      moved.moves = true;
      keep_if_finite(moved, next);
    }
    after.out = std::max<Signed128>(0, state.out - sent);
    after.kept += input;
    after.moves = false;
    keep_if_finite(after, next);
  }

  void keep_if_finite(const State& state, std::vector<State>& next) const {
    if (state.kept + std::max(state.out, state.in) <= budget_) next.push_back(state);
  }

  void thin_out(std::vector<State>& states) const {
    if (states.size() <= kTimingStates) return;
    std::ranges::sort(states,
                      [](const State& a, const State& b) { return order_of(a) < order_of(b); });
    std::vector<State> kept;
    for (const State& state : states) {
      std::size_t better = 0;
      for (const State& other : kept) better += is_no_worse(other, state);
      if (better < count_) kept.push_back(state);
    }
    states = std::move(kept);
    if (states.size() > kTimingStates) keep_one_a_cell(states);
  }

  /// The states are sorted by cost, so that the first of a cell is its best.
  static void keep_one_a_cell(std::vector<State>& states) {
    constexpr int kSlots = 16;
    static_assert(kSlots * kSlots == kTimingStates);
    Signed128 most_kept = 1, most_moving = 1;
    for (const State& s : states) {
      most_kept = std::max(most_kept, s.kept + 1);
      most_moving = std::max(most_moving, s.out + s.in + 1);
    }
    std::vector<bool> taken(kTimingStates, false);
    std::erase_if(states, [&](const State& s) {
      const auto slot =
          s.kept / (most_kept / kSlots + 1) * kSlots + (s.out + s.in) / (most_moving / kSlots + 1);
      const auto cell = static_cast<std::size_t>(slot);
      if (taken[cell]) return true;
      taken[cell] = true;
      return false;
    });
  }

  std::vector<TimedSet> finish() {
    std::vector<State>& last = layers_.back();
    for (State& state : last)
      state.cost += time_of(state.out, model_.out_rate) + time_of(state.in, model_.in_rate);
    std::vector<std::uint32_t> by_cost(last.size());
    for (std::uint32_t i = 0; i < by_cost.size(); ++i) by_cost[i] = i;
    // What is kept is not moved: of equal costs the one that keeps more.
    std::ranges::sort(by_cost, {},
                      [&](std::uint32_t i) { return std::tuple(last[i].cost, -last[i].kept, i); });
    std::vector<TimedSet> best;
    for (const std::uint32_t i : by_cost) {
      if (best.size() == count_) break;
      best.push_back({set_of(i), last[i].cost + model_.optimizer});
    }
    return best;
  }

  [[nodiscard]] OffloadSet set_of(std::uint32_t state) const {
    OffloadSet set(model_.stages.size(), false);
    for (std::size_t s = layers_.size() - 1; s > 0; --s) {
      const State& it = layers_[s][state];
      if (s >= 2) set[s - 2] = it.moves;
      state = it.parent;
    }
    return set;
  }

  const OffloadModel& model_;
  const std::size_t count_;
  const Signed128 budget_;
  Bytes lasting_;                           ///< of this stage and those behind it
  std::vector<std::vector<State>> layers_;  ///< before each stage
};

}  // namespace

std::vector<TimedSet> best_sets(const OffloadModel& model, std::size_t count) {
  return TimingProgram(model, count).run();
}

}  // namespace plimsoll
