/// The compute streams of a platform while a program runs: how long they work, and what they wait
/// for. Internal to this floor.
#pragma once

#include "execution/diagnosis.hpp"
#include "execution/run_state.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace plimsoll {

template <bool kObserved>
class Streams {
 public:
  explicit Streams(RunState<kObserved>& run) : run_(run), lanes_(run.program.lanes.size()) {}

  /// The last condition of a step that is known beforehand holds now.
  void clear(std::uint32_t step, std::uint32_t by) {
    LaneState& lane = lanes_[run_.program.steps[step].lane];
    lane.cleared_at = run_.now;
    lane.cleared_by = by;
  }

  void begin(std::uint32_t step) {
    const std::uint32_t l = run_.program.steps[step].lane;
    LaneState& lane = lanes_[l];
    ProcessorRecord& record = record_of(l);
    if (lane.started && run_.now > lane.idle_since) {
      const Waits waits = waits_of(lane);
      charge(waits, record);
      run_.tell([&](Observer& it) {
        for (const Wait& wait : waits)
          if (wait.to > wait.from) it.stream_waited(LaneId{l}, wait.cause, wait.from, wait.to);
      });
    }
    lane.started = true;
    if (!record.first_start) record.first_start = run_.now;
  }

  void end(std::uint32_t step) {
    const ProgramStep& it = run_.program.steps[step];
    ProcessorRecord& record = record_of(it.lane);
    record.busy += run_.now - run_.execution.start[step];
    record.last_end = run_.now;
    record.operators += it.kind == StepKind::pair ? 2 : 1;
    lanes_[it.lane].idle_since = run_.now;
  }

  /// Of a run that cannot go on: the waits that do not end count up to now, for what never came.
  void charge_last(std::span<const LastWait> waits) {
    for (const LastWait& wait : waits) {
      const std::uint32_t l = run_.program.steps[wait.step].lane;
      LaneState& lane = lanes_[l];
      if (!lane.started) continue;
      if (wait.on != kNone) {
        lane.cleared_at = run_.now;
        lane.cleared_by = wait.on;
      }
      charge(waits_of(lane), record_of(l));
    }
  }

 private:
  /// When a stream fell idle, and since when only memory is missing.
  struct LaneState {
    bool started = false;
    Time idle_since, cleared_at;
    std::uint32_t cleared_by = kNone;  ///< the step that came last
  };
  struct Wait {
    StallCause cause = StallCause::transfer;
    Time from, to;
  };
  using Waits = std::array<Wait, kStallCauses>;

  /// Until what a step reads existed (dependency), until that was there (transfer), and until it
  /// fitted (memory). Precondition: the stream fell idle before now.
  [[nodiscard]] Waits waits_of(const LaneState& lane) const {
    const Time cleared = std::max(lane.cleared_at, lane.idle_since);
    Time existed = cleared;
    const ProgramStep& last = run_.program.steps[lane.cleared_by];
    if (is_move(last.kind)) {
      // What another copy brought to the source existed all along.
      const std::uint32_t maker = last.source_maker;
      const bool by_operator = maker != kNone && !is_move(run_.program.steps[maker].kind);
      existed = by_operator ? std::clamp(run_.execution.end[maker], lane.idle_since, cleared)
                            : lane.idle_since;
    }
    return {{{StallCause::dependency, lane.idle_since, existed},
             {StallCause::transfer, existed, cleared},
             {StallCause::memory, cleared, run_.now}}};
  }

  static void charge(const Waits& waits, ProcessorRecord& record) {
    for (const Wait& wait : waits)
      if (wait.to > wait.from)
        record.stall[static_cast<std::size_t>(wait.cause)] += wait.to - wait.from;
  }

  [[nodiscard]] ProcessorRecord& record_of(std::uint32_t lane) {
    return run_.execution.processors[run_.program.lanes[lane].processor];
  }

  RunState<kObserved>& run_;
  std::vector<LaneState> lanes_;
};

}  // namespace plimsoll
