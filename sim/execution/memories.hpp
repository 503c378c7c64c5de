/// The memories of a platform while a program runs: what is allocated when, and who waits for room.
/// Internal to this floor.
#pragma once

#include "execution/memory_state.hpp"
#include "execution/progressive_releases.hpp"
#include "execution/run_state.hpp"
#include "plan/core/readers.hpp"
#include "platform/core/memory_allocator.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace plimsoll {

template <bool kObserved>
class Memories {
 public:
  explicit Memories(RunState<kObserved>& run)
      : run_(run), live_(run.plan.buffers.size(), false), progressive_(run, states_) {
    const Platform& platform = run.platform;
    for (std::uint32_t m = 0; m < platform.memories.size(); ++m) {
      const Bytes most = usable(run.plan, platform, MemoryId{m});
      states_.push_back({.allocator = allocator_of(MemoryId{m}, most),
                         .limit = most,
                         .has_offsets = has_offsets_in(run.plan, MemoryId{m})});
      if constexpr (kObserved) states_.back().allocator.note_segments();
    }
    if (std::ranges::all_of(states_,
                            [](MemoryState& m) { return m.allocator.as_ideal() != nullptr; }))
      return;
    blocks_.resize(run.plan.buffers.size());
    workspaces_.resize(run.program.lanes.size());
  }

  [[nodiscard]] const std::vector<MemoryState>& states() const { return states_; }
  [[nodiscard]] MemoryState& operator[](std::size_t memory) { return states_[memory]; }
  /// By buffer.
  [[nodiscard]] const std::vector<bool>& live() const { return live_; }
  /// By buffer; empty where every memory is ideal.
  [[nodiscard]] const std::vector<MemoryBlock>& blocks() const { return blocks_; }

  /// What is there from the start; the first of it that does not fit.
  [[nodiscard]] std::optional<BufferId> place_initial() {
    std::vector<std::optional<LaneId>> lanes(states_.size());
    for (const BufferId id : run_.plan.initial) {
      const MemoryId memory{run_.program.memory(id)};
      std::optional<LaneId>& lane = lanes[index(memory)];
      if (!lane) lane = placing_lane(run_.plan, run_.platform, memory);
      if (!place(id, *lane)) return id;
    }
    return std::nullopt;
  }

  /// The outputs and the workspace of a step, all or none; one that got none waits.
  [[nodiscard]] bool allocate(std::uint32_t step) {
    const std::uint32_t memory = run_.program.memory(step);
    if (!take_reached(step)) return false;
    if (!take(step, memory)) {
      give_back_reached(step, run_.program.reached_by(step));
      wait(step, memory);
      return false;
    }
    count(step, memory);
    tell_allocated(step, memory);
    return true;
  }

  /// At the end of an operator.
  void free_workspace(std::uint32_t step) {
    const Bytes workspace = run_.program.workspace(step);
    if (workspace == Bytes{}) return;
    const std::uint32_t memory = run_.program.memory(step);
    MemoryState& state = states_[memory];
    if (IdealAllocator* counter = state.allocator.as_ideal())
      counter->give_back(workspace);
    else
      give_back(memory, workspaces_[run_.program.steps[step].lane]);
    state.live_of(TensorClass::workspace) -= workspace;
    run_.ready.wake(state.waiting);
    run_.tell([&](Observer& it) {
      it.workspace_freed(StepId{step}, run_.now);
      tell_used(memory, run_.now, false);
    });
  }

  /// At the end of a copy: what was in flight is there.
  void arrive(std::uint32_t copy) {
    const BufferId buffer = run_.program.writes(copy).front();
    const Tensor& tensor = run_.program.tensor(buffer);
    const std::uint32_t memory = run_.program.memory(copy);
    states_[memory].live_of(TensorClass::in_flight) -= tensor.bytes;
    states_[memory].live_of(tensor.tensor_class) += tensor.bytes;
    run_.tell([&](Observer&) { tell_used(memory, run_.now, false); });
  }

  void free(std::uint32_t buffer) {
    const std::uint32_t memory = run_.program.memory(BufferId{buffer});
    MemoryState& state = states_[memory];
    const std::uint32_t progressive = progressive_.empty() ? kNone : progressive_.of_buffer(buffer);
    if (progressive != kNone)
      progressive_.end(progressive);
    else
      free_whole(buffer, state);
    live_[buffer] = false;
    run_.ready.wake(state.waiting);
    run_.tell([&](Observer& it) {
      it.buffer_freed(BufferId{buffer}, run_.now);
      tell_used(memory, run_.now, false);
    });
  }

  void wake(std::uint32_t memory) { run_.ready.wake(states_[memory].waiting); }

