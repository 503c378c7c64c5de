/// Operators that run slower while collectives are under way (CollectiveCost::slows). Internal to this
/// floor.
///
/// An operator that alone takes d, on a processor that goes without a share s of its rate meanwhile,
/// ends when d has passed at rates 1 and 1 - s. Example: 10 ms with s = 20 %, and a collective that is
/// under way throughout: 12.5 ms.
#pragma once

#include "engine/wide.hpp"
#include "execution/run_state.hpp"

#include <algorithm>
#include <vector>

namespace plimsoll {

template <bool kObserved>
class SlowedOperators {
 public:
  explicit SlowedOperators(RunState<kObserved>& run) : run_(run) {
    const auto& processors = run.platform.processors;
    const auto slows = [](const Processor& it) { return it.collectives.slows > Ratio{0}; };
    if (std::ranges::none_of(processors, slows)) return;
    due_.assign(run.plan.steps.size(), Time::unlimited());
    under_way_.resize(run.platform.memories.size());
    running_.resize(run.platform.memories.size());
  }

  /// An operator starts; whether its end is this class's business.
  bool begin(std::uint32_t step) {
    if (due_.empty()) return false;
    const ProgramStep& it = run_.program.steps[step];
    const std::uint32_t memory = run_.program.memory(step);
    running_[memory].push_back({step, Signed128{it.duration.count()} * kWhole.count(), run_.now});
    await(running_[memory].back(), memory);
    return true;
  }

  /// Whether an event of the step is one that has been put off, or brought forward, since.
  [[nodiscard]] bool is_void(std::uint32_t step, Time when) const {
    return !due_.empty() && !is_move(run_.program.steps[step].kind) && due_[step] != when;
  }

  void end(std::uint32_t step) {
    if (due_.empty()) return;
    due_[step] = Time::unlimited();
    std::erase_if(running_[run_.program.memory(step)],
                  [&](const Running& it) { return it.step == step; });
  }

  void begin_move(std::uint32_t step) { count(step, true); }
  void end_move(std::uint32_t step) { count(step, false); }

 private:
  struct Running {
    std::uint32_t step = 0;
    Signed128 left = 0;  ///< in kWhole-ths of a picosecond at full rate
    Time since;          ///< when that was left
  };

  void count(std::uint32_t step, bool begins) {
    if (due_.empty() || run_.program.steps[step].kind != StepKind::reduce) return;
    const ProgramLane& lane = run_.program.lanes[run_.program.steps[step].lane];
    count_at(index(lane.from), begins);
    if (lane.written != lane.from) count_at(index(lane.written), begins);
  }

  void count_at(std::uint32_t memory, bool begins) {
    const bool changes = under_way_[memory] == (begins ? 0u : 1u);
    if (changes)
      for (Running& it : running_[memory]) work_off(it, memory);
    under_way_[memory] += begins ? 1u : ~0u;
    if (changes)
      for (const Running& it : running_[memory]) await(it, memory);
  }

  void work_off(Running& it, std::uint32_t memory) {
    it.left -= Signed128{(run_.now - it.since).count()} * rate(it, memory);
    it.since = run_.now;
  }

  void await(const Running& it, std::uint32_t memory) {
    const Signed128 per_picosecond = rate(it, memory);
    const Signed128 time = (std::max<Signed128>(it.left, 0) + per_picosecond - 1) / per_picosecond;
    due_[it.step] = run_.now + Time{static_cast<std::int64_t>(time)};
    run_.events.push(due_[it.step], it.step);
  }

  [[nodiscard]] std::int64_t rate(const Running& it, std::uint32_t memory) const {
    if (under_way_[memory] == 0) return kWhole.count();
    const std::uint32_t p = run_.program.lanes[run_.program.steps[it.step].lane].processor;
    return (kWhole - run_.platform.processors[p].collectives.slows).count();
  }

  RunState<kObserved>& run_;
  std::vector<Time> due_;                      ///< by step; empty where nothing is slowed
  std::vector<std::uint32_t> under_way_;       ///< by memory: reductions from or to it
  std::vector<std::vector<Running>> running_;  ///< by memory: operators
};

}  // namespace plimsoll
