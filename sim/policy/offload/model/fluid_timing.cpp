#include "policy/offload/model/fluid_timing.hpp"

#include "base/dense_id.hpp"
#include "policy/offload/model/fluid_amount.hpp"

#include <algorithm>
#include <tuple>

namespace plimsoll {
namespace {

/// How long `amount` takes at `rate`.
Time time_of(FluidAmount amount, ByteRate rate) {
  if (amount <= 0 || rate.is_unlimited()) return Time{};
  const FluidAmount ps = (amount + rate.count() - 1) / rate.count();
  return Time{static_cast<std::int64_t>(ps)};
}

struct State {
  FluidAmount kept = 0, out = 0, in = 0;
  FluidAmount stored = 0;  ///< all that moves, where the storage has no room for everything
  Time cost;
  std::uint32_t parent = kNone;  ///< in the states before the stage before
  bool moves = false;            ///< the stage before
};

bool is_no_worse(const State& a, const State& b) {
  return a.kept <= b.kept && a.out <= b.out && a.in <= b.in && a.stored <= b.stored &&
         a.cost <= b.cost;
}

auto order_of(const State& s) {
  return std::tie(s.cost, s.kept, s.out, s.in, s.stored, s.moves, s.parent);
}

class TimingProgram {
 public:
  TimingProgram(const OffloadModel& model, std::size_t count)
      : model_(model),
        count_(count),
        budget_(fluid(model.budget)),
        storage_(fluid(model.storage)) {}

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
    const FluidAmount input = s > 0 ? fluid(model_.stages[s - 1].moved) : 0;
    const Bytes before = s > 0 ? model_.stages[s - 1].gradient : model_.input_gradient;
    const Bytes beside_backward =
        model_.resident + stage.gradient + before + stage.backward_workspace + lasting_;
    const FluidAmount room = budget_ - state.kept - input;
    const FluidAmount forward = fluid(stage.moved + model_.beside_forward(s));
    const FluidAmount backward = fluid(stage.moved + beside_backward);
    if (forward > room || backward > room) return;

    const FluidAmount wait_out = std::max<FluidAmount>(0, state.out + forward - room);
    const FluidAmount wait_in = std::max<FluidAmount>(0, state.in + backward - room);
    State after = state;
    after.cost += stage.forward + stage.backward + time_of(wait_out, model_.out_rate) +
                  time_of(wait_in, model_.in_rate);
    const FluidAmount sent = fluid_moved(stage.forward, model_.out_rate) + wait_out;
    const FluidAmount fetched = fluid_moved(stage.backward, model_.in_rate) + wait_in;
    after.parent = p;
    after.in = std::max<FluidAmount>(0, state.in - fetched);
    if (s > 0 && s - 1 < model_.candidates && input > 0) {
      State moved = after;
      moved.out = std::max<FluidAmount>(0, state.out + input - sent);
      moved.in += input;
      if (!model_.storage.is_unlimited()) moved.stored += input;
      moved.moves = true;
      keep_if_finite(moved, next);
    }
    after.out = std::max<FluidAmount>(0, state.out - sent);
    after.kept += input;
    after.moves = false;
    keep_if_finite(after, next);
  }

  void keep_if_finite(const State& state, std::vector<State>& next) const {
    if (state.kept + std::max(state.out, state.in) <= budget_ && state.stored <= storage_)
      next.push_back(state);
  }

  void thin_out(std::vector<State>& states) const {
    if (states.size() <= kTimingStates) return;
    std::ranges::sort(states,
                      [](const State& a, const State& b) { return order_of(a) < order_of(b); });
    std::vector<State> kept;
    for (const State& state : states) {
      std::size_t better = 0;
      for (const State& other : kept) better += is_no_worse(other, state);
      model_.work.add(kept.size() + 1);
      if (better < count_) kept.push_back(state);
    }
    states = std::move(kept);
    if (states.size() > kTimingStates) keep_one_a_cell(states);
  }

  /// The states are sorted by cost, so that the first of a cell is its best.
  static void keep_one_a_cell(std::vector<State>& states) {
    constexpr std::size_t kSlots = 16;
    static_assert(kSlots * kSlots == kTimingStates);
    FluidAmount most_kept = 1, most_moving = 1;
    for (const State& s : states) {
      most_kept = std::max(most_kept, s.kept + 1);
      most_moving = std::max(most_moving, s.out + s.in + 1);
    }
    std::vector<bool> taken(kTimingStates, false);
    std::erase_if(states, [&](const State& s) {
      const auto slot = s.kept / (most_kept / static_cast<FluidAmount>(kSlots) + 1) * kSlots +
                        (s.out + s.in) / (most_moving / static_cast<FluidAmount>(kSlots) + 1);
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
  const FluidAmount budget_, storage_;
  Bytes lasting_;                           ///< of this stage and those behind it
  std::vector<std::vector<State>> layers_;  ///< before each stage
};

}  // namespace

std::vector<TimedSet> best_sets(const OffloadModel& model, std::size_t count) {
  return TimingProgram(model, count).run();
}

}  // namespace plimsoll