  /// At an instant that was asked for because what waits may fit then.
  void wake_at_instant(std::uint32_t memory) {
    Time& wake_at = states_[memory].wake_at;
    if (wake_at != run_.now) return;  // an earlier one has come in between
    wake_at = Time::unlimited();
    wake(memory);
  }

  /// A copy starts, which may release its source progressively.
  void begin_release(std::uint32_t copy) {
    if (!progressive_.empty()) progressive_.begin(copy);
  }

  /// All that a release waits for has ended: its buffer goes, or a copy under way may take it away
  /// byte by byte. Whether the buffer is gone.
  bool release(std::uint32_t release) {
    const Program& program = run_.program;
    const std::uint32_t progressive =
        progressive_.empty() ? kNone : program.release_progressive[release];
    if (progressive == kNone) {
      free(program.release_buffer[release]);
      return true;
    }
    progressive_.open(progressive);
    const std::uint32_t memory = progressive_.memory_of(progressive);
    wake(memory);
    run_.tell([&](Observer&) { tell_used(memory, run_.now, false); });
    return false;
  }

  /// Before the clock moves on to `next`: the instants up to it at which an observer is told.
  void tell_until(Time next) {
    if (progressive_.empty()) return;
    run_.tell([&](Observer&) {
      for (std::uint32_t m = 0; m < states_.size(); ++m)
        for (const Time at : progressive_.instants_before(next, states_[m]))
          tell_used(m, at, false);
    });
  }

 private:
  [[nodiscard]] Allocator allocator_of(MemoryId id, Bytes most) const {
    const Memory memory = memory_in(run_.plan, run_.platform, id);
    if (run_.placements != nullptr)
      if (const auto& blocks = run_.placements->blocks[index(id)])
        return Allocator::placed(most, memory.alignment, *blocks);
    return make_allocator(memory, most);
  }

  bool place(BufferId id, LaneId lane) {
    const Tensor& tensor = run_.program.tensor(id);
    const std::uint32_t memory = run_.program.memory(id);
    MemoryState& state = states_[memory];
    if (!state.is_within_limit(tensor.bytes)) return false;
    MemoryBlock block = asked_for(id);
    const bool fits = state.take({&block, 1}, index(lane));
    tell_segments(memory);
    if (!fits) return false;
    if (!blocks_.empty()) {
      blocks_[index(id)] = block;
      tell_taken(memory, id, kNoStep, block);
    }
    state.live_of(tensor.tensor_class) += tensor.bytes;
    live_[index(id)] = true;
    state.take_peak(run_.now);
    run_.tell([&](Observer& it) {
      it.buffer_allocated(id, kNoStep, run_.now);
      if (tensor.bytes > Bytes{}) tell_used(memory, run_.now, true);
    });
    return true;
  }

  [[nodiscard]] MemoryBlock asked_for(BufferId id) const {
    return {.requested = run_.program.bytes(id), .offset = run_.plan[id].offset.value_or(kNowhere)};
  }

  void wait(std::uint32_t step, std::uint32_t memory) {
    run_.execution.waited_for_memory = true;
    states_[memory].waiting.push_back(step);
  }

  /// The outputs of a step in other memories than its processor's own.
  bool take_reached(std::uint32_t step) {
    const std::span<const ReachedUse> uses = run_.program.reached_by(step);
    for (std::size_t i = 0; i < uses.size(); ++i) {
      const std::uint32_t memory = index(uses[i].memory);
      if (run_.program.demand(step, memory) == Bytes{} || take(step, memory)) continue;
      give_back_reached(step, uses.first(i));
      wait(step, memory);
      return false;
    }
    return true;
  }

  void give_back_reached(std::uint32_t step, std::span<const ReachedUse> uses) {
    for (const ReachedUse& use : uses) {
      const std::uint32_t memory = index(use.memory);
      if (IdealAllocator* counter = states_[memory].allocator.as_ideal()) {
        counter->give_back(run_.program.demand(step, memory));
        continue;
      }
      for (const BufferId buffer : run_.program.writes(step))
        if (run_.program.memory(buffer) == memory) give_back(memory, blocks_[index(buffer)]);
    }
  }

  bool take(std::uint32_t step, std::uint32_t memory) {
    MemoryState& state = states_[memory];
    IdealAllocator* counter = state.allocator.as_ideal();
    if (counter == nullptr) return take_blocks(step, memory);
    const Bytes demand = run_.program.demand(step, memory);
    if (!state.releasing.empty()) progressive_.settle(state, run_.now);
    if (counter->take(demand)) return true;
    if (!state.releasing.empty()) progressive_.wake_when_fits(memory, demand);
    return false;
  }

