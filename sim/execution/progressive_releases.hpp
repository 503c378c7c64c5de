/// Sources that leave byte by byte (engine/progressive_release.hpp) while a program runs. Internal to
/// this floor.
///
/// What has left is given back to the allocator where someone looks: when a step asks for memory,
/// when the source is gone, and whenever an observer is told of the memory.
#pragma once

#include "engine/progressive_release.hpp"
#include "execution/memory_state.hpp"
#include "execution/run_state.hpp"

#include <algorithm>
#include <vector>

namespace plimsoll {

/// Between other events, an observer is told of a source at this many instants.
inline constexpr std::int64_t kToldOfRelease = 16;

/// All by their numbers in Program::progressive. Memories with such releases are `ideal`.
template <bool kObserved>
class ProgressiveReleases {
 public:
  ProgressiveReleases(RunState<kObserved>& run, std::vector<MemoryState>& memories)
      : run_(run), memories_(memories) {
    const Program& program = run.program;
    if (!program.progressive.empty()) of_copy_.assign(run.plan.steps.size(), kNone);
    for (const ProgressiveCopy& copy : program.progressive) {
      of_copy_[copy.copy] = static_cast<std::uint32_t>(releases_.size());
      releases_.push_back({.buffer = copy.buffer,
                           .bytes = program.bytes(BufferId{copy.buffer}),
                           .open = copy.open});
    }
    opened_.resize(releases_.size());
  }

  [[nodiscard]] bool empty() const { return releases_.empty(); }
  [[nodiscard]] std::uint32_t memory_of(std::uint32_t release) const {
    return run_.program.memory(BufferId{releases_[release].buffer});
  }

  /// The one of a buffer, or kNone.
  [[nodiscard]] std::uint32_t of_buffer(std::uint32_t buffer) const {
    const auto& all = run_.program.progressive;
    const auto it = std::ranges::lower_bound(all, buffer, {}, &ProgressiveCopy::buffer);
    const bool found = it != all.end() && it->buffer == buffer;
    return found ? static_cast<std::uint32_t>(it - all.begin()) : kNone;
  }

  /// A copy starts now; it may be one that releases nothing.
  void begin(std::uint32_t copy) {
    const std::uint32_t d = of_copy_[copy];
    if (d == kNone) return;
    const ProgramStep& it = run_.program.steps[copy];
    ProgressiveRelease& release = releases_[d];
    const Time transfer =
        transfer_time(run_.program.transferred(copy), run_.program.lanes[it.lane].route.bandwidth);
    release.end = run_.now + it.duration;
    release.begin = release.end - transfer;
    release.under_way = true;
    memories_[memory_of(d)].releasing.push_back(d);
  }

  /// All other readers of the source have ended.
  void open(std::uint32_t release) {
    releases_[release].open = true;
    opened_[release] = run_.now;
  }

  /// The copy and all other readers have ended: what is left of the source goes.
  void end(std::uint32_t release) {
    MemoryState& memory = memories_[memory_of(release)];
    releases_[release].open = true;
    settle(memory, run_.now);
    std::erase(memory.releasing, release);
  }

  /// Gives back what has left by `time`.
  void settle(MemoryState& memory, Time time) {
    for (const std::uint32_t d : memory.releasing) {
      ProgressiveRelease& release = releases_[d];
      const Bytes free = release.free_by(time) - release.given;
      memory.allocator.as_ideal()->give_back(free);
      memory.live_of(run_.program.tensor(BufferId{release.buffer}).tensor_class) -= free;
      release.given += free;
    }
  }

  /// Wakes the steps that wait for a memory as soon as `demand` fits, if what leaves makes room.
  void wake_when_fits(std::uint32_t memory, Bytes demand) {
    MemoryState& state = memories_[memory];
    const Bytes missing = demand - state.allocator.free_bytes();
    const Time when = first_time_of(releases_, state.releasing, missing, run_.now);
    if (when >= state.wake_at) return;
    state.wake_at = when;
    run_.events.push(when, memory | kWakeBit);
  }

  /// The instants after now, up to `next`, at which an observer is told of a memory.
  [[nodiscard]] std::vector<Time> instants_before(Time next, const MemoryState& memory) const {
    std::vector<Time> instants;
    for (const std::uint32_t d : memory.releasing) {
      const ProgressiveRelease& release = releases_[d];
      if (!release.open) continue;
      const Time from = std::max(opened_[d], release.begin);
      for (std::int64_t k = 0; k < kToldOfRelease; ++k) {
        const Time at{from.count() + (release.end - from).count() / kToldOfRelease * k};
        if (run_.now < at && at <= next) instants.push_back(at);
      }
    }
    std::ranges::sort(instants);
    instants.erase(std::unique(instants.begin(), instants.end()), instants.end());
    return instants;
  }

 private:
  RunState<kObserved>& run_;
  std::vector<MemoryState>& memories_;
  std::vector<ProgressiveRelease> releases_;
  std::vector<Time> opened_;            ///< when the other readers had ended; 0 without any
  std::vector<std::uint32_t> of_copy_;  ///< by step; empty where there are none
};

}  // namespace plimsoll
