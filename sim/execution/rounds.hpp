/// The rounds of reductions that have several, while a program runs. Internal to this floor.
#pragma once

#include "execution/run_state.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

template <bool kObserved>
class Rounds {
 public:
  explicit Rounds(RunState<kObserved>& run) : run_(run), under_way_(run.plan.reductions.size()) {}

  /// Whether some of them are over, and more are to come.
  [[nodiscard]] bool are_under_way(std::uint32_t step) const {
    return run_.program.steps[step].kind == StepKind::reduce && state(step).over > 0;
  }

  /// Whether the one that is under way, or is about to begin, is the last.
  [[nodiscard]] bool is_last(std::uint32_t step) const {
    return run_.program.steps[step].kind != StepKind::reduce ||
           state(step).over + 1 == rounds_of(run_.plan, run_.plan.steps[step]);
  }

  void begin(std::uint32_t step) {
    if (are_under_way(step) && state(step).ended < run_.now)
      run_.execution.gaps.push_back({step, state(step).ended, run_.now});
  }

  void end(std::uint32_t step) {
    UnderWay& state = under_way_[run_.plan.steps[step].reduction];
    ++state.over;
    state.ended = run_.now;
  }

  /// How long the one that begins holds its links before it shares them, if it does.
  [[nodiscard]] Time duration(std::uint32_t step) const {
    const Time first = run_.program.steps[step].duration;
    return are_under_way(step) ? first - run_.program.openings[run_.plan.steps[step].reduction]
                               : first;
  }

 private:
  struct UnderWay {
    std::uint32_t over = 0;  ///< rounds
    Time ended;              ///< the last of these
  };

  [[nodiscard]] const UnderWay& state(std::uint32_t step) const {
    return under_way_[run_.plan.steps[step].reduction];
  }

  RunState<kObserved>& run_;
  std::vector<UnderWay> under_way_;  ///< by reduction of the plan
};

}  // namespace plimsoll