  bool take_blocks(std::uint32_t step, std::uint32_t memory) {
    const Program& program = run_.program;
    const ProgramStep& it = program.steps[step];
    MemoryState& state = states_[memory];
    if (!state.is_within_limit(program.demand(step, memory))) return false;
    const bool works = !is_move(it.kind) && memory == program.memory(step);
    written_.clear();
    asked_.clear();
    for (const BufferId buffer : program.writes(step)) {
      if (program.memory(buffer) != memory) continue;
      written_.push_back(buffer);
      asked_.push_back(asked_for(buffer));
    }
    if (works)
      asked_.push_back({.requested = program.workspace(step),
                        .offset = run_.plan.steps[step].workspace_offset.value_or(kNowhere)});
    const bool fits = state.take(asked_, it.lane);
    tell_segments(memory);
    if (!fits) return false;
    for (std::size_t w = 0; w < written_.size(); ++w) blocks_[index(written_[w])] = asked_[w];
    if (works) workspaces_[it.lane] = asked_.back();
    run_.tell([&](Observer&) {
      for (const BufferId buffer : written_)
        tell_taken(memory, buffer, StepId{step}, blocks_[index(buffer)]);
      if (works) tell_taken(memory, std::nullopt, StepId{step}, workspaces_[it.lane]);
    });
    return true;
  }

  void count(std::uint32_t step, std::uint32_t memory) {
    const bool is_copy = run_.program.steps[step].kind == StepKind::copy;
    for (const BufferId buffer : run_.program.writes(step)) {
      const Tensor& tensor = run_.program.tensor(buffer);
      MemoryState& state = states_[run_.program.memory(buffer)];
      state.live_of(is_copy ? TensorClass::in_flight : tensor.tensor_class) += tensor.bytes;
      live_[index(buffer)] = true;
    }
    states_[memory].live_of(TensorClass::workspace) += run_.program.workspace(step);
    states_[memory].take_peak(run_.now);
    for (const ReachedUse& use : run_.program.reached_by(step))
      states_[index(use.memory)].take_peak(run_.now);
  }

  void free_whole(std::uint32_t buffer, MemoryState& state) {
    const Tensor& tensor = run_.program.tensor(BufferId{buffer});
    if (IdealAllocator* counter = state.allocator.as_ideal())
      counter->give_back(tensor.bytes);
    else
      give_back(run_.program.memory(BufferId{buffer}), blocks_[buffer]);
    state.live_of(tensor.tensor_class) -= tensor.bytes;
  }

  void give_back(std::uint32_t memory, const MemoryBlock& block) {
    if (block.requested > Bytes{})
      run_.tell([&](Observer& it) { it.block_given_back(MemoryId{memory}, block, run_.now); });
    states_[memory].allocator.free(block);
  }

  void tell_segments(std::uint32_t memory) {
    run_.tell([&](Observer& it) {
      for (const SegmentEvent& event : states_[memory].allocator.take_segment_events())
        it.segment_changed(MemoryId{memory}, event, run_.now);
    });
  }

  /// Nothing of an ideal memory, which has no addresses.
  void tell_taken(std::uint32_t memory, std::optional<BufferId> buffer, StepId of,
                  const MemoryBlock& block) {
    if (block.requested == Bytes{}) return;
    const Allocator& allocator = states_[memory].allocator;
    if (allocator.is_ideal()) return;
    run_.tell([&](Observer& it) {
      it.block_taken(MemoryId{memory}, buffer, of, block, allocator.piece_of(block), run_.now);
    });
  }

  void tell_allocated(std::uint32_t step, std::uint32_t memory) {
    run_.tell([&](Observer& it) {
      for (const BufferId buffer : run_.program.writes(step))
        it.buffer_allocated(buffer, StepId{step}, run_.now);
      if (const Bytes workspace = run_.program.workspace(step); workspace > Bytes{})
        it.workspace_allocated(StepId{step}, workspace, run_.now);
      if (run_.program.demand(step) > Bytes{}) tell_used(memory, run_.now, true);
      for (const ReachedUse& use : run_.program.reached_by(step))
        if (run_.program.demand(step, index(use.memory)) > Bytes{})
          tell_used(index(use.memory), run_.now, true);
    });
  }

  void tell_used(std::uint32_t memory, Time now, bool is_peak) {
    MemoryState& state = states_[memory];
    if (!state.releasing.empty()) progressive_.settle(state, now);
    run_.observer->memory_used(MemoryId{memory}, {now, state.live, state.allocator.now()}, is_peak);
  }

  RunState<kObserved>& run_;
  std::vector<MemoryState> states_;
  std::vector<MemoryBlock> blocks_;      ///< by buffer, where there is an arena
  std::vector<MemoryBlock> workspaces_;  ///< by lane, where there is an arena
  std::vector<MemoryBlock> asked_;       ///< by the step that is being started, in an arena
  std::vector<BufferId> written_;        ///< likewise: the first of `asked_`
  std::vector<bool> live_;               ///< by buffer
  ProgressiveReleases<kObserved> progressive_;
};

}  // namespace plimsoll
