#include "execution/diagnosis.hpp"

#include "memory/fragmentation.hpp"
#include "plan/core/parameter_moves.hpp"
#include "plan/core/readers.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::size_t kMostResidents = 10, kMostSegments = 5, kMostKeepers = 3;

/// Where a step that has not started lacks room: where it waits, else where it allocates.
std::uint32_t lacking_memory(const StuckState& state, std::uint32_t step) {
  for (const ReachedUse& use : state.program.reached_by(step)) {
    const std::vector<std::uint32_t>& waiting = state.memories[index(use.memory)].waiting;
    if (std::ranges::find(waiting, step) != waiting.end()) return index(use.memory);
  }
  return state.program.memory(step);
}

/// Finds, for any step that has not started, one that it waits for.
class WaitsFor {
 public:
  explicit WaitsFor(const StuckState& state)
      : state_(state),
        program_(state.program),
        plan_(*state.program.plan),
        readers_(plan_),
        lane_head_(plan_.lanes.size(), kNone),
        previous_grant_(plan_.steps.size(), kNone) {
    std::vector<std::uint32_t> last_grant(program_.platform->memories.size(), kNone);
    std::vector<bool> is_ordered(program_.platform->memories.size(), false);
    for (const MemoryId memory : plan_.ordered_grants) is_ordered[index(memory)] = true;
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const ProgramStep& step = program_.steps[s];
      const std::uint32_t memory = program_.memory(s);
      const bool done = program_.lanes[step.lane].is_channel ? started(s) : ended(s);
      if (!done && lane_head_[step.lane] == kNone) lane_head_[step.lane] = s;
      if (!is_ordered[memory] || program_.demand(s) == Bytes{}) continue;
      previous_grant_[s] = last_grant[memory];
      last_grant[memory] = s;
    }
  }

  struct Wait {
    std::uint32_t on = kNone;
    const char* how = "";
    bool is_grant = false;
    bool is_memory = false;
  };

  /// The first step of a lane that has not ended (a stream's) or started (a channel's), or kNone.
  [[nodiscard]] std::uint32_t head(std::size_t lane) const { return lane_head_[lane]; }

  [[nodiscard]] Wait operator()(std::uint32_t step) const {
    // Not the predecessor but the first of the lane: what lies between waits for the same.
    const std::uint32_t lane = program_.steps[step].lane;
    if (lane_head_[lane] != step)
      return {lane_head_[lane], program_.lanes[lane].is_channel ? "comes after, in its channel,"
                                                                : "comes after, in its stream,"};
    for (const BufferId buffer : plan_.list(plan_.steps[step].reads)) {
      const StepId producer = readers_.producer(buffer);
      if (producer != kNoStep && !ended(index(producer)))
        return {index(producer), "reads the output of"};
    }
    for (const Dependency& dependency : plan_.after(plan_.steps[step])) {
      const bool start = dependency.edge == Dependency::Edge::after_start;
      if (!(start ? started(index(dependency.on)) : ended(index(dependency.on))))
        return {index(dependency.on), start ? "waits for the start of" : "waits for the end of"};
    }
    if (waits_for_grant(step)) return {previous_grant_[step], "may allocate only after", true};
    for (const auto& [buffer, waiting] : program_.after_free)
      if (waiting == step && state_.live[buffer])
        return {user_of(buffer), "needs the place held until"};
    return {.on = holder_in(lacking_memory(state_, step)),
            .how = "waits for memory held until",
            .is_memory = true};
  }

  [[nodiscard]] bool waits_for_grant(std::uint32_t step) const {
    return previous_grant_[step] != kNone && !started(previous_grant_[step]);
  }

 private:
  bool started(std::uint32_t step) const { return !state_.start[step].is_unlimited(); }
  bool ended(std::uint32_t step) const { return !state_.end[step].is_unlimited(); }

  /// The first user of a buffer that has not ended: what its release waits for.
  std::uint32_t user_of(std::uint32_t buffer) const {
    for (const StepId user : readers_.of(BufferId{buffer}))
      if (!ended(index(user))) return index(user);
    return kNone;
  }
  std::uint32_t holder_in(std::uint32_t memory) const {
    for (std::uint32_t b = 0; b < plan_.buffers.size(); ++b) {
      const BufferId buffer{b};
      if (program_.memory(buffer) != memory || !state_.live[b] || program_.bytes(buffer) == Bytes{})
        continue;
      if (const std::uint32_t user = user_of(b); user != kNone) return user;
    }
    return kNone;
  }

  const StuckState& state_;
  const Program& program_;
  const Plan& plan_;
  const Readers readers_;
  std::vector<std::uint32_t> lane_head_;       ///< by lane: the first step that holds it up
  std::vector<std::uint32_t> previous_grant_;  ///< by step, in its memory
};

CacheAtRefusal describe_cache(const CachingAllocator& cache) {
  CacheAtRefusal held;
  held.reserved = cache.now().reserved;
  for (const MemorySegment& segment : cache.segments()) {
    ++held.segments;
    held.free += segment.free;
    held.largest_free = std::max(held.largest_free, segment.largest_free);
    if (segment.free == Bytes{} || segment.blocks_in_use == 0) continue;
    ++held.with_free;
    held.keeping += segment.blocks_in_use;
  }
  return held;
}

LayoutAtRefusal describe_layout(const StuckState& state, std::uint32_t memory) {
  const Allocator& allocator = state.memories[memory].allocator;
  std::vector<MemoryBlock> held;
  std::map<std::uint32_t, std::uint32_t> buffers;  // by handle of the block
  for (std::uint32_t b = 0; b < state.blocks.size(); ++b) {
    if (!state.live[b] || state.program.memory(BufferId{b}) != memory) continue;
    held.push_back(state.blocks[b]);
    if (held.back().requested > Bytes{}) buffers.emplace(held.back().handle, b);
  }
  const MemoryUse now = allocator.now();
  const MemoryGaps gaps = gaps_of(allocator, held);
  LayoutAtRefusal layout{
      now.requested, now.allocated, now.reserved, gaps.rounding, gaps.tails, gaps.holes, 0, {}};
  const std::vector<CutSegment> cut = cut_segments(allocator);
  layout.cut_segments = cut.size();
  for (const CutSegment& it : std::span(cut).first(std::min(cut.size(), kMostSegments))) {
    const MemorySegment& segment = it.segment;
    KeptSegment kept{segment.number,       segment.size,          segment.free,
                     segment.largest_free, segment.blocks_in_use, {}};
    for (const MemoryPiece& keeper : it.keepers) {
      const auto buffer = buffers.find(keeper.handle);
      if (buffer == buffers.end() || kept.tensors.size() == kMostKeepers) continue;
      kept.tensors.push_back(state.program.tensor(BufferId{buffer->second}).name);
    }
    layout.kept.push_back(std::move(kept));
  }
  return layout;
}

OutOfMemory describe_memory(const StuckState& state, std::uint32_t memory) {
  const Program& program = state.program;
  OutOfMemory oom;
  oom.memory = program.platform->memories[memory].name;
  const MemoryState& full = state.memories[memory];
  oom.capacity = full.limit;
  oom.free = full.limit.is_unlimited() ? full.limit : full.limit - full.allocator.now().requested;
  oom.free = std::min(oom.free, full.allocator.free_bytes());
  oom.largest_free_block = std::min(oom.free, full.allocator.largest_free_block());
  oom.by_class = full.live;
  if (const CachingAllocator* cache = full.allocator.as_caching())
    oom.cache = describe_cache(*cache);
  if (!full.allocator.is_ideal()) oom.layout = describe_layout(state, memory);

  std::vector<BufferId> residents;
  for (std::uint32_t b = 0; b < program.plan->buffers.size(); ++b)
    if (state.live[b] && program.memory(BufferId{b}) == memory) residents.push_back(BufferId{b});
  oom.residents = residents.size();
  std::ranges::stable_sort(
      residents, [&](BufferId a, BufferId b) { return program.bytes(a) > program.bytes(b); });
  if (residents.size() > kMostResidents) residents.resize(kMostResidents);
  for (const BufferId b : residents) {
    const Tensor& tensor = program.tensor(b);
    oom.largest.push_back({tensor.name, tensor.tensor_class, tensor.bytes});
  }
  return oom;
}

}  // namespace

std::uint32_t first_memory_waiter(const StuckState& state) {
  std::uint32_t first = kNone;
  for (const MemoryState& memory : state.memories)
    for (const std::uint32_t step : memory.waiting) first = std::min(first, step);
  return first;
}

OutOfMemory diagnose_oom(const StuckState& state, std::uint32_t step) {
  const Program& program = state.program;
  const std::uint32_t memory = lacking_memory(state, step);
  OutOfMemory oom = describe_memory(state, memory);
  oom.step = describe(*program.plan, StepId{step}, *program.workload, *program.platform);
  oom.asked = program.demand(step, memory);
  return oom;
}

OutOfMemory diagnose_initial(const StuckState& state, BufferId buffer) {
  const Program& program = state.program;
  OutOfMemory oom = describe_memory(state, program.memory(buffer));
  oom.step = fmt::format("placing {} before the first operator", program.tensor(buffer).name);
  oom.asked = program.bytes(buffer);
  return oom;
}

WaitCycle find_cycle(const StuckState& state) {
  const Program& program = state.program;
  const WaitsFor waits_for(state);
  std::uint32_t step = first_memory_waiter(state);
  if (step == kNone)
    for (step = 0; !state.start[step].is_unlimited();) ++step;

  // Every step that has not started waits for another such step, or for memory that nobody will
  // free: the walk comes back to itself, or ends there.
  std::vector<std::uint32_t> walked;
  std::vector<std::uint32_t> place(program.plan->steps.size(), kNone);
  while (step != kNone && place[step] == kNone) {
    place[step] = static_cast<std::uint32_t>(walked.size());
    walked.push_back(step);
    step = waits_for(step).on;
  }
  const auto name = [&](std::uint32_t s) {
    return describe(*program.plan, StepId{s}, *program.workload, *program.platform);
  };
  WaitCycle cycle;
  for (std::size_t i = step == kNone ? walked.size() : place[step]; i < walked.size(); ++i) {
    const WaitsFor::Wait wait = waits_for(walked[i]);
    cycle.holds_grant |= wait.is_grant;
    if (wait.is_memory) cycle.for_memory = std::min(cycle.for_memory, walked[i]);
    cycle.waits.push_back(fmt::format("{} {} {}", name(walked[i]), wait.how, name(wait.on)));
  }
  return cycle;
}

std::vector<LastWait> last_waits(const StuckState& state) {
  const WaitsFor waits_for(state);
  std::vector<LastWait> waits;
  for (std::size_t l = 0; l < state.program.lanes.size(); ++l) {
    const std::uint32_t step = waits_for.head(l);
    if (step == kNone || state.program.lanes[l].is_channel) continue;
    const WaitsFor::Wait wait = waits_for(step);
    waits.push_back({step, wait.is_memory ? kNone : wait.on});
  }
  return waits;
}

Time period_of(const Program& program, const Execution& execution) {
  const Plan& plan = *program.plan;
  if (!plan.steady_from_microbatch) {
    Time span;
    for (const ProcessorRecord& processor : execution.processors)
      if (processor.first_start) span = std::max(span, processor.last_end - *processor.first_start);
    if (plan.reductions.empty()) return span;
    const ChannelEnds channel_ends(*program.platform);
    for (std::uint32_t s = 0; s < plan.steps.size(); ++s)
      channel_ends.for_each_that_waits(plan, plan.steps[s], *program.workload, [&](ProcessorId p) {
        const ProcessorRecord& processor = execution.processors[index(p)];
        if (processor.first_start) span = std::max(span, execution.end[s] - *processor.first_start);
      });
    return span;
  }
  return steady_interval(plan, execution.end);
}

}  // namespace plimsoll
